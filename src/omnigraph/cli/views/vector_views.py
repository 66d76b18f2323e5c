"""What the verbs about vectors of texts answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph.cli.views.answer_views import JsonObject
from omnigraph.cli.views.output_streams import align_columns, format_count

if TYPE_CHECKING:
    from omnigraph.engine import EmbedResult, VectorStatus


@dataclass(frozen=True, slots=True)
class Filled:
    """What a fill of vectors did."""

    uri: str
    result: EmbedResult

    def to_json(self) -> JsonObject:
        """The document of `embed`."""
        return {**self.result.to_json(), "uri": self.uri}

    def to_lines(self) -> Iterable[str]:
        """The count of vectors and commits, and why texts have none."""
        found = self.result
        vectors = format_count(len(found.commits), "commit")
        yield f"made {format_count(found.filled, 'vector')} on {found.branch} in {vectors}"
        if found.failed:
            yield f"{format_count(found.failed, 'text')} refused: {found.reason}"


@dataclass(frozen=True, slots=True)
class Vectors:
    """How far the vectors of a branch are."""

    uri: str
    status: VectorStatus

    def to_json(self) -> JsonObject:
        """The document of `embed status`."""
        return {**self.status.to_json(), "uri": self.uri}

    def to_lines(self) -> Iterator[str]:
        """A line per property, and the last reason of a fill that ended early."""
        status = self.status
        if not status.properties:
            yield "no property is embedded by a model that the schema names"
        yield from align_columns(
            [
                (
                    f"{each.type_name}.{each.property}",
                    each.model,
                    f"{each.ready} ready",
                    f"{each.pending} pending",
                    f"{each.failed} failed",
                    each.reason or "",
                )
                for each in status.properties
            ]
        )
        if status.reason is not None:
            yield f"the last fill ended early: {status.reason}"
