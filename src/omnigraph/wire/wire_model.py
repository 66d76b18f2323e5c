"""The base classes of requests and answers.

A member of an answer is always present, or it may be absent. One that is always present and may be
null is declared without a default; one that may be absent has the default None, and is never null.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

JsonObject = dict[str, Any]  # Any: JSON values
UInt32 = Annotated[int, Field(ge=0, json_schema_extra={"format": "int32"})]
UInt64 = Annotated[int, Field(ge=0, json_schema_extra={"format": "int64"})]
Int64 = Annotated[int, Field(json_schema_extra={"format": "int64"})]


class WireModel(BaseModel):
    """Exact JSON types, no coercion, and nothing that changes later."""

    model_config = ConfigDict(strict=True, frozen=True)


class Request(WireModel):
    """The body of a request; unknown members are ignored, so that newer clients are understood."""

    model_config = ConfigDict(extra="ignore")


class ClosedRequest(WireModel):
    """The body of a request whose unknown members are refused."""

    model_config = ConfigDict(extra="forbid")


class Answer(WireModel):
    """The body of an answer: exactly these members."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _refuse_null_for_absent(cls, document: Any) -> Any:  # Any: what is to be validated
        if isinstance(document, dict):
            for name, field in cls.model_fields.items():
                if not field.is_required() and document.get(name, ...) is None:
                    raise ValueError(f"{name} is null, and would have to be absent")
        return document
