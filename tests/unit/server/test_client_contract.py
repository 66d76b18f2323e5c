"""What existing clients send and rely on: each in the form in which they send it."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any, TypeAlias

import httpx
import pytest

import omnigraph
from served import PEOPLE, SCHEMA, apply_cluster, serve_cluster

Parameters: TypeAlias = list[tuple[str, str | int | float | bool | None]]
A, B = "/graphs/alpha", "/graphs/beta"
HEADERS = {"accept": "application/json, application/x-ndjson"}
LINES = {"content-type": "application/x-ndjson"}
NAMES = "query names() { match { $p: Person } return { $p.name } order { $p.name } }"
QUERIES = f"""{NAMES}
query hire($name: String) {{ insert Person {{ name: $name }} }}
query wanted($name: String, $tags: [String]?) {{
  match {{ $p: Person {{ name: $name }} }} return {{ $p.name }} }}
"""
POLICY = """\
version: 1
groups: {all: [default]}
rules:
  - id: all
    allow: {actors: {group: all}, actions: [read, change, export, invoke_query, branch_create,
      branch_delete, branch_merge]}
"""
LIST = """\
version: 1
groups: {all: [default]}
rules:
  - id: see
    allow: {actors: {group: all}, actions: [graph_list]}
"""
CLUSTER = """\
version: 1
storage: ../root
graphs:
  alpha: {schema: g.pg, queries: people.gq}
  beta: {schema: g.pg}
policies:
  own: {file: own.yaml, applies_to: [alpha, beta]}
  list: {file: list.yaml, applies_to: [cluster]}
"""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client as the bridges of agents have it; each test writes to a branch of its own."""
    folder = tmp_path_factory.mktemp("contract") / "config"
    folder.mkdir()
    files = {"people.gq": QUERIES, "g.pg": SCHEMA, "own.yaml": POLICY, "list.yaml": LIST}
    for name, text in (files | {"cluster.yaml": CLUSTER}).items():
        (folder / name).write_text(text)
    apply_cluster(folder, is_first=True)
    for name in ("alpha", "beta"):
        with omnigraph.open(folder.parent / f"root/graphs/{name}.omni", durable=False) as graph:
            graph.branch().load(PEOPLE, mode="append")
    with serve_cluster(folder, actors=("default",)) as running:
        headers = HEADERS | {"authorization": "Bearer default-secret"}
        with httpx.Client(base_url=running.url, headers=headers, timeout=30) as connected:
            yield connected


def fork(client: httpx.Client, name: str) -> str:
    """A branch for a test, and its head."""
    made = client.post(f"{A}/branches", json={"name": name})
    assert made.json().keys() == {"uri", "from", "name", "actor_id"}
    return read_head(client, name)


def read_head(client: httpx.Client, branch: str) -> str:
    answer = client.post(f"{A}/query", json={"query": NAMES, "branch": branch})
    return str(answer.json()["graph_commit_id"])


def test_a_server_says_what_it_is_and_has(client: httpx.Client) -> None:
    health = client.get("/healthz")
    assert health.headers["content-type"] == "application/json"
    assert health.json()["version"].split(".")[:2] == ["0", "10"]
    assert [each["graph_id"] for each in client.get("/graphs").json()["graphs"]] == [
        *("alpha", "beta")
    ]
    datasets = client.get(f"{A}/snapshot").json()["datasets"]
    assert [(each["type_name"], each["entity_kind"]) for each in datasets] == [
        *(("Knows", "edge"), ("WorksAt", "edge"), ("Company", "node"), ("Person", "node"))
    ]
    assert [each["entity_count"] for each in datasets] == [3, 0, 0, 4]
    assert client.get(f"{A}/schema").json() == {"schema_source": SCHEMA}
    wrong = client.get(f"{A}/branches", headers={"authorization": "Bearer wrong"})
    assert (wrong.status_code, wrong.json()["code"]) == (401, "unauthorized")


def test_members_may_be_null_or_left_out(client: httpx.Client) -> None:
    nulls = dict.fromkeys(("name", "params", "branch", "snapshot"))
    found = client.post(f"{A}/query", json={"query": NAMES} | nulls).json()
    assert found["target"] == {"branch": "main", "snapshot": None}
    assert found["columns"] == ["p.name"]
    assert found["row_count"] == 4
    fork(client, "nulls")
    loaded = client.post(
        f"{A}/load",
        json={"data": json.dumps(PEOPLE[1]), "branch": "nulls", "from": None, "mode": "merge"},
    ).json()
    assert (loaded["base_branch"], loaded["branch_created"]) == (None, False)
    assert (loaded["nodes"], loaded["edges"]) == ([{"name": "Person", "entities_loaded": 1}], [])


def test_a_branch_goes_round(client: httpx.Client) -> None:
    name = "etl/2026 run+1"
    fork(client, name)
    assert name in client.get(f"{A}/branches").json()["branches"]
    asked = {"source": name, "target": "main"}
    outcomes = [client.post(f"{A}/branches/merge", json=asked).json() for _ in range(2)]
    assert outcomes[0]["outcome"] in {"fast_forward", "already_up_to_date"}
    assert outcomes[1]["outcome"] == "already_up_to_date"
    deleted = client.delete(f"{A}/branches/etl%2F2026%20run%2B1")
    assert (deleted.status_code, deleted.json()["name"]) == (200, name)
    assert name not in client.get(f"{A}/branches").json()["branches"]


@pytest.mark.parametrize("route", ["/mutate", "/queries/hire"])
def test_a_conditional_write_has_a_receipt(client: httpx.Client, route: str) -> None:
    branch = f"conditional{len(route)}"
    head = fork(client, branch)
    call: dict[str, Any] = {"params": {"name": "eve"}, "branch": branch}
    body = call if route != "/mutate" else call | {"query": QUERIES, "name": "hire"}
    header = {"Omnigraph-If-Graph-Commit": head}
    made = client.post(f"{A}{route}/if-graph-commit", json=body, headers=header).json()
    assert made["commit"]["parent_commit_id"] == head
    assert (made["commit"]["actor_id"], made["commit"]["graph_branch"]) == ("default", branch)
    kept = client.get(f"{A}/commits/{made['commit']['graph_commit_id']}").json()
    assert kept == made["commit"]
    stale = client.post(f"{A}{route}/if-graph-commit", json=body, headers=header)
    assert stale.status_code == 412
    assert stale.json()["precondition_failure"].keys() == {"expected", "actual"}
    assert read_head(client, branch) == made["commit"]["graph_commit_id"]


def test_a_stored_query_without_parameters_takes_any_empty_body(client: httpx.Client) -> None:
    for content in (b"", b"{}", b"null"):
        for media in (None, "application/json"):
            headers = {} if media is None else {"content-type": media}
            answer = client.post(f"{A}/queries/names", content=content, headers=headers)
            assert (answer.status_code, answer.json()["row_count"]) == (200, 4)


def test_the_pages_of_a_commit_are_those_of_the_feed(client: httpx.Client) -> None:
    fork(client, "paged")
    cursor = client.get(f"{A}/changes", params={"branch": "paged"}).json()["cursor"]
    content = (
        '{"edge": "Knows", "from": "eve", "to": "ada"}\n{"type": "Person", "data": {"name": "eve"}}'
    )
    route = f"{A}/load/ndjson?branch=paged&mode=append"
    commit = client.post(route, content=content, headers=LINES).json()["commit"]
    both: Parameters = [("kind", "node"), ("kind", "edge")]
    asked: Parameters = []
    diff = []
    while True:
        at = f"{A}/commits/{commit['graph_commit_id']}/changes"
        page = client.get(at, params=[("limit", "1"), *both, *asked]).json()
        diff += page["changes"]
        if "next_page_token" not in page:
            break
        asked = [("page_token", page["next_page_token"])]
    assert [each["kind"] for each in diff] == ["node", "edge"]
    found, asked = [], [("cursor", cursor)]
    while True:
        given: Parameters = [("branch", "paged"), ("limit", "1"), *both, *asked]
        page = client.get(f"{A}/changes", params=given).json()
        found += [each for block in page["blocks"] for each in block["changes"]]
        assert ("cursor" in page) == ("next_page_token" not in page)
        if "cursor" in page:
            break
        asked = [("page_token", page["next_page_token"])]
    assert found == diff
    last: Parameters = [("branch", "paged"), *both, ("cursor", page["cursor"])]
    end = client.get(f"{A}/changes", params=last).json()
    assert (end["blocks"], end["caught_up"]) == ([], True)


def test_a_baseline_names_the_head_of_its_branch(client: httpx.Client) -> None:
    head = fork(client, "baseline")
    *records, last = client.post(f"{A}/changes/baseline", json={"branch": "baseline"}).text.split(
        "\n"
    )[:-1]
    assert len(records) == 7
    assert json.loads(last)["baseline"]["snapshot_commit_id"] == head


def test_a_blob_is_read_at_a_commit(client: httpx.Client) -> None:
    asked = {"entity": "node", "type": "Person", "id": "ada", "property": "avatar"}
    asked["snapshot"] = read_head(client, "main")
    accept = {"accept": "application/octet-stream"}
    whole = client.get(f"{A}/blob", params=asked, headers=accept)
    assert base64.b64encode(whole.content) == b"SGVsbG8gV29ybGQ="
    part = client.get(f"{A}/blob", params=asked, headers=accept | {"range": "bytes=0-4"})
    assert (part.status_code, part.content) == (206, b"Hello")
    known = {"if-none-match": whole.headers["etag"]}
    assert client.get(f"{A}/blob", params=asked, headers=accept | known).status_code == 304
    assert client.head(f"{A}/blob", params=asked).headers["content-length"] == "11"


def test_an_export_has_every_entity(client: httpx.Client) -> None:
    lines = client.post(f"{B}/export", json={}).text.splitlines()
    assert sum("type" in json.loads(each) for each in lines) == 4
    assert all({"data", "type"} <= json.loads(each).keys() for each in lines if '"type"' in each)


def test_a_failure_says_its_status_and_its_reason(client: httpx.Client) -> None:
    unreadable = client.post(f"{A}/query", json={"query": "not a query"})
    assert (unreadable.status_code, unreadable.json()["code"]) == (400, "bad_request")
    missing = client.post(f"{A}/queries/wanted", json={"params": {"tags": ["x"]}})
    assert (missing.status_code, "name" in missing.json()["error"]) == (400, True)
    managed = client.post(f"{A}/schema/apply", json={"schema_source": SCHEMA})
    assert managed.status_code == 403
