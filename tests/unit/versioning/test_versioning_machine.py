"""Random lives of a graph, with crashes, compared with a plain Python model.

The model keeps, for every branch, the list of its states. A simulated process dies before or after
any durable step; whoever opens the graph next must find the state before the operation or the
state after it, and can go on.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    precondition,
    rule,
)

from omnigraph.errors import BranchExistsError, BranchGoneError, BranchNotFoundError, StorageError
from omnigraph.storage.objects.faults import (
    Fault,
    FaultKind,
    FaultyObjects,
    FaultyTables,
    SimulatedCrash,
    Steps,
)
from omnigraph.versioning import MAIN, Publishers, Record, Settings, Stream, compact
from unit.versioning.memory_storage import MemoryObjects, MemoryTables
from unit.versioning.small_graph import (
    CITY,
    PERSON,
    SmallGraph,
    create_graph,
    deleting,
    inserting,
    upserting,
)

NAMES = st.sampled_from(["a", "a/b", "c"])
IDS = st.sampled_from([f"p{number}" for number in range(6)])
VALUES = st.dictionaries(IDS, st.sampled_from("xyz"), min_size=1, max_size=3)
DURABLE_STEPS_MAX = 6

# One state of a graph: the people and the cities.
State = tuple[dict[str, str], dict[str, str]]


@dataclass
class ModelBranch:
    """A branch as the list of its states; the seq of a state is its place."""

    states: list[State]
    is_closed: bool = False


@dataclass
class Model:
    """Live branches by name."""

    live: dict[str, ModelBranch] = field(default_factory=dict)

    def commit(self, name: str, people: dict[str, str], cities: dict[str, str]) -> None:
        self.live[name].states.append((people, cities))


class Lives(RuleBasedStateMachine):
    """A graph and its model, through the lives of several processes."""

    gone: Bundle[Stream] = Bundle("gone")

    @initialize()
    def create(self) -> None:
        self.objects, self.tables = MemoryObjects(), MemoryTables()
        self.graph = create_graph(self.objects, self.tables)
        self.model = Model({"main": ModelBranch([({}, {})])})
        self.crash: Fault | None = None

    @rule(
        number=st.integers(1, DURABLE_STEPS_MAX),
        kind=st.sampled_from(
            [FaultKind.CRASH_BEFORE, FaultKind.CRASH_AFTER, FaultKind.UNKNOWN_AFTER]
        ),
    )
    def plan_a_fault(self, number: int, kind: FaultKind) -> None:
        """The next operation runs in a process that meets a fault."""
        self.crash = Fault(number, kind, "")

    @rule()
    def reopen(self) -> None:
        self.graph = self.graph.reopened()

    @rule(which=st.integers(0, 9), cut=st.integers(0, 60))
    def tear_a_derived_object(self, which: int, cut: int) -> None:
        derived = sorted(p for p in self.objects.data if "latest" in p or "/checkpoints/" in p)
        path = derived[which % len(derived)] if derived else None
        if path is not None:
            self.objects.put(path, self.objects.data[path][:cut])
            self.graph = self.graph.reopened()

    @rule(values=VALUES, pick=st.integers(0, 9))
    def upsert(self, values: dict[str, str], pick: int) -> None:
        name, branch = self._picked(pick)
        people, cities = branch.states[-1]
        self._write(name, lambda graph: upserting(graph, values), ({**people, **values}, cities))

    @rule(ids=st.sets(IDS, min_size=1, max_size=2), pick=st.integers(0, 9))
    def delete_people(self, ids: set[str], pick: int) -> None:
        name, branch = self._picked(pick)
        people, cities = branch.states[-1]
        gone = ids & people.keys()
        if gone:
            left = {key: value for key, value in people.items() if key not in gone}
            self._write(name, lambda graph: deleting(graph, gone), (left, cities))

    @rule(entity_id=IDS, pick=st.integers(0, 9))
    def insert_a_city(self, entity_id: str, pick: int) -> None:
        name, branch = self._picked(pick)
        people, cities = branch.states[-1]
        if entity_id not in cities:
            prepare = lambda graph: inserting(graph, {entity_id: "c"}, CITY)  # noqa: E731
            self._write(name, prepare, (people, {**cities, entity_id: "c"}))

    @rule(pick=st.integers(0, 9))
    def compact_people(self, pick: int) -> None:
        name, branch = self._picked(pick)
        if branch.is_closed:
            return
        head = self.graph.branches.read_head(name).snapshot
        if self.tables.plan_compaction(head.pins[PERSON]) is None:
            assert self._compact(self.graph, name) is None
            return
        after = deepcopy(self.model)
        after.commit(name, *branch.states[-1])
        self._run(
            lambda graph: self._compact(graph, name),
            after,
            lambda: self._length(name) > len(branch.states),
        )

    def _compact(self, graph: SmallGraph, name: str) -> Record | None:
        return compact(Publishers(graph.committer), graph.branches.resolve(name), PERSON)

    @rule(name=NAMES, source=st.integers(0, 9), at=st.integers(0, 99))
    def create_branch(self, name: str, source: int, at: int) -> None:
        source_name, branch = self._picked(source)
        seq = at % len(branch.states)
        if name in self.model.live:
            with_head = self.graph.branches.read_head("main").snapshot
            try:
                self.graph.branches.create(name, at=with_head)
            except BranchExistsError:
                return
            raise AssertionError("a live name was created again")
        after = deepcopy(self.model)
        after.live[name] = ModelBranch(list(branch.states[: seq + 1]))

        def run(graph: SmallGraph) -> None:
            point = graph.history.read_by_seq(graph.branches.resolve(source_name), seq)
            graph.branches.create(name, at=point)

        self._run(run, after, lambda: name in self._live_names())

    @rule(target=gone, name=NAMES)
    def delete_branch(self, name: str) -> Stream:
        if name not in self.model.live:
            try:
                self.graph.branches.delete(name)
            except BranchNotFoundError:
                return MAIN
            raise AssertionError("a branch that does not live was deleted")
        stream = self.graph.branches.resolve(name)
        after = deepcopy(self.model)
        del after.live[name]
        self._run(
            lambda graph: graph.branches.delete(name), after, lambda: name not in self._live_names()
        )
        if name in self.model.live:
            self.model.live[name].is_closed = self.graph.branches.read_head(name).is_closed
        return stream

    @rule(stream=consumes(gone))
    def write_to_a_deleted_branch(self, stream: Stream) -> None:
        if stream == MAIN or any(
            self.graph.branches.resolve(name) == stream for name in self.model.live
        ):
            return
        try:
            self.graph.write(upserting(self.graph, {"ghost": "x"}), stream)
        except BranchGoneError:
            return
        raise AssertionError("a deleted branch took a commit")

    @precondition(lambda self: self.crash is None)
    @invariant()
    def every_state_of_every_branch_equals_the_model(self) -> None:
        assert self._live_names() == ["main", *sorted(self.model.live.keys() - {"main"})]
        for name, branch in self.model.live.items():
            stream = self.graph.branches.resolve(name)
            head = self.graph.log.read_head(stream)
            assert (head.snapshot.seq, head.is_closed) == (len(branch.states) - 1, branch.is_closed)
            for seq, state in enumerate(branch.states):
                snapshot = self.graph.history.read_by_seq(stream, seq)
                assert self.graph.rows(snapshot, PERSON) == state[0]
                assert self.graph.rows(snapshot, CITY) == state[1]
            self._check_lineage(stream, len(branch.states))

    def _check_lineage(self, stream: Stream, length: int) -> None:
        records = list(self.graph.history.iter_commits(stream))
        assert [record.seq for record in records] == list(range(length))[::-1]
        parents = [record.parent for record in records[:-1]]
        assert parents == [record.commit for record in records[1:]]
        assert self.graph.history.read_commit(records[0].commit) == records[0]

    def _write(
        self, name: str, prepare: Callable[[SmallGraph], Callable[..., object]], state: State
    ) -> None:
        branch = self.model.live[name]
        if branch.is_closed:
            try:
                self._publish(self.graph, name, prepare)
            except BranchGoneError:
                return
            raise AssertionError("a closed branch took a commit")
        after = deepcopy(self.model)
        after.commit(name, *state)
        seq = len(branch.states)
        self._run(
            lambda graph: self._publish(graph, name, prepare),
            after,
            lambda: self._length(name) > seq,
        )

    def _publish(
        self, graph: SmallGraph, name: str, prepare: Callable[[SmallGraph], Callable[..., object]]
    ) -> None:
        graph.write(prepare(graph), graph.branches.resolve(name))  # type: ignore[arg-type]  # a preparation of the small writer

    def _run(
        self, act: Callable[[SmallGraph], object], after: Model, has_happened: Callable[[], bool]
    ) -> None:
        """Act, perhaps in a process that dies; the model follows what really happened."""
        if self.crash is None:
            act(self.graph)
            self.model = after
            return
        steps, self.crash = Steps(self.crash), None
        doomed = SmallGraph(
            FaultyObjects(self.objects, steps),
            FaultyTables(self.tables, steps),
            Settings(pause=lambda _: None),
        )
        try:
            act(doomed)
            is_done = True
        except (SimulatedCrash, StorageError):
            is_done = False
        self.graph = self.graph.reopened()
        assert has_happened() or not is_done
        if has_happened():
            self.model = after

    def _picked(self, pick: int) -> tuple[str, ModelBranch]:
        names = sorted(self.model.live)
        name = names[pick % len(names)]
        return name, self.model.live[name]

    def _live_names(self) -> list[str]:
        return self.graph.branches.list()

    def _length(self, name: str) -> int:
        return self.graph.branches.read_head(name).snapshot.seq + 1


Lives.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestLives = Lives.TestCase
