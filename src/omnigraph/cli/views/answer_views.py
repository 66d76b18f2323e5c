"""What verbs answer, each as one JSON document and as lines for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from omnigraph.cli.views.output_streams import (
    align_columns,
    format_count,
    format_time,
    print_json,
    print_lines,
)
from omnigraph.error_codes import ErrorCode
from omnigraph.lang.quoting import escape_unprintable

if TYPE_CHECKING:
    from omnigraph import Commit, Snapshot
    from omnigraph.engine import CheckReport, LoadResult, MutationResult, SchemaResult, TableInfo
    from omnigraph.schema.migration import MigrationPlan

JsonObject = dict[str, Any]  # Any: a JSON document


class Document(Protocol):
    """An answer with its two views."""

    def to_json(self) -> JsonObject:
        """The answer for programs."""

    def to_lines(self) -> Iterable[str]:
        """The answer for people."""


def show(document: Document, *, is_json: bool, failure: ErrorCode | None = None) -> None:
    """Print an answer for programs or for people; a report of a failure says which kind it is."""
    if is_json:
        code = {} if failure is None else {"code": str(failure)}
        print_json(document.to_json() | code)
    else:
        print_lines(document.to_lines())


@dataclass(frozen=True, slots=True)
class Fields:
    """A small answer: a document of its own, and the sentence that says the same."""

    document: JsonObject
    sentence: str

    def to_json(self) -> JsonObject:
        """The fields."""
        return self.document

    def to_lines(self) -> Iterable[str]:
        """The sentence."""
        return [self.sentence] if self.sentence else []


@dataclass(frozen=True, slots=True)
class Loaded:
    """A load, and the branch that was created for it."""

    uri: str
    result: LoadResult
    base_branch: str | None
    is_branch_created: bool

    def to_json(self) -> JsonObject:
        """The document of `load`: that of the result, with what was done before it."""
        base = {} if self.base_branch is None else {"base_branch": self.base_branch}
        return {
            **self.result.to_json(),
            **base,
            "uri": self.uri,
            "branch_created": self.is_branch_created,
        }

    def to_lines(self) -> Iterator[str]:
        """What was loaded, a type per line."""
        nodes, edges = self.result.nodes, self.result.edges
        yield from align_columns(
            [
                *(("node", name, str(nodes[name])) for name in sorted(nodes)),
                *(("edge", name, str(edges[name])) for name in sorted(edges)),
            ],
            right={2},
        )
        total = format_count(self.result.total_entities, "entity", plural="entities")
        new = f", created from {self.base_branch}" if self.is_branch_created else ""
        if self.result.is_dry:
            yield f"would load {total} into {self.result.branch}; nothing was written"
        else:
            yield f"loaded {total} into {self.result.branch}{new}: commit {self.result.commit.id}"
        if self.result.rejected:
            rejects = f", see {self.result.rejects}" if self.result.rejects else ""
            yield f"left out {format_count(self.result.rejected, 'record')}{rejects}"


@dataclass(frozen=True, slots=True)
class Mutated:
    """What a mutation did."""

    result: MutationResult

    def to_json(self) -> JsonObject:
        """The document of `mutate`."""
        return self.result.to_json()

    def to_lines(self) -> Iterator[str]:
        """How much changed, and the commit that says so."""
        nodes = format_count(self.result.affected_nodes, "node")
        edges = format_count(self.result.affected_edges, "edge")
        commit = self.result.commit
        outcome = "nothing was written" if commit is None else f"commit {commit.id}"
        outcome = "a dry run, nothing was written" if self.result.is_dry else outcome
        yield f"{self.result.query_name}: {nodes}, {edges} on {self.result.branch}: {outcome}"


@dataclass(frozen=True, slots=True)
class Branches:
    """The branches of a graph."""

    names: Sequence[str]

    def to_json(self) -> JsonObject:
        """The document of `branch list`."""
        return {"branches": sorted(self.names)}

    def to_lines(self) -> Iterable[str]:
        """A name per line."""
        return map(escape_unprintable, sorted(self.names))


@dataclass(frozen=True, slots=True)
class Commits:
    """Some commits, newest first."""

    commits: Sequence[Commit]

    def to_json(self) -> JsonObject:
        """The document of `commit list`."""
        return {"commits": [commit.to_json() for commit in self.commits]}

    def to_lines(self) -> Iterable[str]:
        """A commit per line: id, version, time, branch, actor, message."""
        return align_columns([_format_commit_cells(commit) for commit in self.commits], right={1})


@dataclass(frozen=True, slots=True)
class OneCommit:
    """A commit."""

    commit: Commit

    def to_json(self) -> JsonObject:
        """The document of `commit show`."""
        return self.commit.to_json()

    def to_lines(self) -> Iterable[str]:
        """What is known of the commit, a line each."""
        commit = self.commit
        known = {
            "commit": commit.id,
            "branch": commit.branch,
            "version": str(commit.version),
            "parents": " ".join(commit.parents) or "none",
            "actor": commit.actor or "none",
            "created": format_time(commit.created_at),
            "message": commit.message,
            "maintenance": "no entity changed" if commit.is_maintenance else None,
        }
        return [f"{name}: {escape_unprintable(value)}" for name, value in known.items() if value]


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of a snapshot."""

    snapshot: Snapshot

    def to_json(self) -> JsonObject:
        """The document of `snapshot`."""
        return self.snapshot.to_json()

    def to_lines(self) -> Iterator[str]:
        """The commit, then a table per line."""
        commit = self.snapshot.commit
        yield f"branch {self.snapshot.branch} at version {self.snapshot.version}: {commit.id}"
        yield from align_columns(
            [
                (table.kind, table.type_name, str(table.rows), table.version, table.path)
                for table in self.snapshot.tables()
            ],
            right={2},
        )


@dataclass(frozen=True, slots=True)
class Pins:
    """Where other tools find the tables of a snapshot: an address and a version each."""

    # Absolute: other tools may run elsewhere.
    uri: str
    snapshot: Snapshot

    def to_json(self) -> JsonObject:
        """The document of `pins`."""
        return {
            "uri": self.uri,
            "graph_commit_id": self.snapshot.commit.id,
            "pins": [
                {
                    "entity_kind": table.kind,
                    "type_name": table.type_name,
                    "dataset_uri": self._format_address(table),
                    "version": table.version,
                    "entity_count": table.rows,
                    "columns": dict(table.columns),
                }
                for table in self.snapshot.tables()
            ],
        }

    def to_lines(self) -> Iterable[str]:
        """A table per line: kind, type, version, address."""
        return align_columns(
            [
                (table.kind, table.type_name, table.version, self._format_address(table))
                for table in self.snapshot.tables()
            ]
        )

    def _format_address(self, table: TableInfo) -> str:
        return f"{self.uri.rstrip('/')}/{table.path}"


@dataclass(frozen=True, slots=True)
class SchemaPlan:
    """The steps to a schema, not yet taken."""

    uri: str
    plan: MigrationPlan

    def to_json(self) -> JsonObject:
        """The document of `schema plan`."""
        return {"uri": self.uri, **self.plan.to_json()}

    def to_lines(self) -> list[str]:
        """A step per line, and the verdict."""
        if not self.plan.steps:
            return ["no changes"]
        return [
            *(f"- {step}" for step in self.plan.steps),
            *(violation.message for violation in self.plan.violations),
            f"{format_count(len(self.plan.steps), 'step')}, {self._format_verdict()}",
        ]

    def _format_verdict(self) -> str:
        plan = self.plan
        if not plan.supported:
            return "NOT supported"
        if not plan.checks or plan.is_checked:
            return "supported"
        return f"supported if entities pass {format_count(len(plan.checks), 'check')}"


@dataclass(frozen=True, slots=True)
class Applied:
    """A schema change that was made."""

    uri: str
    result: SchemaResult

    def to_json(self) -> JsonObject:
        """The document of `schema apply`."""
        return {**self.result.to_json(), "uri": self.uri}

    def to_lines(self) -> list[str]:
        """A step per line, and the commit."""
        steps = self.result.plan.steps
        if self.result.is_dry:
            count = format_count(len(steps), "step")
            return [*(f"- {step}" for step in steps), f"{count} planned; nothing was written"]
        if self.result.commit is None:
            return ["no changes; nothing was written"]
        return [
            *(f"- {step}" for step in steps),
            f"{format_count(len(steps), 'step')} applied: commit {self.result.commit.id}",
        ]


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """What a check of a graph found."""

    uri: str
    report: CheckReport

    def to_json(self) -> JsonObject:
        """The document of `check`."""
        return {"uri": self.uri, **self.report.to_json()}

    def to_lines(self) -> Iterator[str]:
        """A problem or a notice per line, and the verdict with how much was examined."""
        report = self.report
        yield from (escape_unprintable(str(problem)) for problem in report.problems)
        yield from (f"notice: {escape_unprintable(str(notice))}" for notice in report.notices)
        verdict = format_count(len(report.problems), "problem") if report.problems else "ok"
        is_all = report.compared == report.commits
        compared = "all" if is_all else f"the newest {report.compared}"
        looked_at = (
            format_count(report.branches, "branch", plural="branches"),
            format_count(report.commits, "commit"),
            f"contents of {compared} compared",
            format_count(report.entities, "entity", plural="entities"),
            *([] if report.files is None else [f"{format_count(report.files, 'file')} verified"]),
        )
        yield f"{self.uri}: {verdict} ({', '.join(looked_at)})"


def _format_commit_cells(commit: Commit) -> tuple[str, ...]:
    message = "(maintenance)" if commit.is_maintenance else commit.message or ""
    actor = commit.actor or "-"
    when = format_time(commit.created_at)
    return commit.id, str(commit.version), when, commit.branch, actor, message
