"""What happened to one entity, as diffs and the change feed tell it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omnigraph.schema.shape import JsonObject


@dataclass(frozen=True, slots=True)
class EntityChange:
    """One entity that was inserted, updated or deleted; `kind` is `node` or `edge`.

    `before` and `after` are its images: all `properties`, spelled as in an export and null where
    they have no value, and for an edge its `endpoints`. What was inserted has no image before, what
    was deleted none after. `type_id` survives a rename of the type; a type that is dropped and
    added again has another one.
    """

    kind: str
    type_id: str
    type_name: str
    id: str
    op: str
    before: JsonObject | None = None
    after: JsonObject | None = None

    def to_json(self) -> JsonObject:
        """The document of a change; an image that does not exist has no member."""
        document: JsonObject = {
            "kind": self.kind,
            "type": {"id": self.type_id, "name": self.type_name},
            "id": self.id,
            "op": self.op,
        }
        if self.before is not None:
            document["before"] = self.before
        if self.after is not None:
            document["after"] = self.after
        return document
