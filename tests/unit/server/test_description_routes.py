"""What a server says of itself, of types and of texts, for clients that draw pages of it."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

import omnigraph
from omnigraph.client.remote_graph import open_remote
from served import RunningServer, serve_people

G = "/graphs/people"
# Cyd may read people and nothing else, and dan nothing at all.
POLICY = """\
version: 1
groups: {all: [ada], some: [cyd]}
rules:
  - id: everything
    allow: {actors: {group: all}, actions: [read, change]}
  - id: people
    allow: {actors: {group: some}, actions: [read], types: [Person]}
"""
PEOPLE = ("avatar", "age", "name")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("served")
    with serve_people(folder, actors=("ada", "cyd", "dan"), policy=POLICY) as running:
        yield running


@pytest.fixture(scope="module")
def ada(served: RunningServer) -> Iterator[httpx.Client]:
    with served.connect("ada") as client:
        yield client


def test_a_session_names_the_actor_and_the_graphs_that_it_may_read(served: RunningServer) -> None:
    found = {}
    for actor in ("ada", "cyd", "dan"):
        with served.connect(actor) as client:
            found[actor] = client.get("/session").json()
    assert {actor: each["graphs"] for actor, each in found.items()} == {
        "ada": ["people"],
        "cyd": ["people"],
        "dan": [],
    }
    assert found["dan"] == {
        "actor_id": "dan",
        "auth_mode": "policy_enabled",
        "version": omnigraph.__version__,
        "graphs": [],
    }
    with served.connect() as stranger:
        assert stranger.get("/session").status_code == 401


def test_types_are_listed_with_their_properties_and_counts(ada: httpx.Client) -> None:
    found = ada.get(f"{G}/schema/types").json()["types"]
    assert [(each["kind"], each["name"], each["entity_count"]) for each in found] == [
        ("node", "Company", 0),
        ("node", "Person", 4),
        ("edge", "Knows", 3),
        ("edge", "WorksAt", 0),
    ]
    person, works = found[1], found[3]
    assert person["key"] == ["name"]
    assert (works["source"], works["target"]) == ("Person", "Company")
    described = {each.pop("name"): each for each in person["properties"]}
    assert sorted(described) == sorted(PEOPLE)
    assert described["age"] == {"type": "I64?", "kind": "bigint", "nullable": True}


def test_only_the_types_that_an_actor_may_read_are_named(served: RunningServer) -> None:
    with served.connect("cyd") as client:
        answer = client.get(f"{G}/schema/types")
        assert [each["name"] for each in answer.json()["types"]] == ["Person"]
        assert "WorksAt" not in answer.text
        assert client.get(f"{G}/indexes").status_code == 403
    with served.connect("dan") as client:
        assert client.get(f"{G}/schema/types").status_code == 403


def test_a_text_is_checked_without_being_run(ada: httpx.Client) -> None:
    text = """query ages($least: I64, $most: I64?) {
  match { $p: Person  $p.age >= $least }
  return { $p, $p.agee as age }
}
query hire($name: String) { insert Person { name: $name } }
"""
    found = ada.post(f"{G}/query/check", json={"query": text}).json()
    [error] = [each for each in found["diagnostics"] if each["severity"] == "error"]
    assert "agee" in error["message"]
    places = [(error[name]["line"], error[name]["column"]) for name in ("position", "end")]
    assert places == [(3, 19), (3, 23)]
    assert [each["name"] for each in found["queries"]] == ["hire"]

    mended = text.replace("agee", "age")
    read, write = ada.post(f"{G}/query/check", json={"query": mended}).json()["queries"]
    assert (read["mutation"], write["mutation"]) == (False, True)
    assert [each["name"] for each in read["params"]] == ["least", "most"]
    assert read["nodes"] == {"p": "Person"}
    assert [each["kind"] for each in read["result"]] == ["object", "bigint"]


def test_indexes_are_listed_as_the_library_lists_them(served: RunningServer) -> None:
    with open_remote(f"{served.url}{G}", token="ada-secret") as graph:  # noqa: S106 — of a test
        found = graph.index_status()
    assert [(str(each.type_key), each.property, each.state.value) for each in found[:2]] == [
        ("node:Company", "@id", "pending"),
        ("node:Company", "name", "pending"),
    ]
    assert found[2].total_rows == 4
