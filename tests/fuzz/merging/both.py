"""A graph and the model of it: everything is done to both, and both must show the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

import places
from faults.world import lines
from fuzz.merging.world import SCHEMA, SEED
from model import ModelGraph
from model.branching import MergeConflicts, ModelBranches
from omnigraph import Branch, Graph
from omnigraph.engine.graph import create_on, open_on
from omnigraph.engine.resources import Environment
from omnigraph.errors import MergeConflictError, OmnigraphError
from omnigraph.query import compile_query
from omnigraph.query.query_parameters import bind_parameters
from omnigraph.query.typed_tree import Mutation
from omnigraph.schema import load_catalog
from omnigraph.schema.schema_shape import encode_shape
from omnigraph.versioning import Settings

Prefer: TypeAlias = Mapping[str, Literal["ours", "theirs"]]
QUIET = Environment(settings=Settings(pause=lambda _: None))
ROW_KINDS = frozenset({"divergent_insert", "divergent_update", "delete_vs_update"})


class Both:
    """One graph and its model; `commits` are the ids of what the model numbers."""

    def __init__(self, schema: str = SCHEMA, seed: list[dict[str, Any]] = SEED) -> None:
        self._uri = places.fresh_uri()
        storage = places.storage_of(self._uri)
        self.graph = self._alone(create_on(storage, schema=schema, environment=QUIET))
        self.model = ModelBranches(ModelGraph(self.graph.branch().snapshot().view.accepted))
        self.commits = {0: self.graph.branch().head.id}
        self._agreed: set[int] = set()
        self.load("main", seed)

    def branch(self, name: str) -> Branch:
        return self.graph.branch(name)

    def reopen(self) -> None:
        """Go on in what could be another process."""
        self.graph.close()
        storage = places.storage_of(self._uri)
        self.graph = self._alone(open_on(storage, environment=QUIET))

    def close(self) -> None:
        """Let the graph go; what is in it must be sound."""
        assert self.graph.check().problems == ()
        self.graph.close()

    # ---- what is done to both ----

    def load(self, branch: str, records: list[dict[str, Any]]) -> None:
        self._write(
            branch,
            lambda: self.branch(branch).load(records, mode="merge"),
            lambda: self.model.write(branch, lambda g: g.load(lines(*records), mode="merge")),
        )

    def mutate(self, branch: str, text: str) -> None:
        params = {"none": None} if "$none" in text else {}

        def on_model(graph: ModelGraph) -> object:
            plan = compile_query(text, graph.catalog).plan
            assert isinstance(plan, Mutation)
            return graph.mutate(plan, bind_parameters(plan.parameters, params), now=0)

        self._write(
            branch,
            lambda: self.branch(branch).mutate(text, params=params),
            lambda: self.model.write(branch, on_model),
        )

    def migrate(self, branch: str, schema: str) -> None:
        self._write(
            branch,
            lambda: self.branch(branch).apply_schema(schema, convert=True),
            lambda: self.model.migrate(branch, load_catalog(schema)),
        )

    def maintain(self, branch: str, verb: str) -> None:
        """Join fragments or build indexes: perhaps a commit, never a change."""
        before = self.branch(branch).head.id
        getattr(self.branch(branch), verb)()
        if self.branch(branch).head.id != before:
            self.model.maintain(branch)
        self.agree_on(branch)

    def create(self, name: str, source: str = "main") -> None:
        self.graph.create_branch(name, source=source)
        self.model.create(name, source)
        self.agree_on(name)

    def delete(self, name: str) -> None:
        self.graph.delete_branch(name)
        self.model.delete(name)
        assert sorted(self.graph.branches()) == self.model.list()

    def merge(self, source: str, target: str, prefer: Prefer | None = None) -> str | None:
        """The outcome, or None where both sides conflict; twice is as good as once."""
        base = self.model.base(self.model.head(target), self.model.head(source))
        self._agree_on_entities(source, target, prefer)
        expected = _answer(lambda: self.model.merge(source, target, prefer))
        branch, before = self.branch(target), self.branch(target).head.id
        plan = branch.plan_merge(source, prefer=prefer)
        assert plan.base.id == self.commits[base]
        assert branch.head.id == before, "a plan writes nothing"
        found = _answer(lambda: branch.merge(source, prefer=prefer).outcome)
        if isinstance(expected, MergeConflicts):
            assert isinstance(found, MergeConflictError), (found, expected)
            _agree_on_conflicts(expected, found)
            assert plan.conflicts == found.conflicts
            self.agree_on(target)
            return None
        assert found == expected == plan.outcome
        assert plan.conflicts == ()
        self.agree_on(target)
        assert branch.merge(source).outcome == self.model.merge(source, target)
        assert self.model.merge(source, target) == "already_up_to_date"
        self.agree_on(target)
        return expected

    def _agree_on_entities(self, source: str, target: str, prefer: Prefer | None) -> None:
        """A merge of whole entities would conflict where that of the model does."""
        other = self.model.copy()
        expected = _answer(lambda: other.merge(source, target, prefer, by="entity"))
        plan = self.branch(target).plan_merge(source, prefer=prefer, by="entity")
        if isinstance(expected, MergeConflicts):
            _agree_on_conflicts(expected, MergeConflictError(plan.conflicts))
        else:
            assert plan.conflicts == ()

    def revert(self, branch: str, number: int, prefer: Prefer | None = None) -> None:
        expected = _answer(lambda: self.model.revert(number, branch, prefer))
        commit = self.commits[number]
        found = _answer(lambda: self.branch(branch).revert(commit, prefer=prefer).outcome)
        self._agree_on_pick(branch, expected, found)

    def cherry_pick(self, branch: str, number: int, prefer: Prefer | None = None) -> None:
        expected = _answer(lambda: self.model.cherry_pick(number, branch, prefer))
        commit = self.commits[number]
        found = _answer(lambda: self.branch(branch).cherry_pick(commit, prefer=prefer).outcome)
        self._agree_on_pick(branch, expected, found)

    # ---- whether they agree ----

    def agree_on(self, branch: str) -> None:
        """The newest commit of a branch is the same, and so is what a new commit shows."""
        number, commit = self.model.head(branch), self.branch(branch).head.id
        known = self.commits.setdefault(number, commit)
        assert known == commit, "one of the two made a commit, the other one did not"
        if number not in self._agreed:
            self.agree_on_content(branch)
            self._agreed.add(number)

    def agree_on_content(self, branch: str) -> None:
        """The schema and the entities of a branch are the same."""
        graph = self.model.graph(branch)
        shown = load_catalog(self.branch(branch).schema)
        assert _shape(shown) == _shape(graph.catalog)
        assert self.shown(branch) == graph.export().splitlines()

    def shown(self, branch: str) -> list[str]:
        """The export of a branch, with properties in the order of their names."""
        return b"".join(self.branch(branch).export()).decode().splitlines()

    def _write(self, branch: str, act: Callable[[], object], expect: Callable[[], object]) -> None:
        expected, found = _answer(expect), _answer(act)
        is_refused = isinstance(expected, OmnigraphError), isinstance(found, OmnigraphError)
        assert is_refused[0] == is_refused[1], (found, expected)
        self.agree_on(branch)

    def _agree_on_pick(self, branch: str, expected: object, found: object) -> None:
        if isinstance(expected, MergeConflicts):
            assert isinstance(found, MergeConflictError), (found, expected)
            _agree_on_conflicts(expected, found)
        elif isinstance(expected, OmnigraphError):
            assert isinstance(found, OmnigraphError), (found, expected)
        else:
            assert isinstance(found, str), (found, expected)
            if not expected and found != "nothing_to_do":
                self._agree_on_a_join(branch)
            else:
                assert (found != "nothing_to_do") == expected, (found, expected)
        self.agree_on(branch)

    def _agree_on_a_join(self, branch: str) -> None:
        """A commit may say no more than that things of one name, added separately, are the same."""
        after = self.branch(branch).snapshot()
        before = self.graph.snapshot(after.commit.parents[0])
        assert before.view.accepted.aliases != after.view.accepted.aliases
        self.model.write(branch, lambda graph: graph)

    @staticmethod
    def _alone(graph: Graph) -> Graph:
        """The graph without compaction after commits: every commit here is one of the model."""
        graph._session.resources.publishers.on_published = None
        return graph


def _answer(action: Callable[[], object]) -> object:
    try:
        return action()
    except OmnigraphError as error:
        return error


def _agree_on_conflicts(expected: MergeConflicts, found: MergeConflictError) -> None:
    """The same entities conflict; of broken rules the model tells the first one only."""
    told = [(each.kind, f"{each.type_name} '{each.entity_id}'") for each in found.conflicts]
    kinds = {kind for kind, _ in expected.conflicts}
    if kinds <= ROW_KINDS:
        assert sorted(each for each in told if each[0] in ROW_KINDS) == sorted(expected.conflicts)
    else:
        assert kinds <= {kind for kind, _ in told}, (told, expected.conflicts)
        assert not ROW_KINDS & {kind for kind, _ in told}, (told, expected.conflicts)


def _shape(catalog: Any) -> str:
    return json.dumps(encode_shape(catalog), sort_keys=True)
