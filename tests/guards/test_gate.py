"""Every public method of a graph asks the gate what the table says, before it reads or writes.

A new method needs a row. A gate that denies everything lets no method read or write a row.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import methodcaller
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from guards.recording_gate import RecordingGate
from omnigraph import (
    AsyncBranch,
    AsyncGraph,
    AsyncProposal,
    AsyncSnapshot,
    Branch,
    Graph,
    Proposal,
    ProposalDraft,
    Snapshot,
)
from omnigraph.clusters.control_plane import ControlPlane
from omnigraph.engine.graph import open_graph
from omnigraph.engine.proposals.proposal_drafts import build_branch_name
from omnigraph.errors import PolicyDeniedError
from omnigraph.policy.acts import Act, Action
from omnigraph.spark.graph_api import GraphSpark
from omnigraph.storage.tables.lance_tables import Tables
from optional_libraries import LIBRARIES, call_to_pyg

SCHEMA = "node Person { name: String @key\n photo: Blob? }\nedge Knows: Person -> Person"
PEOPLE = [{"type": "Person", "data": {"name": name}} for name in ("ada", "bob")]
READ = "query people() { match { $p: Person } return { $p.name } }"
INSERT = 'query hire() { insert Person { name: "cyd" } }'
DENY = """\
version: 1
groups: {all: [ada], others: [eve]}
rules:
  - id: call
    allow: {actors: {group: others}, actions: [invoke_query]}
"""
CLUSTER = """\
version: 1
graphs: {g: {schema: g.pg}}
policies: {deny: {file: deny.yaml, applies_to: [g]}}
"""

read = Act(Action.READ, "main")
read_graph = Act(Action.READ)
export = Act(Action.EXPORT, "main")
change = Act(Action.CHANGE, "main")
migrate = Act(Action.SCHEMA_APPLY, target_branch="main")
merge = Act(Action.BRANCH_MERGE, "draft", "main")
admin = Act(Action.ADMIN)


@dataclass(frozen=True, slots=True)
class Row:
    """How a member is called, and the acts that it asks about; without any, it reads no row."""

    call: Callable[[Any], object]
    acts: tuple[Act, ...] = ()


GRAPH = {
    "acting_as": Row(lambda it: it.acting_as("eve")),
    "actor": Row(lambda it: it.actor),
    "authorize": Row(lambda it: it.authorize(change), (change,)),
    "branch": Row(lambda it: it.branch("main")),
    "branches": Row(lambda it: it.branches(), (read_graph,)),
    "check": Row(lambda it: it.check(), (admin,)),
    "cleanup": Row(lambda it: it.cleanup(keep=9), (admin,)),
    "close": Row(lambda it: it.acting_as("eve").close()),
    "commit": Row(lambda it: it.commit("main"), (read_graph,)),
    "commit_changes": Row(lambda it: it.commit_changes("main"), (read,)),
    "create_branch": Row(
        lambda it: it.create_branch("fresh"), (Act(Action.BRANCH_CREATE, "main", "fresh"),)
    ),
    "delete_branch": Row(
        lambda it: it.delete_branch("old"), (Act(Action.BRANCH_DELETE, None, "old"),)
    ),
    "delete_tag": Row(lambda it: it.delete_tag("v1"), (Act(Action.BRANCH_DELETE, None, "v1"),)),
    "diff": Row(lambda it: it.diff("main", "draft"), (read, Act(Action.READ, "draft"))),
    "execute": Row(lambda it: it.execute("branch list"), (read_graph,)),
    "index_status": Row(lambda it: it.index_status(), (read,)),
    "has_query_limits": Row(lambda it: it.has_query_limits),
    "invoking": Row(lambda it: it.invoking("q"), (Act(Action.INVOKE_QUERY, query="q"),)),
    "open_proposal": Row(
        lambda it: it.open_proposal("draft", title="t", target="old"),
        (Act(Action.PROPOSE, "draft", "old"),),
    ),
    "proposal": Row(lambda it: it.proposal(1)),
    "proposals": Row(lambda it: it.proposals(), (read_graph,)),
    "repair": Row(lambda it: it.repair(), (admin,)),
    "snapshot": Row(lambda it: it.snapshot("main")),
    "spark": Row(lambda it: it.spark),
    "tag": Row(lambda it: it.tag("v2"), (Act(Action.BRANCH_CREATE, "main", "v2"),)),
    "tags": Row(lambda it: it.tags(), (read_graph,)),
    "upgrade": Row(lambda it: it.upgrade(), (admin,)),
    "uri": Row(lambda it: it.uri),
}


READS = {
    "commit": Row(lambda it: it.commit, (read,)),
    "count": Row(lambda it: it.count("Person"), (read,)),
    "dataset": Row(lambda it: it.dataset("Person"), (read,)),
    "entity": Row(lambda it: it.entity("Person", "ada"), (read,)),
    "explain": Row(lambda it: it.explain(READ), (read,)),
    "export": Row(lambda it: it.export(), (export,)),
    "export_files": Row(lambda it: it.export_files(_new_folder()), (export,)),
    "query": Row(lambda it: it.query(READ), (read,)),
    "schema": Row(lambda it: it.schema, (read,)),
    "tables": Row(lambda it: it.tables(), (read,)),
    "to_arrow": Row(lambda it: it.to_arrow("Person"), (read,)),
    "to_pyg": Row(call_to_pyg, (read,)),
    **{name: Row(methodcaller(name), (read,)) for name in LIBRARIES},
    "blob": Row(lambda it: it.blob("node", "Person", "ada", "photo"), (read,)),
    "uri": Row(lambda it: it.uri),
    "version": Row(lambda it: it.version),
}
PICKED = (change, read)
BRANCH = READS | {
    "apply_schema": Row(lambda it: it.apply_schema(SCHEMA), (migrate,)),
    "baseline": Row(lambda it: it.baseline(), (export,)),
    "blame": Row(lambda it: it.blame("Person", "ada"), (read,)),
    "changes": Row(lambda it: it.changes(), (read,)),
    "cherry_pick": Row(lambda it: it.cherry_pick("main"), PICKED),
    "commits": Row(lambda it: it.commits(), (read,)),
    "diff": Row(lambda it: it.diff("draft"), (read, Act(Action.READ, "draft"))),
    "embed": Row(lambda it: it.embed(), (change,)),
    "embed_status": Row(lambda it: it.embed_status(), (read,)),
    "ensure_indices": Row(lambda it: it.ensure_indices(), (admin,)),
    "follow": Row(lambda it: it.follow(start="now"), (read,)),
    "graph": Row(lambda it: it.graph),
    "head": Row(lambda it: it.head, (read,)),
    "history": Row(lambda it: it.history("Person", "ada"), (read,)),
    "life": Row(lambda it: it.life),
    "load": Row(lambda it: it.load([], mode="append"), (change,)),
    "merge": Row(
        lambda it: it.merge("draft", delete_branch=True),
        (merge, Act(Action.BRANCH_DELETE, None, "draft")),
    ),
    "mutate": Row(lambda it: it.mutate(INSERT), (change,)),
    "name": Row(lambda it: it.name),
    "optimize": Row(lambda it: it.optimize(), (admin,)),
    "plan_cherry_pick": Row(lambda it: it.plan_cherry_pick("main"), PICKED),
    "plan_merge": Row(lambda it: it.plan_merge("draft"), (merge,)),
    "plan_revert": Row(lambda it: it.plan_revert("main"), PICKED),
    "plan_schema": Row(lambda it: it.plan_schema(SCHEMA), (read,)),
    "propose": Row(lambda it: it.propose("t")),
    "retrying": Row(lambda it: it.retrying(lambda own: own.name)),
    "revert": Row(lambda it: it.revert("main"), PICKED),
    # The two are for the layers above, which ask through them.
    "session": Row(lambda it: it.session),
    "stream": Row(lambda it: it.stream),
    "snapshot": Row(lambda it: it.snapshot()),
}
SNAPSHOT = READS | {
    "answer": Row(lambda it: it.answer(_request()), (read,)),
    "answer_in_turn": Row(lambda it: it.answer_in_turn(_request()), (read,)),
    "answer_named": Row(lambda it: it.answer_named(_request()), (read,)),
    "at": Row(lambda it: it.at),
    "branch": Row(lambda it: it.branch),
    "catalog": Row(lambda it: it.catalog, (read,)),
    "describe": Row(lambda it: it.describe(_request(), analyze=True), (read,)),
    "diff": Row(lambda it: it.diff("draft"), (read, Act(Action.READ, "draft"))),
    "list_readable_types": Row(lambda it: it.list_readable_types(), (read,)),
    "open_for": Row(lambda it: it.open_for(Action.EXPORT, None), (export,)),
    "to_json": Row(lambda it: it.to_json(), (read,)),
    "type_key": Row(lambda it: it.type_key("Person")),
    "view": Row(lambda it: it.view, (read,)),
}
review = Act(Action.REVIEW, "draft", "main")
propose = Act(Action.PROPOSE, "draft", "main")
# A method asks first whether the actor may see the proposal: a denial names no branch otherwise.
PROPOSAL = {
    "approve": Row(lambda it: it.approve(), (read_graph, review)),
    # Of another author, so that it takes the right to review.
    "close": Row(lambda it: it.close(), (read_graph, review)),
    "comment": Row(lambda it: it.comment("c"), (read_graph, propose)),
    "diff": Row(lambda it: it.diff(), (read_graph, read, Act(Action.READ, "draft"))),
    "edit": Row(
        lambda it: it.edit(title="new", target="old"),
        (read_graph, review, Act(Action.PROPOSE, "draft", "old")),
    ),
    "graph": Row(lambda it: it.graph),
    "merge": Row(
        lambda it: it.merge(delete_branch=True),
        (read_graph, merge, Act(Action.BRANCH_DELETE, None, "draft")),
    ),
    "number": Row(lambda it: it.number),
    "plan": Row(lambda it: it.plan(), (read_graph, read, Act(Action.READ, "draft"))),
    "read": Row(lambda it: it.read(), (read_graph,)),
    "report_check": Row(lambda it: it.report_check("q", "pass"), (read_graph, review)),
    "request_changes": Row(lambda it: it.request_changes("no"), (read_graph, review)),
    "sync_branch": Row(
        lambda it: it.sync_branch(), (read_graph, propose, Act(Action.CHANGE, "draft"))
    ),
}
DRAFT_BRANCH = build_branch_name("t", "k")
DRAFTED = (
    read_graph,
    Act(Action.BRANCH_CREATE, "main", DRAFT_BRANCH),
    Act(Action.CHANGE, DRAFT_BRANCH),
    Act(Action.PROPOSE, DRAFT_BRANCH, "main"),
)
DRAFT = {
    "load": Row(lambda it: it.load(PEOPLE, mode="overwrite"), DRAFTED),
    "mutate": Row(lambda it: it.mutate(INSERT), DRAFTED),
}
# The driver is asked before it starts Spark; rows are denied, so none of them starts it.
SPARK = {
    "changes": Row(lambda it: it.changes("main"), (read,)),
    "create_views": Row(lambda it: it.create_views("v_"), (read,)),
    "edges": Row(lambda it: it.edges("Knows"), (read,)),
    "ensure_indices": Row(lambda it: it.ensure_indices(), (admin,)),
    "export": Row(lambda it: it.export(_new_folder()), (export,)),
    "frames": Row(lambda it: it.frames(), (read,)),
    "load": Row(lambda it: it.load(None, type="Person", mode="append"), (change,)),
    "nodes": Row(lambda it: it.nodes("Person"), (read,)),
    "on": Row(lambda it: it.on(None)),
    "optimize": Row(lambda it: it.optimize(), (admin,)),
}
# Not called here: it starts Spark, and reads nothing.
SPARK_ONLY = {"session"}


_folders: list[Path] = []


def _new_folder() -> Path:
    return _folders[-1] / "out"


def _request() -> Any:
    from omnigraph.engine.read_requests import build_read_request  # noqa: PLC0415

    return build_read_request(READ)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> str:
    address = str(tmp_path_factory.mktemp("gate") / "g.omni")
    with omnigraph.create(address, schema=SCHEMA) as graph:
        _fill(graph)
    return address


def _fill(graph: Graph) -> None:
    main = graph.branch()
    main.load(PEOPLE, mode="append")
    graph.create_branch("draft").mutate(INSERT)
    graph.create_branch("old")
    graph.tag("v1")
    main.mutate('query hire() { insert Person { name: "dan" } }')
    graph.open_proposal("draft", title="Draft")


@pytest.fixture
def uri(built: str, tmp_path: Path) -> Iterator[str]:
    _folders.append(tmp_path)
    yield str(shutil.copytree(built, tmp_path / "g.omni"))
    _folders.pop()


def _open(uri: str, owner: str, gate: RecordingGate) -> tuple[Graph, Any]:
    graph = open_graph(uri, actor="ada", policy=gate)
    return graph, _open_owner(graph, owner)


def _open_owner(graph: Graph, owner: str) -> Any:
    opened: dict[str, Callable[[], object]] = {
        "Graph": lambda: graph,
        "Branch": graph.branch,
        "Snapshot": lambda: graph.snapshot("main"),
        "GraphSpark": lambda: graph.spark,
        "Proposal": lambda: graph.proposal(1),
        "ProposalDraft": lambda: graph.branch().propose("t", key="k"),
    }
    return opened[owner]()


def _list_public(owner: type) -> set[str]:
    # An attribute that the constructor sets is public too.
    own = {"graph"} if owner in (Branch, Proposal) else set()
    return {name for name in dir(owner) if not name.startswith("_")} | own


TABLES: dict[str, tuple[type, dict[str, Row]]] = {
    "Graph": (Graph, GRAPH),
    "Branch": (Branch, BRANCH),
    "Snapshot": (Snapshot, SNAPSHOT),
    "GraphSpark": (GraphSpark, SPARK),
    "Proposal": (Proposal, PROPOSAL),
    "ProposalDraft": (ProposalDraft, DRAFT),
}
CASES = [(owner, name) for owner, (_, rows) in TABLES.items() for name in rows]


@pytest.mark.parametrize("owner", TABLES)
def test_every_public_method_has_a_row(owner: str) -> None:
    kind, rows = TABLES[owner]
    extra = SPARK_ONLY if owner == "GraphSpark" else set()
    assert _list_public(kind) == set(rows) | extra


@pytest.mark.parametrize(("owner", "name"), [case for case in CASES if case[0] != "GraphSpark"])
def test_a_method_asks_for_what_it_does(owner: str, name: str, uri: str) -> None:
    row = TABLES[owner][1][name]
    gate = RecordingGate(denies=False)
    graph, it = _open(uri, owner, gate)
    gate.asked.clear()
    with graph:
        try:
            row.call(it)
        except omnigraph.errors.BlobNotFoundError:
            assert name == "blob"
    assert set(gate.asked) == set(row.acts)


@pytest.mark.parametrize(("owner", "name"), CASES)
def test_what_denies_everything_lets_no_method_reach_a_row(
    owner: str, name: str, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = TABLES[owner][1][name]
    gate = RecordingGate(denies=True)
    graph, it = _open(uri, owner, gate)
    before = _list_files(uri)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a table was opened")

    monkeypatch.setattr(Tables, "open", refuse)
    with graph:
        if row.acts:
            with pytest.raises(PolicyDeniedError):
                row.call(it)
            assert gate.asked[0] in row.acts
        else:
            row.call(it)
            assert gate.asked == []
        assert not (_folders[-1] / "out").exists()
    assert _list_files(uri) == before


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cluster whose applied bundle allows nothing to the actor, with the rows of the graph."""
    folder = tmp_path_factory.mktemp("cluster")
    (folder / "g.pg").write_text(SCHEMA)
    (folder / "deny.yaml").write_text(DENY)
    (folder / "cluster.yaml").write_text(CLUSTER)
    plane = ControlPlane(str(folder), "eve")
    assert plane.import_state().is_ok
    assert plane.apply().is_ok
    with omnigraph.open(str(folder / "graphs/g.omni")) as graph:
        _fill(graph)
    return folder


@pytest.mark.parametrize("case", CASES, ids="-".join)
@pytest.mark.parametrize("actor", ["ada", None])
def test_an_applied_bundle_that_denies_everything_lets_no_method_reach_a_row(
    case: tuple[str, str], actor: str | None, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, name = case
    row = TABLES[owner][1][name]

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a table was opened")

    monkeypatch.setattr(Tables, "open", refuse)
    _folders.append(root)
    before = _list_files(str(root))
    with omnigraph.cluster(root).graph("g", actor=actor) as graph:
        it = _open_owner(graph, owner)
        if row.acts:
            with pytest.raises(PolicyDeniedError):
                row.call(it)
        else:
            row.call(it)
    _folders.pop()
    assert _list_files(str(root)) == before


@pytest.mark.parametrize("name", ["query", "to_arrow", "entity", "export", "to_networkx"])
def test_the_guard_notices_a_method_that_reads_without_asking(
    name: str, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a table was opened")

    def call(snapshot: Snapshot) -> None:
        made = SNAPSHOT[name].call(snapshot)
        list(made if isinstance(made, Iterator) else [])

    monkeypatch.setattr(Tables, "open", refuse)
    with omnigraph.open(uri) as graph, pytest.raises(AssertionError, match="a table was opened"):
        call(graph.snapshot("main"))


def test_the_guard_notices_a_method_without_a_row() -> None:
    wider = type("Wider", (Graph,), {"peek": lambda self: self.branch().query(READ)})
    assert _list_public(wider) - set(GRAPH) == {"peek"}


# Public classes that a method hands out, after it has asked for what they read.
HANDED_OUT = {"Baseline", "Blob", "Diff", "Result"}


def test_every_public_class_that_reads_has_a_table_or_is_handed_out() -> None:
    found = {name: getattr(omnigraph, name) for name in omnigraph.__all__}
    handles = {
        name
        for name, each in found.items()
        if isinstance(each, type) and "session" in _list_attributes(each)
    }
    named = {kind.__name__ for kind, _ in TABLES.values()}
    assert handles <= named | HANDED_OUT
    # What is awaited is made of the members of these classes, and holds one of their objects.
    awaited = {name.removeprefix("Async") for name in found if name.startswith("Async")}
    assert awaited <= named | HANDED_OUT


def _list_attributes(kind: type) -> set[str]:
    """What a class and its constructor name, without the leading underline."""
    code = getattr(vars(kind).get("__init__"), "__code__", None)
    names = {*vars(kind), *getattr(code, "co_names", ())}
    return {name.lstrip("_") for name in names}


AWAITED: dict[str, Callable[[Graph], Any]] = {
    "Graph": AsyncGraph,
    "Branch": lambda graph: AsyncBranch(graph.branch()),
    "Snapshot": lambda graph: AsyncSnapshot(graph.snapshot("main")),
    "Proposal": lambda graph: AsyncProposal(graph.proposal(1)),
    "ProposalDraft": lambda graph: AsyncBranch(graph.branch()).propose("t", key="k"),
}
AWAITED_CASES = [
    (owner, name)
    for owner, name in CASES
    if owner in AWAITED
    and TABLES[owner][1][name].acts
    and name in dir(getattr(omnigraph, f"Async{owner}"))
]


@pytest.mark.parametrize(("owner", "name"), AWAITED_CASES)
def test_what_is_awaited_is_denied_too(
    owner: str, name: str, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a table was opened")

    async def call() -> None:
        made: Any = TABLES[owner][1][name].call(AWAITED[owner](graph))
        # What is a property without waiting is a method here.
        made = made() if callable(made) else made
        await (anext(made) if hasattr(made, "__anext__") else made)

    monkeypatch.setattr(Tables, "open", refuse)
    before = _list_files(uri)
    with (
        open_graph(uri, actor="ada", policy=RecordingGate(denies=True)) as graph,
        pytest.raises(PolicyDeniedError),
    ):
        asyncio.run(call())
    assert _list_files(uri) == before


def _list_files(uri: str) -> set[tuple[str, int]]:
    found = (path for path in Path(uri).rglob("*") if path.is_file())
    return {(str(path), path.stat().st_mtime_ns) for path in found}
