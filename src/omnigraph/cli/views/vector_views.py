"""What the verbs about vectors of texts answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.cli.views.answer_views import JsonObject
from omnigraph.cli.views.output_streams import align_columns, format_count

if TYPE_CHECKING:
    from omnigraph.embedding.record_files import FileOutcome
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


@dataclass(frozen=True, slots=True)
class EmbeddedFile:
    """What became of a file of records."""

    source: Path
    target: Path
    dimension: int
    outcome: FileOutcome

    def to_json(self) -> JsonObject:
        """The document of `embed` on files."""
        return {
            "mode": self.outcome.mode.value,
            "input": str(self.source),
            "output": str(self.target),
            "model": self.outcome.model,
            "dimension": self.dimension,
            "records": self.outcome.records,
            "entities": self.outcome.entities,
            "embedded": self.outcome.embedded,
            "kept": self.outcome.kept,
            "cleaned": self.outcome.cleaned,
        }

    def to_lines(self) -> Iterable[str]:
        """The counts and the file."""
        found = self.outcome
        done = f"embedded {format_count(found.embedded, 'record')}, kept {found.kept}"
        if found.mode.value == "clean":
            done = f"removed {format_count(found.cleaned, 'vector')}"
        yield f"{done} of {found.entities}: {self.target}"
