"""One tool: its schema, the check of its arguments, and its answer as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from jsonschema import Draft202012Validator, ValidationError

from omnigraph.errors import InvalidArgumentError, ResourceLimitError
from omnigraph.execution.query_budget import Cancellation
from omnigraph.wire.json_rows import encode_document

JsonObject: TypeAlias = dict[str, Any]  # Any: a JSON document
Arguments: TypeAlias = Mapping[str, Any]  # Any: JSON values
# A document, or the bytes of one.
ToolAnswer: TypeAlias = JsonObject | bytes
_PROBLEMS_MAX: Final = 5


class ToolRefusedError(Exception):
    """A call that a server refuses for reasons of its own, with the document that says why."""

    def __init__(self, document: JsonObject) -> None:
        super().__init__(document["error"])
        self.document = document


@dataclass(frozen=True, slots=True)
class AgentTool:
    """A tool that its caller may call."""

    name: str
    description: str
    input_schema: JsonObject
    run: Callable[[Arguments, Cancellation], ToolAnswer]
    is_read: bool = True
    is_destructive: bool = False
    answer_bytes_max: int | None = None

    def answer(self, arguments: Arguments, cancel: Cancellation) -> str:
        """The text that a call answers with."""
        answer = self.run(check_arguments(self.input_schema, arguments), cancel)
        data = answer if isinstance(answer, bytes) else encode_document(answer)
        # What a write answers is there when the write has happened: a refusal would deny that.
        limit = self.answer_bytes_max if self.is_read else None
        if limit is not None and len(data) > limit:
            raise ResourceLimitError(
                "answer_bytes",
                limit=limit,
                actual=len(data),
                hint="ask for less: a smaller limit, fewer types, or fewer properties",
            )
        return data.decode()


def build_object_schema(
    properties: Mapping[str, JsonObject], required: tuple[str, ...] = ()
) -> JsonObject:
    """The schema of arguments: these members and no others."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


def describe_text(description: str, **keywords: object) -> JsonObject:
    """The schema of a text."""
    return {"type": "string", "description": description, **keywords}


def check_arguments(schema: JsonObject, arguments: Arguments) -> Arguments:
    """The arguments of a call, if they fit the schema of its tool; every problem is reported.

    An integer where the schema wants its digits is as good as those, and so is `1.0` where it
    wants an integer.
    """
    properties = schema["properties"]
    found = {
        name: _spell_integers(properties.get(name, {}), value) for name, value in arguments.items()
    }
    problems = sorted(Draft202012Validator(schema).iter_errors(found), key=str)
    if problems:
        first, *others = _describe_problems(problems)
        raise InvalidArgumentError(first[0], "; ".join([first[1], *map(": ".join, others)]))
    return found


def _spell_integers(schema: Mapping[str, Any], value: Any) -> Any:  # Any: JSON values
    if isinstance(value, int) and not isinstance(value, bool) and "pattern" in schema:
        return str(value)
    if schema.get("type") == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list) and "items" in schema:
        return [_spell_integers(schema["items"], each) for each in value]
    return value


def _describe_problems(problems: list[ValidationError]) -> Iterator[tuple[str, str]]:
    """The place of each problem, and what is wrong there."""
    for problem in problems[:_PROBLEMS_MAX]:
        place = ".".join(map(str, problem.absolute_path)) or "arguments"
        yield place, problem.message
