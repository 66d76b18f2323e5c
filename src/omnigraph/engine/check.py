"""A check of a whole graph: every structural invariant, verified from the stored bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from omnigraph.engine.checks.change_sets import ChangeSetCheck
from omnigraph.engine.checks.entities import EntityCheck
from omnigraph.engine.checks.problems import Problem, Problems
from omnigraph.engine.checks.refs import check_refs
from omnigraph.engine.checks.schemas import SchemaCheck
from omnigraph.engine.checks.streams import StreamCheck, Walked, lines_of
from omnigraph.execution.view import View
from omnigraph.storage import layout
from omnigraph.storage.objects import Objects
from omnigraph.storage.tables import Tables
from omnigraph.versioning.branches import Branches
from omnigraph.versioning.log import Log
from omnigraph.versioning.transaction import Committer

# Comparing a commit with its change sets reads its tables, so by default only so many are compared.
COMMITS_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What a check found, and how much it looked at."""

    problems: tuple[Problem, ...]
    branches: int
    commits: int
    entities: int

    @property
    def is_healthy(self) -> bool:
        """Whether there is no problem."""
        return not self.problems

    def to_json(self) -> dict[str, object]:
        """The report as a document."""
        return {
            "healthy": self.is_healthy,
            "branches": self.branches,
            "commits": self.commits,
            "entities": self.entities,
            "problems": [
                {"kind": found.kind, "where": found.where, "message": found.message}
                for found in self.problems
            ],
        }


def check_graph(
    objects: Objects, tables: Tables, *, commits_max: int | None = COMMITS_MAX
) -> CheckReport:
    """Verify a graph: every live branch, its records, tables and entities.

    Nothing is written. Give it tables that were just opened: what this process has open already
    would hide that it is gone. `commits_max` bounds how many of the newest commits of each branch
    are compared with their change sets; None compares all. A graph may be written meanwhile: the
    commits of the moment of the check are looked at.
    """
    problems = Problems()
    log = Log(objects)
    problems.attempt("format", layout.FORMAT, log.require_format)
    streams = check_refs(objects, Branches(Committer(log, tables)), problems)
    schemas = SchemaCheck(objects, problems)
    walker = StreamCheck(objects, schemas, problems)
    walked = {line.stream.id: walker.walk(line) for line in lines_of(streams)}
    entities = EntityCheck(log, problems)
    change_sets = ChangeSetCheck(objects, tables, problems)
    compared: set[tuple[str, int]] = set()
    for stream in streams:
        head = walked[stream.id].head
        stored = None if head is None else schemas.get(head.schema)
        if head is not None and stored is not None:
            entities.check(View(head, stored, tables))
        for line, seq in _newest(walked, stream.id, commits_max):
            before, after = line.before(seq), line.snapshots.get(seq)
            if before and after and (line.stream.id, seq) not in compared:
                change_sets.check(line.records[seq], before, after)
            compared.add((line.stream.id, seq))
    return CheckReport(
        problems=problems.all(),
        branches=len(streams),
        commits=sum(len(line.records) for line in walked.values()),
        entities=entities.count,
    )


def _newest(
    walked: dict[str, Walked], stream_id: str, commits_max: int | None
) -> list[tuple[Walked, int]]:
    """The newest records of a branch with those it started from, the older first."""
    line: Walked | None = walked[stream_id]
    last: int | None = None
    found: list[tuple[Walked, int]] = []
    while line is not None and (commits_max is None or len(found) < commits_max):
        own = [seq for seq in sorted(line.records, reverse=True) if last is None or seq <= last]
        found += [(line, seq) for seq in own]
        origins = line.stream.origins
        last = origins[0].seq if origins else None
        line = walked.get(origins[0].stream) if origins else None
    return list(reversed(found[:commits_max]))
