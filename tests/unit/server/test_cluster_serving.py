from __future__ import annotations

import json
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

import omnigraph
from omnigraph.cli.app import app
from omnigraph.client.remote_graph import open_remote
from omnigraph.clusters.applied_cluster import open_cluster
from omnigraph.clusters.control_plane import ControlPlane
from omnigraph.errors import ClusterError, StoredQueryNotFoundError
from omnigraph.server.bearer_tokens import FILE
from omnigraph.server.cluster_serving import boot_cluster
from served import PEOPLE, SCHEMA, RunningServer, apply_cluster, make_tokens, serve_cluster

A, B = "/graphs/alpha", "/graphs/beta"
QUERIES = """\
query find_person($name: String, $tags: [String]?, $near: Vector(3)?, $big: I64?)
  @description("One person by name.") @instruction("Ask for a name.")
{ match { $p: Person { name: $name } } return { $p.name } }
query hire($name: String) { insert Person { name: $name } }
"""
CLUSTER = """\
version: 1
storage: ../root
graphs:
  alpha: {schema: g.pg, queries: queries}
  beta: {schema: g.pg}
policies:
  own: {file: own.yaml, applies_to: [alpha]}
  list: {file: list.yaml, applies_to: [cluster]}
"""
OWN = """\
version: 1
groups: {all: [ada], callers: [bob], agents: [bot], readers: [cyd], named: [eva]}
rules:
  - id: everything
    allow: {actors: {group: all}, actions: [read, change, export, invoke_query, schema_apply]}
  - id: only-call
    allow: {actors: {group: callers}, actions: [invoke_query]}
  - id: carried
    allow: {actors: {group: agents}, actions: [invoke_query], queries: [find_person],
      carries: [read]}
  - id: only-read
    allow: {actors: {group: readers}, actions: [read]}
  - id: read-named
    allow: {actors: {group: named}, actions: [read]}
  - id: call-named
    allow: {actors: {group: named}, actions: [invoke_query], queries: ["find_*"]}
"""
LIST = """\
version: 1
groups: {all: [ada]}
rules:
  - id: see
    allow: {actors: {group: all}, actions: [graph_list]}
"""
ACTORS = ("ada", "bob", "bot", "cyd", "eva")


def write_cluster(folder: Path) -> Path:
    """The configuration of two graphs, applied, with people in both."""
    (folder / "queries").mkdir(parents=True)
    (folder / "queries" / "people.gq").write_text(QUERIES)
    (folder / "g.pg").write_text(SCHEMA)
    (folder / "own.yaml").write_text(OWN)
    (folder / "list.yaml").write_text(LIST)
    (folder / "cluster.yaml").write_text(CLUSTER)
    apply_cluster(folder, is_first=True)
    for name in ("alpha", "beta"):
        with omnigraph.open(folder.parent / f"root/graphs/{name}.omni", durable=False) as graph:
            graph.branch().load(PEOPLE, mode="append")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_cluster(tmp_path / "config")


@pytest.fixture
def running(folder: Path) -> Iterator[RunningServer]:
    with serve_cluster(folder, actors=ACTORS) as found:
        yield found


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server that no test changes."""
    made = write_cluster(tmp_path_factory.mktemp("cluster") / "config")
    with serve_cluster(made, actors=ACTORS) as found:
        yield found


def wait_until(check: Callable[[], bool], running: RunningServer) -> None:
    """Wait for what the server does after it was woken."""
    running.wake()
    for _ in range(3000):
        if check():
            return
        time.sleep(0.02)
    raise AssertionError("it did not happen")


def test_the_graphs_are_listed_for_those_who_may(shared: RunningServer) -> None:
    with shared.connect("ada") as client:
        graphs = client.get("/graphs").json()["graphs"]
        answer = client.get(f"{A}/snapshot")
    assert [each["graph_id"] for each in graphs] == ["alpha", "beta"]
    assert graphs[0]["uri"].endswith("root/graphs/alpha.omni")
    assert answer.headers["omnigraph-cluster-revision"].isdigit()
    with shared.connect("bob") as client:
        assert client.get("/graphs").status_code == 403
    with shared.connect() as client:
        assert client.get("/graphs").status_code == 401


def test_the_catalogue_has_typed_parameters(shared: RunningServer) -> None:
    with shared.connect("cyd") as client:
        found = client.get(f"{A}/queries").json()["queries"]
        assert client.get(f"{B}/queries").json() == {"queries": []}
    assert [each["name"] for each in found] == ["find_person", "hire"]
    assert found[0] == {
        "name": "find_person",
        "tool_name": "find_person",
        "description": "One person by name.",
        "instruction": "Ask for a name.",
        "mutation": False,
        "params": [
            {"name": "name", "kind": "string", "nullable": False},
            {"name": "tags", "kind": "list", "item_kind": "string", "nullable": True},
            {"name": "near", "kind": "vector", "vector_dim": 3, "nullable": True},
            {"name": "big", "kind": "bigint", "nullable": True},
        ],
    }
    assert found[1]["mutation"] is True
    assert not {"description", "instruction"} & found[1].keys()


def call(client: httpx.Client, name: str, body: Any = None, **options: Any) -> httpx.Response:
    return client.post(f"{A}/queries/{name}", json=body, **options)


def test_the_catalogue_has_the_queries_that_a_rule_names(shared: RunningServer) -> None:
    with shared.connect("eva") as client:
        found = client.get(f"{A}/queries").json()["queries"]
        assert [each["name"] for each in found] == ["find_person"]
        assert call(client, "hire", {"params": {"name": "x"}}).status_code == 404
        assert call(client, "find_person", {"params": {"name": "ada"}}).status_code == 200


def test_a_stored_read_is_called_with_any_empty_body(shared: RunningServer) -> None:
    with shared.connect("ada") as client:
        found = call(client, "find_person", {"params": {"name": "ada"}}).json()
        assert found["rows"] == [{"p.name": "ada"}]
        assert found["query_name"] == "find_person"
        for content in (b"", b"{}", b"null"):
            missing = client.post(f"{A}/queries/find_person", content=content)
            assert missing.status_code == 400, "a parameter that is needed is missing"
            assert "name" in missing.json()["error"]
        assert client.post(f"{A}/queries/find_person", content=b"{").status_code == 400


def test_unknown_and_denied_queries_look_the_same(shared: RunningServer) -> None:
    with shared.connect("ada") as client:
        unknown = call(client, "none")
    with shared.connect("cyd") as client:
        denied = call(client, "find_person", {"params": {"name": "ada"}})
    with shared.connect("bot") as client:
        other = call(client, "hire", {"params": {"name": "x"}})
    assert unknown.status_code == denied.status_code == other.status_code == 404
    assert unknown.content == denied.content == other.content
    assert unknown.json()["error"] == "stored query not found"


def test_a_call_needs_the_right_of_what_it_does_unless_it_is_carried(
    shared: RunningServer,
) -> None:
    asked = {"params": {"name": "ada"}}
    with shared.connect("bob") as client:
        assert call(client, "find_person", asked).status_code == 403
        assert call(client, "hire", asked).status_code == 403
    with shared.connect("bot") as client:
        assert call(client, "find_person", asked).json()["row_count"] == 1
        adhoc = {"query": "query q() { match { $p: Person } return { $p.name } }"}
        assert client.post(f"{A}/query", json=adhoc).status_code == 403
        assert client.get(f"{A}/snapshot").status_code == 403


def test_what_a_call_expects_is_checked(shared: RunningServer) -> None:
    with shared.connect("ada") as client:
        read = call(client, "find_person", {"expect_mutation": True})
        mutation = call(client, "hire", {"expect_mutation": False})
        snapshot = call(client, "hire", {"snapshot": "x", "params": {"name": "x"}})
        header = {"Omnigraph-If-Graph-Commit": "x"}
        condition = call(client, "find_person/if-graph-commit", {}, headers=header)
        plain = call(client, "hire", {"params": {"name": "x"}}, headers=header)
    assert [each.status_code for each in (read, mutation, snapshot, condition, plain)] == [400] * 5
    assert "query" in read.json()["error"]
    assert "mutate" in mutation.json()["error"]


def test_a_client_names_the_query_that_is_not_found(shared: RunningServer) -> None:
    with (
        open_remote(f"{shared.url}{A}", token="cyd" + "-secret") as graph,
        pytest.raises(StoredQueryNotFoundError, match="stored query 'hire' not found") as failed,
    ):
        graph.invoke_query("hire", {"params": {}})
    assert failed.value.hint is not None


@pytest.mark.parametrize(
    ("verb", "name", "told"),
    [
        ("query", "hire", "'hire' is a mutation"),
        ("alias", "hiring", "'hire' is a mutation"),
        ("mutate", "find_person", "'find_person' is a read"),
    ],
)
def test_commands_call_a_stored_query_of_their_own_kind_only(
    shared: RunningServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    verb: str,
    name: str,
    told: str,
) -> None:
    hiring = "aliases: {hiring: {server: here, graph: alpha, query: hire}}"
    (tmp_path / "config.yaml").write_text(f"servers: {{here: {{url: '{shared.url}'}}}}\n{hiring}\n")
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path))
    monkeypatch.setenv("OMNIGRAPH_BEARER_TOKEN", "ada-secret")
    monkeypatch.delenv("OMNIGRAPH_PROFILE", raising=False)
    place = () if verb == "alias" else ("--server", "here", "--graph", "alpha")
    with shared.connect("ada") as client:
        before = client.get(f"{A}/commits").json()
        found = CliRunner().invoke(app, [verb, name, *place, "--params", '{"name": "eve"}'])
        assert client.get(f"{A}/commits").json() == before
    assert (found.exit_code, found.stdout) == (1, "")
    assert told in found.stderr


def test_a_stored_mutation_writes_and_may_have_a_condition(running: RunningServer) -> None:
    with running.connect("ada") as client:
        made = call(client, "hire", {"params": {"name": "eve"}}).json()
        assert (made["affected_nodes"], made["actor_id"]) == (1, "ada")
        head = made["commit"]["graph_commit_id"]
        header = {"Omnigraph-If-Graph-Commit": head}
        body = {"params": {"name": "fay"}}
        first = call(client, "hire/if-graph-commit", body, headers=header)
        late = call(client, "hire/if-graph-commit", body, headers=header)
    assert (first.status_code, late.status_code) == (200, 412)


def test_the_schema_of_a_managed_graph_is_not_changed_here(shared: RunningServer) -> None:
    asked = {"schema_source": SCHEMA}
    statuses = []
    for actor in (None, "cyd", "ada"):
        with shared.connect(actor) as client:
            statuses.append(client.post(f"{A}/schema/apply", json=asked).status_code)
    assert statuses == [401, 403, 409]


def test_a_bundle_gates_only_what_it_is_bound_to(shared: RunningServer) -> None:
    read = {"query": "query q() { match { $p: Person } return { $p.name } }"}
    with shared.connect("bob") as client:
        assert client.post(f"{A}/query", json=read).status_code == 403
        # No bundle is bound to the other graph, where tokens alone allow to read.
        assert client.post(f"{B}/query", json=read).status_code == 200


def test_a_folder_and_its_storage_serve_the_same(folder: Path) -> None:
    found = [
        boot_cluster(open_cluster(root), make_tokens("ada"), is_open=False, is_strict=True)[0]
        for root in (folder, folder.parent / "root")
    ]
    uris = [{name: each.uri for name, each in state.graphs.items()} for state in found]
    assert uris[0] == uris[1]
    assert found[0].position == found[1].position


def test_what_is_not_applied_is_not_served(folder: Path) -> None:
    with (folder / "queries" / "people.gq").open("a") as file:
        file.write("query later() { match { $p: Person } return { $p.name } }\n")
    with serve_cluster(folder, actors=ACTORS) as running, running.connect("ada") as client:
        assert call(client, "later").status_code == 404


def test_an_apply_and_a_revoked_grant_are_active_without_a_restart(
    folder: Path, running: RunningServer
) -> None:
    with running.connect("ada") as client, running.connect("cyd") as reader:
        assert reader.get(f"{A}/schema").status_code == 200
        with (folder / "queries" / "people.gq").open("a") as file:
            file.write("query later() { match { $p: Person } return { $p.name } }\n")
        (folder / "own.yaml").write_text(OWN.replace("readers: [cyd]", "readers: [other]"))
        before = client.get("/readyz").json()["state_revision"]
        apply_cluster(folder)
        wait_until(lambda: call(client, "later").status_code == 200, running)
        assert reader.get(f"{A}/schema").status_code == 403
        assert client.get("/readyz").json()["state_revision"] > before


def test_a_broken_graph_is_quarantined_and_heals(folder: Path) -> None:
    broken = folder.parent / "root/graphs/beta.omni"
    away = folder.parent / "away"
    shutil.move(broken, away)
    with pytest.raises(ClusterError, match="beta"):
        boot_cluster(open_cluster(folder), make_tokens("ada"), is_open=False, is_strict=True)
    with serve_cluster(folder, actors=ACTORS) as running, running.connect("ada") as client:
        assert [each["graph_id"] for each in client.get("/graphs").json()["graphs"]] == ["alpha"]
        assert client.get("/readyz").json()["quarantined_graph_count"] == 1
        assert client.get(f"{B}/snapshot").status_code == 404
        assert client.get(f"{A}/snapshot").status_code == 200
        shutil.move(away, broken)
        time.sleep(2.1)
        wait_until(lambda: client.get(f"{B}/snapshot").status_code == 200, running)


def test_a_removed_graph_is_not_found_any_more(folder: Path, running: RunningServer) -> None:
    with running.connect("ada") as client:
        assert client.get(f"{B}/snapshot").status_code == 200
        text = CLUSTER.replace("  beta: {schema: g.pg}\n", "")
        (folder / "cluster.yaml").write_text(text)
        plane = ControlPlane(str(folder), "ada")
        assert plane.approve("graph.beta").is_ok
        assert plane.apply().is_ok
        wait_until(lambda: client.get(f"{B}/snapshot").status_code == 404, running)
        assert client.get(f"{A}/snapshot").status_code == 200


def test_tokens_are_followed_and_a_bad_file_keeps_the_old_ones(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "tokens.json"
    file.write_text(json.dumps({name: f"{name}-secret" for name in ACTORS}))
    monkeypatch.setenv(FILE, str(file))
    with (
        serve_cluster(folder, actors=ACTORS) as running,
        running.connect("ada") as old,
        running.connect("dan") as new,
    ):
        assert (old.get("/graphs").status_code, new.get("/graphs").status_code) == (200, 401)
        # A mounted secret is a link that moves.
        (tmp_path / "next.json").write_text('{"dan": "dan-secret"}')
        file.unlink()
        file.symlink_to(tmp_path / "next.json")
        wait_until(lambda: old.get("/graphs").status_code == 401, running)
        assert new.get("/graphs").status_code == 403
        (tmp_path / "next.json").write_text("{")
        running.wake()
        time.sleep(0.2)
        assert new.get("/graphs").status_code == 403


def test_a_revoked_token_is_refused_while_the_cluster_cannot_be_read(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "tokens.json"
    file.write_text(json.dumps({name: f"{name}-secret" for name in ACTORS}))
    monkeypatch.setenv(FILE, str(file))
    with (
        serve_cluster(folder, actors=ACTORS) as running,
        running.connect("ada") as kept,
        running.connect("cyd") as revoked,
    ):
        assert revoked.get(f"{B}/snapshot").status_code == 200
        shutil.move(folder.parent / "root/__cluster", folder.parent / "away")
        file.write_text('{"ada": "ada-secret"}')
        wait_until(lambda: revoked.get(f"{B}/snapshot").status_code == 401, running)
        assert kept.get(f"{B}/snapshot").status_code == 200


def test_a_revision_that_one_graph_could_not_take_is_tried_again(
    folder: Path, running: RunningServer
) -> None:
    payloads = folder.parent / "root/__cluster/resources/query"
    known = {each for each in payloads.rglob("*.*") if each.is_file()}
    with (folder / "queries" / "people.gq").open("a") as file:
        file.write("query later() { match { $p: Person } return { $p.name } }\n")
    apply_cluster(folder)
    found = {each for each in payloads.rglob("*.*") if each.is_file()} - known
    contents = {each: each.read_bytes() for each in found}
    for each in found:
        each.unlink()
    with running.connect("ada") as client:
        before = running.serving.state
        wait_until(lambda: running.serving.state is not before, running)
        assert running.serving.state.stale_since is not None
        assert call(client, "later").status_code == 404
        assert client.get(f"{A}/snapshot").status_code == 200
        for each, content in contents.items():
            each.write_bytes(content)
        time.sleep(2.1)
        wait_until(lambda: call(client, "later").status_code == 200, running)
        assert running.serving.state.stale_since is None


def test_requests_of_a_graph_that_is_opened_again_go_on(folder: Path) -> None:
    text = CLUSTER.replace("alpha: {", "alpha: {embedding_provider: own, ")
    provider = "providers: {{embedding: {{own: {{kind: mock, model: {}}}}}}}\n"
    (folder / "cluster.yaml").write_text(text + provider.format("first"))
    apply_cluster(folder)
    with serve_cluster(folder, actors=ACTORS) as running:
        old = running.serving.state.graphs["alpha"]
        (folder / "cluster.yaml").write_text(text + provider.format("second"))
        apply_cluster(folder)
        wait_until(
            lambda: running.serving.state.graphs["alpha"].session is not old.session, running
        )
        assert old.open_for("ada").branch().count("Person") == 4


def test_a_graph_whose_provider_has_no_key_is_quarantined(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = "providers: {embedding: {own: {kind: mock, model: '${MODEL_OF_TESTS}'}}}\n"
    text = CLUSTER.replace("beta: {schema: g.pg}", "beta: {schema: g.pg, embedding_provider: own}")
    (folder / "cluster.yaml").write_text(text + provider)
    apply_cluster(folder)
    monkeypatch.delenv("MODEL_OF_TESTS", raising=False)
    state, quarantined = boot_cluster(
        open_cluster(folder), make_tokens("ada"), is_open=False, is_strict=False
    )
    assert (set(state.graphs), set(quarantined)) == ({"alpha"}, {"beta"})
    assert "MODEL_OF_TESTS" in quarantined["beta"].reason
    monkeypatch.setenv("MODEL_OF_TESTS", "m")
    state, quarantined = boot_cluster(
        open_cluster(folder), make_tokens("ada"), is_open=False, is_strict=True
    )
    assert set(state.graphs) == {"alpha", "beta"}


@pytest.mark.slow
def test_no_request_fails_while_revisions_are_applied(folder: Path) -> None:
    read = {"query": "query q() { match { $p: Person } return { $p.name } }"}
    statuses: Counter[int] = Counter()
    is_over = threading.Event()
    with serve_cluster(folder, actors=ACTORS, reload_s=0.5) as running:

        def ask() -> None:
            with running.connect("ada") as client:
                while not is_over.wait(0.01):
                    statuses[client.post(f"{A}/query", json=read).status_code] += 1

        threads = [threading.Thread(target=ask) for _ in range(2)]
        for each in threads:
            each.start()
        with running.connect("ada") as client:
            for number in range(10):
                name = f"later{number}"
                with (folder / "queries" / "people.gq").open("a") as file:
                    file.write(
                        f"query {name}() {{ match {{ $p: Person }} return {{ $p.name }} }}\n"
                    )
                apply_cluster(folder)
                # The server follows by itself: it is not woken.
                until = time.monotonic() + 30
                while call(client, name).status_code != 200:
                    assert time.monotonic() < until, "the revision is not active"
                    time.sleep(0.05)
        is_over.set()
        for each in threads:
            each.join(30)
    assert statuses.keys() == {200}
    assert statuses[200] > 50
