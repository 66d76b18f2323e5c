"""Answers about clean-up, repair and tags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from omnigraph.cli.views.alignment import align_columns
from omnigraph.cli.views.documents import JsonObject
from omnigraph.cli.views.streams import format_count
from omnigraph.durations import format_duration

if TYPE_CHECKING:
    from omnigraph.engine import CleanupReport, RepairReport, Tag

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What a clean-up removed, or would remove."""

    uri: str
    report: CleanupReport

    def to_json(self) -> JsonObject:
        """The document of `cleanup`."""
        return {**self.report.to_json(), "uri": self.uri}

    def to_lines(self) -> Iterator[str]:
        """A line per table and one for the rest, then what it comes to."""
        report = self.report
        rows = [
            (
                each.type_key or each.table or "",
                _format_size(each.bytes),
                _format_kinds(each.objects),
            )
            for each in report.tables
        ]
        if report.other is not None:
            rows.append(
                ("(history)", _format_size(report.other.bytes), _format_kinds(report.other.objects))
            )
        yield from align_columns(rows, right={1})
        yield from (f"not removed: {error}" for error in report.errors)
        verb = "would remove" if report.is_dry else "removed"
        yield (
            f"{verb} {format_count(report.commits, 'commit')}, "
            f"{format_count(report.objects, 'object')}, {_format_size(report.bytes)}"
        )
        oldest = ", ".join(f"{name} from version {seq}" for name, seq in report.oldest.items())
        yield f"kept: {oldest}"
        if report.grace_s:
            grace = format_duration(report.grace_s)
            yield f"what was superseded, deleted or written less than {grace} ago stays"


@dataclass(frozen=True, slots=True)
class Repaired:
    """What a repair found and did."""

    uri: str
    report: RepairReport

    def to_json(self) -> JsonObject:
        """The document of `repair`."""
        return {**self.report.to_json(), "uri": self.uri}

    def to_lines(self) -> Iterator[str]:
        """A line per table that others wrote to and per stale object, then the outcome."""
        report = self.report
        foreign = [each for each in report.tables if each.action != "none"]
        yield from align_columns(
            [
                (
                    each.type_key,
                    str(each.classification),
                    str(each.action),
                    each.error or ", ".join(each.operations),
                )
                for each in foreign
            ]
        )
        yield from (f"{each.path}: {each.reason} ({each.action})" for each in report.derived)
        count = (
            format_count(len(foreign), "table"),
            format_count(len(report.derived), "derived object"),
        )
        what = "nothing to repair" if not (foreign or report.derived) else " and ".join(count)
        yield f"{what} in {self.uri}"
        if report.is_refused:
            yield "what others wrote is not part of the graph: save it, then remove it with --force"


@dataclass(frozen=True, slots=True)
class Tagged:
    """A tag that was created."""

    tag: Tag

    def to_json(self) -> JsonObject:
        """The document of a tag."""
        return self.tag.to_json()

    def to_lines(self) -> Iterator[str]:
        """What it names."""
        yield f"tagged commit {self.tag.commit_id} of {self.tag.branch} as {self.tag.name}"


@dataclass(frozen=True, slots=True)
class TagList:
    """All tags."""

    tags: Sequence[Tag]

    def to_json(self) -> JsonObject:
        """The document of `tag list`."""
        return {"tags": [tag.to_json() for tag in self.tags]}

    def to_lines(self) -> Iterator[str]:
        """A tag per line: its name, its commit, and where that is."""
        yield from align_columns(
            [
                (tag.name, tag.commit_id, f"version {tag.version} of {tag.branch}")
                for tag in self.tags
            ]
        )


def _format_kinds(objects: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in objects.items())


def _format_size(size: float) -> str:
    for unit in _UNITS[:-1]:
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} {_UNITS[-1]}"
