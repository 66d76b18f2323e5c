"""A check of a whole graph: every structural invariant, verified from the stored bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from omnigraph.engine.check.change_set_check import ChangeSetCheck
from omnigraph.engine.check.check_problems import Notice, Problem, Problems, translate_interrupts
from omnigraph.engine.check.checked_reads import TornFiles
from omnigraph.engine.check.entity_check import EntityCheck
from omnigraph.engine.check.pin_check import DigestCheck, PinCheck
from omnigraph.engine.check.ref_check import check_refs, report_nameless_streams
from omnigraph.engine.check.schema_check import SchemaCheck
from omnigraph.engine.check.stream_check import StreamCheck, WalkedStream, list_needed_streams
from omnigraph.html_views import HtmlDocument
from omnigraph.rows.view import View
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.object_store import Objects
from omnigraph.storage.tables.lance_tables import Tables
from omnigraph.versioning.branches import Branches
from omnigraph.versioning.committer import Committer
from omnigraph.versioning.log import Log
from omnigraph.versioning.log_snapshot import Snapshot
from omnigraph.versioning.proposals import ProposalLog
from omnigraph.versioning.record import Stream
from omnigraph.versioning.retention_floors import Floors
from omnigraph.versioning.tag_events import Tag

# Comparing a commit with its change sets reads its tables, so by default only so many are compared.
COMMITS_MAX: Final = 100
# Collections during one check; each of them releases more.
_COLLECTIONS_MAX: Final = 64

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True, repr=False)
class CheckReport(HtmlDocument):
    """What a check found, and how much it examined.

    `commits` had their records read and their tables opened; of these, `compared` had their change
    sets compared with the contents of their tables. Notices are not problems.
    """

    problems: tuple[Problem, ...]
    notices: tuple[Notice, ...]
    branches: int
    commits: int
    compared: int
    entities: int
    # How many files were compared with their digests; None if that was not asked for.
    files: int | None = None

    def __repr__(self) -> str:
        found = "healthy" if self.is_healthy else f"problems={len(self.problems)}"
        read = f"branches={self.branches}, commits={self.commits}, entities={self.entities}"
        return f"CheckReport({found}, notices={len(self.notices)}, {read})"

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
            "compared": self.compared,
            "entities": self.entities,
            **({} if self.files is None else {"files": self.files}),
            "problems": [
                {"kind": found.kind, "where": found.where, "message": found.message}
                for found in self.problems
            ],
            "notices": [
                {"kind": found.kind, "where": found.where, "message": found.message}
                for found in self.notices
            ],
        }


def check_graph(
    objects: Objects,
    tables: Tables,
    *,
    commits_max: int | None = COMMITS_MAX,
    is_deep: bool = False,
) -> CheckReport:
    """Verify a graph: every live branch, its records, tables and entities.

    Nothing is written. Give it tables that were just opened: what this process has open already
    would hide that it is gone. The tables of all commits are opened; `commits_max` bounds how many
    of the newest commits of each branch are compared with their change sets too, None compares all.
    A deep check reads every file of every kept commit and compares it with its digest.
    A graph may be written meanwhile: the commits of the moment of the check are examined.
    """
    return repeat_while_collected(
        objects,
        tables,
        lambda problems: _run_check(objects, tables, problems, commits_max, is_deep=is_deep),
    )


def repeat_while_collected(
    objects: Objects, tables: Tables, look: Callable[[Problems], tuple[Found, Roots]]
) -> Found:
    """What a look at a graph finds; problems that a collector made meanwhile do not matter."""
    with translate_interrupts():
        for _ in range(_COLLECTIONS_MAX):
            problems = Problems()
            found, roots = look(problems)
            is_healthy = not problems.list_problems()
            if is_healthy or not _is_reduced(roots, _read_roots(objects, tables, Problems())):
                break
        return found


@dataclass(frozen=True, slots=True)
class Roots:
    """What holds commits: branches with how far back they reach, and tags."""

    streams: tuple[Stream, ...]
    floors: Mapping[str, int]
    tags: tuple[Tag, ...]


def _read_roots(objects: Objects, tables: Tables, problems: Problems) -> Roots:
    branches = Branches(Committer(Log(objects), tables))
    streams = tuple(check_refs(objects, branches, problems))
    floors = Floors(objects)
    reached = {
        stream.id: problems.attempt("floor", stream.branch, partial(floors.read_floor, stream)) or 0
        for stream in streams
    }
    tags = problems.attempt("tag", layout.BRANCHES, lambda: tuple(branches.tags.list()))
    return Roots(streams, reached, tags or ())


def _is_reduced(before: Roots, after: Roots) -> bool:
    """Whether some commit is not held any more."""
    return any(
        after.floors.get(name, floor + 1) > floor for name, floor in before.floors.items()
    ) or not set(map(_build_tag_key, before.tags)) <= set(map(_build_tag_key, after.tags))


def _build_tag_key(tag: Tag) -> tuple[str, int]:
    return tag.name, tag.created_at


@dataclass(frozen=True, slots=True)
class WalkedGraph:
    """All records of a graph, as they were read: of every stream, by its id, and of tags."""

    roots: Roots
    schemas: SchemaCheck
    walked: Mapping[str, WalkedStream]

    @property
    def pinned(self) -> list[WalkedStream]:
        """Everything that refers to versions of tables."""
        return [*self.walked.values(), *map(_walk_tag, self.roots.tags)]

    @property
    def heads(self) -> list[Snapshot]:
        """The newest snapshot of every branch that could be made out."""
        found = (self.walked[stream.id].head for stream in self.roots.streams)
        return [head for head in found if head is not None]


def walk_graph(objects: Objects, tables: Tables, problems: Problems) -> WalkedGraph:
    """Read all records and schemas of a graph, and report what does not fit."""
    log = Log(objects)
    problems.attempt("format", layout.FORMAT, log.require_format)
    roots = _read_roots(objects, tables, problems)
    report_nameless_streams(objects, problems)
    _check_proposals(objects, problems)
    schemas = SchemaCheck(objects, problems)
    lines = list_needed_streams(roots.streams, roots.floors)
    walker = StreamCheck(objects, schemas, problems, lines, must_have_digests=log.must_have_digests)
    return WalkedGraph(roots, schemas, {line.stream.id: walker.walk(line) for line in lines})


def _check_proposals(objects: Objects, problems: Problems) -> None:
    """Read the events of every proposal; the index is derived, and proves nothing."""
    log = ProposalLog(objects, lambda: 0)
    for number in problems.attempt("proposal", layout.PROPOSALS, log.list_numbers) or ():
        folder = layout.build_proposal_folder(number)
        problems.attempt("proposal", folder, partial(log.read, number))


def _run_check(
    objects: Objects,
    tables: Tables,
    problems: Problems,
    commits_max: int | None,
    *,
    is_deep: bool,
) -> tuple[CheckReport, Roots]:
    graph = walk_graph(objects, tables, problems)
    schemas, walked, streams = graph.schemas, graph.walked, graph.roots.streams
    torn = TornFiles(objects, tables)
    entities = EntityCheck(Log(objects), torn, problems)
    for head in graph.heads:
        stored = schemas.get(head.schema)
        if stored is not None:
            entities.check(View(head, stored, tables))
    current = dict.fromkeys(pin for head in graph.heads for pin in head.pins.values())
    pins = PinCheck(objects, torn, schemas, problems)
    pins.check(graph.pinned, read=entities.read, current=current)
    newest = [each for stream in streams for each in _select_newest(walked, stream.id, commits_max)]
    compared = _compare_change_sets(newest, ChangeSetCheck(objects, torn, schemas, problems))
    digests = DigestCheck(objects, tables, problems) if is_deep else None
    if digests is not None:
        digests.check(graph.pinned, current=current)
    report = CheckReport(
        problems=problems.list_problems(),
        notices=problems.list_notices(),
        branches=len(streams),
        commits=sum(len(line.records) for line in walked.values()),
        compared=compared,
        entities=entities.count,
        files=None if digests is None else digests.count,
    )
    return report, graph.roots


def _walk_tag(tag: Tag) -> WalkedStream:
    """The commit of a tag, as if it were a line of its own."""
    at = tag.snapshot
    return WalkedStream(at.stream, None, snapshots={at.seq: at})


def _compare_change_sets(
    commits: list[tuple[WalkedStream, int]], change_sets: ChangeSetCheck
) -> int:
    """Compare commits with their change sets, each once; how many there were."""
    seen: set[tuple[str, int]] = set()
    for line, seq in commits:
        before, after = line.find_snapshot_before(seq), line.snapshots.get(seq)
        if before and after and (line.stream.id, seq) not in seen:
            change_sets.check(line.records[seq], before, after)
        seen.add((line.stream.id, seq))
    return len(seen)


def _select_newest(
    walked: Mapping[str, WalkedStream], stream_id: str, commits_max: int | None
) -> list[tuple[WalkedStream, int]]:
    """The newest records of a branch with those it started from, the older first."""
    line: WalkedStream | None = walked[stream_id]
    last: int | None = None
    found: list[tuple[WalkedStream, int]] = []
    while line is not None and (commits_max is None or len(found) < commits_max):
        own = [seq for seq in sorted(line.records, reverse=True) if last is None or seq <= last]
        found += [(line, seq) for seq in own]
        origins = line.stream.origins
        last = origins[0].seq if origins else None
        line = walked.get(origins[0].stream) if origins else None
    return list(reversed(found[:commits_max]))
