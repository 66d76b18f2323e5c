"""How commits descend from each other: forks, merge bases, ancestors, the records between."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

import pytest

from omnigraph.errors import HistoryGoneError
from omnigraph.storage.objects import layout
from omnigraph.versioning import MAIN, Lineage, Record, Snapshot, Stream, Transaction
from omnigraph.versioning.first_parents import is_on_line
from omnigraph.versioning.record import CommitRef
from omnigraph.versioning.schema_store import Schemas
from omnigraph.versioning.shared_history import compute_shared_sum
from unit.versioning.memory_storage import MemoryObjects
from unit.versioning.small_graph import SmallGraph, memory_graph


def _lineage(graph: SmallGraph) -> Lineage:
    return Lineage(graph.log, graph.branches, Schemas(graph.objects))


@dataclass
class Family:
    """A graph whose commits change nothing, with all their parents."""

    graph: SmallGraph = field(default_factory=memory_graph)
    parents: dict[str, list[str]] = field(default_factory=dict)
    places: dict[str, Snapshot] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._keep(MAIN)

    @property
    def objects(self) -> MemoryObjects:
        """Where it is stored."""
        assert isinstance(self.graph.objects, MemoryObjects)
        return self.graph.objects

    def commit(self, stream: Stream, merged: Snapshot | None = None) -> Snapshot:
        """A commit on a branch, a merge if another one is given."""
        ref = None if merged is None else merged.ref
        self.graph.write(lambda head: Transaction(head, (), {}, merged=ref), stream)
        return self._keep(stream)

    def commits(self, stream: Stream, count: int) -> Snapshot:
        """Some commits on a branch; the last one."""
        return [self.commit(stream) for _ in range(count)][-1]

    def branch(self, name: str, at: Snapshot) -> Stream:
        """A branch that starts at a commit."""
        return self.graph.branches.create(name, at=at)

    def lineage(self) -> Lineage:
        """The lineage as another process sees it."""
        return _lineage(self.graph.reopened())

    def distances(self, commit: str) -> dict[str, int]:
        """How far each ancestor is from a commit."""
        found, queue = {commit: 0}, [commit]
        for each in queue:
            for parent in self.parents[each]:
                if parent not in found:
                    found[parent] = found[each] + 1
                    queue.append(parent)
        return found

    def base(self, a: str, b: str) -> str:
        """The best common ancestor, found by looking at all of them."""
        ours, theirs = self.distances(a), self.distances(b)
        common = ours.keys() & theirs.keys()
        best = [
            each
            for each in common
            if not any(each != other and each in self.distances(other) for other in common)
        ]
        return max(best, key=lambda each: (-ours[each] - theirs[each], *self._rank(each)))

    def _rank(self, commit: str) -> tuple[int, int, str]:
        place = self.places[commit]
        return place.seq, place.created_at, commit

    def _keep(self, stream: Stream) -> Snapshot:
        head = self.graph.head(stream)
        record = self.graph.log.read(head.ref.stream, head.seq)
        assert isinstance(record, Record)
        merged = [] if record.merged is None else [record.merged.commit]
        self.parents[head.commit] = ([] if record.parent is None else [record.parent]) + merged
        self.places[head.commit] = head
        return head


def test_a_fresh_branch_forks_where_it_started() -> None:
    family = Family()
    start = family.commits(MAIN, 3)
    review = family.branch("review", start)
    assert (
        family.lineage().find_last_shared(family.graph.head(review), start).commit == start.commit
    )
    later = family.commits(MAIN, 2)
    lineage = family.lineage()
    assert lineage.find_last_shared(family.graph.head(review), later).commit == start.commit
    assert lineage.find_merge_base(later, family.graph.head(review)).commit == start.commit
    own = family.commits(review, 2)
    assert (
        lineage.find_last_shared(own, later).commit
        == lineage.find_merge_base(own, later).commit
        == start.commit
    )


def test_the_fork_of_branches_of_branches_is_on_the_line_that_both_share() -> None:
    family = Family()
    first = family.branch("a", family.commits(MAIN, 2))
    second = family.branch("a/b", family.commits(first, 3))
    third = family.branch("c", family.graph.head(first))
    family.commits(first, 1)
    heads = [family.commits(second, 2), family.commits(third, 1), family.commits(MAIN, 4)]
    lineage = family.lineage()
    assert lineage.find_last_shared(heads[0], heads[1]).ref == CommitRef(
        "a", first.id, 5, heads[0].stream.origins[0].commit
    )
    assert (
        lineage.find_last_shared(heads[0], heads[2]).seq
        == lineage.find_last_shared(heads[2], heads[1]).seq
        == 2
    )


def test_a_repeated_merge_starts_from_the_commit_that_was_merged_last() -> None:
    family = Family()
    review = family.branch("review", family.commits(MAIN, 1))
    merged = family.commits(review, 2)
    family.commits(MAIN, 1)
    family.commit(MAIN, merged)
    theirs = family.commits(review, 2)
    assert family.lineage().find_merge_base(family.graph.head(), theirs).commit == merged.commit


def test_an_ancestor_of_another_common_ancestor_is_never_the_base() -> None:
    """A near one would undo what the two share: see `Lineage.base`."""
    family = Family()
    review = family.branch("review", family.commits(MAIN, 1))
    old = family.commits(review, 1)
    family.commit(MAIN, old)
    shared = family.commits(MAIN, 1)
    other = family.branch("other", shared)
    family.commits(MAIN, 20)
    main = family.commit(MAIN, family.commits(review, 1))
    ours, theirs = (family.distances(each.commit) for each in (main, family.commits(other, 1)))
    assert ours[old.commit] + theirs[old.commit] < ours[shared.commit] + theirs[shared.commit]
    assert family.lineage().find_merge_base(main, family.graph.head(other)).commit == shared.commit


def test_of_the_bases_of_crosswise_merges_the_nearest_is_taken() -> None:
    family = Family()
    review = family.branch("review", family.commits(MAIN, 1))
    ours, theirs = family.commits(MAIN, 3), family.commits(review, 1)
    crossed = family.commit(MAIN, theirs), family.commit(review, ours)
    # Both are at the distance 2; that of main has the higher version.
    assert family.lineage().find_merge_base(*crossed).commit == ours.commit
    assert family.lineage().find_merge_base(*reversed(crossed)).commit == ours.commit


def assert_every_shared_commit_counts_once(family: Family, a: Snapshot, b: Snapshot) -> None:
    found = compute_shared_sum(family.lineage(), a, b)
    assert found is not None
    counts = Counter[str]()
    for each in found:
        for older in family.distances(each.snapshot.commit):
            counts[older] += each.weight
    common = family.distances(a.commit).keys() & family.distances(b.commit).keys()
    assert {commit: count for commit, count in counts.items() if count} == dict.fromkeys(common, 1)


@pytest.mark.parametrize("seed", range(60))
def test_lineages_of_random_families_are_those_that_a_look_at_everything_finds(seed: int) -> None:
    family, chance = Family(), random.Random(seed)
    streams = [MAIN]
    for number in range(chance.randrange(10, 45)):
        stream = chance.choice(streams)
        match chance.randrange(5):
            case 0 if len(streams) < 6:
                start = chance.choice(list(family.places.values()))
                streams.append(family.branch(f"b{number}", start))
            case 1 | 2:
                source = family.graph.head(chance.choice(streams))
                if source.commit not in family.distances(family.graph.head(stream).commit):
                    family.commit(stream, source)
            case _:
                family.commit(stream)
    lineage = family.lineage()
    for _ in range(30):
        a, b = (chance.choice(list(family.places.values())) for _ in range(2))
        assert lineage.find_merge_base(a, b).commit == family.base(a.commit, b.commit)
        assert_every_shared_commit_counts_once(family, a, b)
        shared = lineage.find_last_shared(a, b)
        assert is_on_line(a, shared.ref)
        assert is_on_line(b, shared.ref)


def test_a_commit_on_a_line_is_the_base_without_a_read() -> None:
    family = Family()
    first = family.commits(MAIN, 1)
    head = family.commits(family.branch("review", family.commits(MAIN, 5)), 5)
    lineage = family.lineage()
    family.objects.calls.clear()
    assert lineage.find_merge_base(head, first) == first
    assert family.objects.calls == []


def test_a_base_is_found_without_reading_what_is_older() -> None:
    family = Family()
    start = family.commits(MAIN, 300)
    review = family.branch("review", start)
    ours, theirs = family.commits(MAIN, 3), family.commits(review, 5)
    lineage = family.lineage()
    family.objects.calls.clear()
    assert lineage.find_merge_base(ours, theirs).commit == start.commit
    assert len(family.objects.calls) <= 20


def test_the_records_between_are_those_of_the_line_oldest_first() -> None:
    family = Family()
    start = family.commits(MAIN, 3)
    review = family.branch("review", start)
    family.commits(review, 2)
    merge = family.commit(review, family.commits(MAIN, 2))
    lineage = family.lineage()
    assert [record.seq for record in lineage.read_between(merge, 1)] == [2, 3, 4, 5, 6]
    assert {record.branch for record in lineage.read_between(merge, 3)} == {"review"}
    assert lineage.read_between(merge, merge.seq) == []
    assert lineage.has_merges(merge, 3)
    assert not lineage.has_merges(start, 0)


def test_the_start_of_a_branch_is_its_base_even_if_the_records_there_were_collected() -> None:
    family = Family()
    start = family.commits(MAIN, 3)
    review = family.branch("review", start)
    ours, theirs = family.commits(MAIN, 4), family.commits(review, 2)
    family.objects.delete(layout.build_record_path(MAIN.id, seq) for seq in range(1, 6))
    lineage = family.lineage()
    assert lineage.find_merge_base(ours, theirs).commit == start.commit
    assert lineage.find_last_shared(ours, theirs).commit == start.commit
    with pytest.raises(HistoryGoneError, match="version 5 of branch 'main' is not stored"):
        lineage.read_between(ours, start.seq)


def test_a_merge_of_a_branch_that_left_no_trace_ends_there() -> None:
    family = Family()
    start = family.commits(MAIN, 1)
    gone = family.branch("gone", start)
    family.commit(MAIN, family.commits(gone, 2))
    review = family.branch("review", family.graph.head())
    theirs, ours = family.commits(review, 1), family.commits(MAIN, 1)
    family.objects.delete(
        [entry.path for entry in family.objects.list(layout.build_stream_folder(gone.id))]
    )
    lineage = family.lineage()
    assert lineage.find_merge_base(ours, theirs).commit == review.origins[0].commit


def test_a_deleted_branch_still_tells_where_its_commits_came_from() -> None:
    family = Family()
    gone = family.branch("gone", family.commits(MAIN, 2))
    inner = family.branch("inner", family.commits(gone, 2))
    merge = family.commit(MAIN, family.commits(inner, 1))
    family.graph.branches.delete("inner")
    family.graph.branches.delete("gone")
    again = family.branch("gone", merge)
    ours = family.commits(again, 1)
    lineage = family.lineage()
    places = family.places.values()
    assert all(lineage.find_merge_base(ours, place).commit == place.commit for place in places)
    assert family.graph.branches.stream_of("gone", gone.id) == gone
    assert family.graph.branches.stream_of("gone", again.id) == again
    assert family.graph.branches.stream_of("gone", "gone.other") is None
