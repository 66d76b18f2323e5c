"""Random lives of a graph beside the model: loads, mutations, branches, migrations and crashes.

Whatever one refuses the other refuses; after every step both show the same entities on every
branch. A crash may fall before or after the commit: the model takes the side the graph shows.
Processes have clocks that are wrong by days, clean up by them, and are stopped in the middle of a
write while others write and clean up.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import places
from faults.matrix_writers import QUIET, remove_fresh_ids
from faults.world import MUTATIONS, lines, problems
from model import ModelGraph
from model.branching import ModelBranches
from omnigraph import Graph
from omnigraph.engine.graph import create_on, open_on
from omnigraph.engine.resources import Environment, Storage
from omnigraph.errors import OmnigraphError
from omnigraph.query import compile_query
from omnigraph.query.query_parameters import bind_parameters
from omnigraph.query.typed_tree import Mutation
from omnigraph.schema import load_catalog
from omnigraph.storage.objects.faults import (
    CRASHES,
    PAUSES,
    Fault,
    SimulatedCrash,
)
from omnigraph.versioning import Settings

PERSON = """node Person {
  name: String @key
  email: String? @unique
  age: I32?
  photo: Blob?
  @range(age, 0..150)
}
"""
TEAM = "node Team { name: String @key }\n"
NOTE = "node Note { text: String }\n"
EDGES = """edge Knows: Person -> Person { since: Date? }
edge Leads: Person -> Team @card(0..1)
edge MemberOf: Person -> Team { @key(@src, @dst) }
"""
# Each is a step from some of the others: added, renamed, dropped and re-added types and properties.
SCHEMAS = [
    PERSON + TEAM + NOTE + EDGES,
    PERSON + TEAM.replace("@key", "@key size: I64?") + NOTE + EDGES,
    PERSON + TEAM.replace("@key", '@key heads: I64? @rename_from("size")') + NOTE + EDGES,
    PERSON + TEAM + EDGES,
    PERSON + TEAM + NOTE.replace("text: String", "text: String tag: String?") + EDGES,
    PERSON + TEAM + 'node Memo @rename_from("Note") { text: String }\n' + EDGES,
    PERSON + TEAM + NOTE + EDGES + "edge Likes: Person -> Note\n",
    PERSON.replace("age: I32", "age: I64") + TEAM + NOTE + EDGES,
    PERSON.replace("age: I32", "age: F64") + TEAM + NOTE + EDGES,
]

NAMES = st.sampled_from(["ada", "ada", "bob", "bob", "cem", "o'hara", 'q"t', ""])
MAILS = st.sampled_from(["a@x", "b@x", None, None])
AGES = st.sampled_from([None, 0, 7, 8, 9, 150, 151])
PHOTOS = st.sampled_from([None, "base64:", "base64:AAEC"])
BRANCHES = st.sampled_from(["review", "review/x"])
DAY_US = 86_400_000_000
CLOCKS = st.sampled_from([-3, 0, 0, 3])
# Which of the branches that exist; sometimes one that does not.
PLACES = st.integers(0, 12)

SEED: list[dict[str, Any]] = [
    {"type": "Person", "data": {"name": "ada", "email": "a@x", "photo": "base64:AAEC"}},
    {"type": "Person", "data": {"name": "bob"}},
    {"type": "Team", "data": {"name": "ada"}},
    {"type": "Note", "id": "n1", "data": {"text": "hello"}},
    {"edge": "Knows", "id": "e1", "from": "ada", "to": "bob"},
]


def _filled(record: dict[str, Any]) -> dict[str, Any]:
    record["data"] = {name: value for name, value in record["data"].items() if value is not None}
    return record


people = st.builds(
    lambda name, email, age, photo: _filled(
        {"type": "Person", "data": {"name": name, "email": email, "age": age, "photo": photo}}
    ),
    NAMES,
    MAILS,
    AGES,
    PHOTOS,
)
teams = NAMES.map(lambda name: {"type": "Team", "data": {"name": name}})
notes = st.builds(
    lambda id_, text: {"type": "Note", "id": id_, "data": {"text": text}},
    st.sampled_from(["n1", "n2", "n3"]),
    NAMES,
)


def _edges(name: str) -> st.SearchStrategy[dict[str, Any]]:
    ids = st.just(None) if name == "MemberOf" else st.sampled_from(["e1", "e2", "e3"])
    return st.builds(
        lambda source, target, id_: {
            "edge": name,
            "from": source,
            "to": target,
            **({"id": id_} if id_ else {}),
        },
        NAMES,
        NAMES,
        ids,
    )


records = st.lists(
    st.one_of(people, people, teams, notes, *map(_edges, ["Knows", "Leads", "MemberOf"])),
    max_size=6,
)
mutations = st.one_of(
    st.tuples(st.just("add_person"), st.fixed_dictionaries({"name": NAMES, "age": AGES})),
    st.tuples(st.just("add_member"), st.fixed_dictionaries({"name": NAMES, "team": NAMES})),
    st.tuples(st.just("claim"), st.fixed_dictionaries({"name": NAMES, "email": MAILS})),
    st.tuples(st.just("knows"), st.fixed_dictionaries({"a": NAMES, "b": NAMES})),
    st.tuples(st.just("leads"), st.fixed_dictionaries({"a": NAMES, "b": NAMES})),
    st.tuples(st.just("birthday"), st.fixed_dictionaries({"age": AGES})),
    st.tuples(st.just("forget"), st.fixed_dictionaries({"a": NAMES})),
    st.tuples(st.just("leave"), st.fixed_dictionaries({"name": NAMES})),
)


class Lives(RuleBasedStateMachine):
    """One graph and the model of it."""

    @initialize()
    def create(self) -> None:
        uri = places.fresh_uri()
        self.uri = uri
        graph = create_on(self._storage(), schema=SCHEMAS[0], environment=QUIET)
        self.graph: Graph = graph
        accepted = graph.branch().snapshot().view.accepted
        self.model = ModelBranches(ModelGraph(accepted))
        self.old: list[tuple[str, str, bytes]] = []
        self.load(SEED, "append", 0)
        self.create_branch("review", 0)

    def _storage(self) -> Storage:
        return places.storage_of(self.uri)

    @rule(records=records, mode=st.sampled_from(["append", "merge", "overwrite"]), place=PLACES)
    def load(self, records: list[dict[str, Any]], mode: Any, place: int) -> None:
        branch = self._branch(place)
        self._both(
            lambda graph: graph.branch(branch).load(records, mode=mode),
            lambda model: model.write(branch, lambda g: g.load(lines(*records), mode=mode)),
        )

    @rule(mutation=mutations, place=PLACES)
    def mutate(self, mutation: tuple[str, dict[str, Any]], place: int) -> None:
        branch, (name, params) = self._branch(place), mutation
        text = MUTATIONS.replace("$age: I32", "$age: I32?").replace(
            "$email: String", "$email: String?"
        )

        def on_model(graph: ModelGraph) -> object:
            plan = compile_query(text, graph.catalog, name=name).plan
            assert isinstance(plan, Mutation)
            return graph.mutate(plan, bind_parameters(plan.parameters, params), now=0)

        self._both(
            lambda graph: graph.branch(branch).mutate(text, name=name, params=params),
            lambda model: model.write(branch, on_model),
        )

    @rule(name=BRANCHES, place=PLACES)
    def create_branch(self, name: str, place: int) -> None:
        source = self._branch(place)
        self._both(
            lambda graph: graph.create_branch(name, source=source),
            lambda model: model.create(name, source),
        )

    @rule(name=BRANCHES)
    def delete_branch(self, name: str) -> None:
        was_there = name in self.graph.branches()
        self._both(lambda graph: graph.delete_branch(name), lambda model: model.delete(name))
        if was_there and name not in self.graph.branches():
            # A later branch of that name is another one: what only this one held is gone.
            self.old = [each for each in self.old if each[0] != name]

    @rule(schema=st.sampled_from(SCHEMAS), place=PLACES)
    def migrate(self, schema: str, place: int) -> None:
        branch = self._branch(place)
        self._both(
            lambda graph: graph.branch(branch).apply_schema(schema, convert=True),
            lambda model: model.migrate(branch, load_catalog(schema)),
        )

    @rule(place=st.integers(0, 5))
    def look_back_later(self, place: int) -> None:
        """Remember what a branch shows now; its commit must show the same at the end."""
        branch = self._branch(place)
        commit = self.graph.branch(branch).head.id
        self.old.append((branch, commit, b"".join(self.graph.branch(branch).export())))

    @rule(days=CLOCKS)
    def reopen(self, days: int) -> None:
        """Go on in a process whose clock is wrong by some days."""
        self.graph.close()
        self.graph = open_on(self._storage(), environment=_environment(days))

    @rule(days=CLOCKS)
    def clean_up(self, days: int) -> None:
        """Keep one commit of each branch; the clock of that process decides what is old."""
        self._clean_up(days)

    def _clean_up(self, days: int) -> None:
        with open_on(self._storage(), environment=_environment(days)) as other:
            other.cleanup(keep=1, dry_run=False)
        # A snapshot that was looked at before may be gone now.
        self.old.clear()
        # As after the time that a process may be stale.
        self.graph._session.resources.log._verified_at.clear()

    @rule(
        number=st.integers(1, 8),
        kind=st.sampled_from(PAUSES),
        records=records,
        others=records,
        place=PLACES,
    )
    def pause(
        self,
        number: int,
        kind: Any,
        records: list[dict[str, Any]],
        others: list[dict[str, Any]],
        place: int,
    ) -> None:
        """A load that is stopped at one of its steps, while another process loads and cleans up."""
        branch = self._branch(place)

        def during() -> None:
            with open_on(self._storage(), environment=QUIET) as other, suppress(OmnigraphError):
                other.branch(branch).load(others, mode="merge")
            self._clean_up(3)

        steps = Fault(number, kind, "any").create_steps(during)
        refused = _refused(
            lambda: (
                open_on(places.storage_of(self.uri, steps), environment=QUIET)
                .branch(branch)
                .load(records, mode="merge")
            )
        )
        own, other = _merging(branch, records), _merging(branch, others)
        alone = [own] if not steps.has_fired else [other]
        orders = [alone, [own, other], [other, own]] if steps.has_fired else [alone]
        candidates = [_after(self.model, order) for order in orders]
        if refused is None:
            candidates = candidates[-2:] if steps.has_fired else candidates
        elif not steps.has_fired:
            candidates = [self.model]
        shown = self._shown()
        assert shown in [_modelled(each) for each in candidates], refused
        self.model = next(each for each in candidates if _modelled(each) == shown)

    @rule(
        number=st.integers(1, 8),
        kind=st.sampled_from(CRASHES),
        records=records,
        place=PLACES,
    )
    def crash(self, number: int, kind: Any, records: list[dict[str, Any]], place: int) -> None:
        """A load in a process that dies at one of its steps; another process goes on."""
        branch = self._branch(place)
        steps = Fault(number, kind, "any").create_steps()
        with suppress(SimulatedCrash, OmnigraphError):
            open_on(places.storage_of(self.uri, steps), environment=QUIET).branch(branch).load(
                records, mode="merge"
            )
        self.reopen(0)
        candidate = _after(self.model, [_merging(branch, records)])
        shown = self._shown()
        assert shown in (_modelled(self.model), _modelled(candidate))
        if shown != _modelled(self.model):
            self.model = candidate

    @invariant()
    @precondition(lambda self: hasattr(self, "graph"))
    def both_show_the_same(self) -> None:
        assert self._shown() == _modelled(self.model)

    def teardown(self) -> None:
        if hasattr(self, "graph"):
            for branch, commit, shown in self.old:
                if branch in self.graph.branches():
                    assert b"".join(self.graph.snapshot(commit).export()) == shown
            assert list(problems(self.graph)) == []
            self.graph.close()

    def _both(
        self, act: Callable[[Graph], object], expect: Callable[[ModelBranches], object]
    ) -> None:
        """Do the same to both; they must agree on whether it is refused."""
        expected = _refused(lambda: expect(self.model))
        found = _refused(lambda: act(self.graph))
        assert (found is None) == (expected is None), (found, expected)

    def _branch(self, place: int) -> str:
        names = self.model.list()
        return "nowhere" if place == 12 else names[place % len(names)]

    def _shown(self) -> dict[str, bytes]:
        names = self.graph.branches()
        return {
            name: remove_fresh_ids(b"".join(self.graph.branch(name).export())) for name in names
        }


def _environment(days: int) -> Environment:
    """The environment of a process whose clock is wrong by some days."""

    def now_us() -> int:
        return time.time_ns() // 1000 + days * DAY_US

    return Environment(settings=Settings(now_us=now_us, pause=lambda _: None))


def _merging(branch: str, records: list[dict[str, Any]]) -> Callable[[ModelBranches], object]:
    return lambda model: model.write(branch, lambda g: g.load(lines(*records), mode="merge"))


def _after(model: ModelBranches, writes: list[Callable[[ModelBranches], object]]) -> ModelBranches:
    """The model after some writes, of which it may refuse some."""
    copy = model.copy()
    for write in writes:
        with suppress(OmnigraphError):
            write(copy)
    return copy


def _modelled(model: ModelBranches) -> dict[str, bytes]:
    return {name: remove_fresh_ids(model.graph(name).export().encode()) for name in model.heads}


def _refused(action: Callable[[], object]) -> str | None:
    try:
        action()
    except OmnigraphError as error:
        return f"{type(error).__name__}: {error}"
    return None


TestLives = pytest.mark.slow(Lives.TestCase)
TestLives.settings = settings(
    max_examples=15 if places.is_on_s3() else 40, stateful_step_count=12, deadline=None
)
