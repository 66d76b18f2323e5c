"""Answers about clean-up, repair, upgrades and tags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from omnigraph.cli.views.answer_views import JsonObject
from omnigraph.cli.views.output_streams import align_columns, format_count
from omnigraph.durations import format_duration

if TYPE_CHECKING:
    from omnigraph.engine import CleanupReport, RepairReport, Tag, UpgradeReport
    from omnigraph.engine.repair import BrokenBranch

if TYPE_CHECKING:
    from omnigraph import Commit
    from omnigraph.engine import IndexBuildResult, IndexStatus, OptimizeResult
    from omnigraph.writers.maintain import PendingIndex

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")

# The one kind of index, as documents call it.
_KIND: Final = "btree"


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
        """A line per table that others wrote to, per stale and per damaged object; the outcome."""
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
        for damaged in report.damaged:
            yield f"{damaged.path}: {damaged.reason}"
            yield f"  {damaged.advice}"
        yield from (line for each in report.branches for line in self._describe_branch(each))
        found = {
            format_count(len(foreign), "table"): foreign,
            format_count(len(report.derived), "derived object"): report.derived,
            format_count(len(report.damaged), "damaged object"): report.damaged,
        }
        what = ", ".join(text for text, each in found.items() if each) or "nothing to repair"
        yield f"{what} in {self.uri}"
        if report.is_refused:
            yield "what others wrote is not part of the graph: save it, then remove it with --force"

    def _describe_branch(self, broken: BrokenBranch) -> Iterator[str]:
        if broken.types:
            yield f"{broken.branch}: cannot be read completely: {', '.join(broken.types)}"
        else:
            yield f"{broken.branch}: its newest commit cannot be read"
        if broken.whole_commit is None:
            yield "  no commit of it is whole"
            return
        yield f"  the newest whole commit is {broken.whole_commit}, version {broken.whole_version}"
        yield (
            f"  `omnigraph branch create rescued --uri {self.uri} --from {broken.whole_commit}`"
            " starts a branch there"
        )


# What the steps of an upgrade change, in words.
_UPGRADE_STEPS: Final = {
    "move_tags": ("tag", "joined the events of branches"),
    "add_digests": ("object", "got digests"),
}


@dataclass(frozen=True, slots=True)
class Upgraded:
    """What an upgrade changed, or would change."""

    uri: str
    report: UpgradeReport

    def to_json(self) -> JsonObject:
        """The document of `upgrade`."""
        return {**self.report.to_json(), "uri": self.uri}

    def to_lines(self) -> Iterator[str]:
        """A line per step, then from which format to which one."""
        report = self.report
        if not report.is_needed:
            yield f"{self.uri} has format {report.target.number}, the current one"
            return
        for step in report.steps:
            noun, change = _UPGRADE_STEPS[step.name]
            yield f"{format_count(step.changed, noun)}: {change}"
        verb = "would go" if report.is_dry else "went"
        numbers = f"from format {report.source.number} to {report.target.number}"
        yield f"{self.uri} {verb} {numbers}: {', '.join(sorted(report.target.features))}"


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


@dataclass(frozen=True, slots=True)
class Indexes:
    """The declared indexes of a branch."""

    uri: str
    branch: str
    statuses: Sequence[IndexStatus]

    def to_json(self) -> JsonObject:
        """The document of `index status`."""
        return {
            "uri": self.uri,
            "branch": self.branch,
            "indexes": [status.to_json() for status in self.statuses],
        }

    def to_lines(self) -> Iterator[str]:
        """An index per line: type, property, kind, state, covered of all rows, reason."""
        yield from align_columns(
            [
                (
                    str(status.type_key),
                    status.property,
                    _KIND,
                    status.state.value,
                    f"{status.covered_rows}/{status.total_rows}",
                    status.reason or "",
                )
                for status in self.statuses
            ],
            right={4},
        )
        states = [status.state.value for status in self.statuses]
        found = ", ".join(f"{states.count(each)} {each}" for each in sorted(set(states)))
        count = format_count(len(states), "index", plural="indexes")
        yield f"{count} on {self.branch}: {found or 'nothing declared'}"


@dataclass(frozen=True, slots=True)
class IndexesBuilt:
    """What an index build did."""

    uri: str
    result: IndexBuildResult

    def to_json(self) -> JsonObject:
        """The document of `index build`."""
        return {**self.result.to_json(), "uri": self.uri}

    def to_lines(self) -> Iterator[str]:
        """A built or pending index per line, and the commit."""
        yield from align_columns(
            [("built", str(index.type_key), index.property, _KIND) for index in self.result.built]
        )
        yield from _format_pending(self.result.pending)
        built = format_count(len(self.result.built), "index", plural="indexes")
        yield f"built {built} on {self.result.branch}: {_format_outcome(self.result.commit)}"


@dataclass(frozen=True, slots=True)
class Optimized:
    """What an optimization did."""

    uri: str
    result: OptimizeResult

    def to_json(self) -> JsonObject:
        """The document of `optimize`."""
        return {**self.result.to_json(), "uri": self.uri}

    def to_lines(self) -> Iterator[str]:
        """A table that changed per line, then what has to wait, and the commit."""
        changed = [table for table in self.result.tables if table.version is not None]
        yield from align_columns(
            [
                (
                    str(table.type_key),
                    f"{table.fragments_removed} fragments joined into {table.fragments_added}",
                    "indexed "
                    + (", ".join(one.property for one in table.indexes) or "nothing new"),
                )
                for table in changed
            ]
        )
        yield from _format_pending([one for table in self.result.tables for one in table.pending])
        tables = format_count(len(changed), "table")
        yield f"optimized {tables} of {self.result.branch}: {_format_outcome(self.result.commit)}"


def _format_pending(pending: Sequence[PendingIndex]) -> list[str]:
    return list(
        align_columns([("pending", str(one.type_key), one.property, one.reason) for one in pending])
    )


def _format_outcome(commit: Commit | None) -> str:
    return "nothing to do" if commit is None else f"commit {commit.id}"
