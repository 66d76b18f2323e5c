from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from served import PEOPLE, serve_people

G = "/graphs/people"
READ = "query q() { match { $p: Person } return { $p.name } order { $p.name } }"
BY_AGE = "query by_age($age: I64) { match { $p: Person { age: $age } } return { $p.name, $p.age } }"
ARROW = "application/vnd.apache.arrow.stream"
LINES = {"content-type": "application/x-ndjson"}


@pytest.fixture
def client(tmp_path: Path) -> Iterator[httpx.Client]:
    """A client of an open server for a graph of its own."""
    with serve_people(tmp_path) as running, running.connect() as connected:
        yield connected


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of a server whose graph no test changes."""
    with (
        serve_people(tmp_path_factory.mktemp("served")) as running,
        running.connect() as connected,
    ):
        yield connected


def hire(name: str) -> dict[str, Any]:
    return {"query": f'query hire() {{ insert Person {{ name: "{name}" }} }}'}


def read_head(client: httpx.Client, branch: str = "main") -> str:
    found = client.post(f"{G}/query", json={"query": READ, "branch": branch}).json()
    return str(found["graph_commit_id"])


def count_commits(client: httpx.Client) -> int:
    return len(client.get(f"{G}/commits").json()["commits"])


def test_a_wrong_query_is_refused_and_a_mutation_names_its_route(shared: httpx.Client) -> None:
    before = count_commits(shared)
    wrong = shared.post(f"{G}/query", json={"query": "this is not a query"})
    mutation = shared.post(f"{G}/query", json=hire("eve"))
    assert (wrong.status_code, wrong.json()["code"]) == (400, "bad_request")
    assert mutation.status_code == 400
    assert "mutation" in mutation.json()["error"]
    assert "/mutate" in mutation.json()["error"]
    assert count_commits(shared) == before


def test_a_read_is_of_a_branch_or_of_a_commit(shared: httpx.Client) -> None:
    commit = read_head(shared)
    asked = {"query": READ, "snapshot": commit}
    found = shared.post(f"{G}/query", json=asked).json()
    assert found["target"] == {"branch": None, "snapshot": commit}
    assert found["row_count"] == len(found["rows"]) == 4
    assert shared.post(f"{G}/query", json=asked | {"branch": "main"}).status_code == 400
    assert shared.post(f"{G}/query", json={"query": READ, "branch": "no"}).status_code == 404


def test_parameters_are_exact_and_named_in_errors(client: httpx.Client) -> None:
    person = {"type": "Person", "data": {"name": "big", "age": 9007199254740993}}
    assert client.post(f"{G}/load", json={"data": json.dumps(person)}).status_code == 200
    asked = {"query": BY_AGE, "params": {"age": "9007199254740993"}}
    answer = client.post(f"{G}/query", json=asked)
    assert answer.json()["rows"] == [{"p.name": "big", "p.age": 9007199254740993}]
    for wrong in ("ten", None, 1.5):
        refused = client.post(f"{G}/query", json={"query": BY_AGE, "params": {"age": wrong}})
        assert refused.status_code == 400
        assert "age" in refused.json()["error"]
    empty = client.post(f"{G}/query", json={"query": BY_AGE, "params": {"age": -1}}).json()
    assert (empty["rows"], empty["row_count"]) == ([], 0)


def test_a_read_answers_in_arrow_when_it_is_asked_to(shared: httpx.Client) -> None:
    answer = shared.post(f"{G}/query", json={"query": READ}, headers={"accept": ARROW})
    assert answer.headers["content-type"] == ARROW
    assert answer.headers["omnigraph-graph-commit"] == read_head(shared)
    with pa.ipc.open_stream(answer.content) as reader:
        assert reader.read_all().to_pydict() == {"p.name": ["ada", "bob", "cyd", "dan"]}


def test_a_read_answers_in_json_when_arrow_is_refused(shared: httpx.Client) -> None:
    for accept in (f"{ARROW};q=0, application/json", f"{ARROW}; Q=0.0", f"{ARROW}s"):
        answer = shared.post(f"{G}/query", json={"query": READ}, headers={"accept": accept})
        assert answer.headers["content-type"] == "application/json", accept
    several = f"application/json;q=0.1, {ARROW.upper()};q=0.9"
    answer = shared.post(f"{G}/query", json={"query": READ}, headers={"accept": several})
    assert answer.headers["content-type"] == ARROW


def test_old_routes_work_and_name_their_successors(client: httpx.Client) -> None:
    old = client.post(f"{G}/read", json={"query_source": READ, "query_name": "q"})
    assert "graph_commit_id" not in old.json()
    assert old.json()["row_count"] == 4
    changed = client.post(f"{G}/change", json={"query_source": hire("eve")["query"]})
    loaded = client.post(f"{G}/ingest", json={"data": json.dumps(PEOPLE[1])})
    for answer, successor in ((old, "query"), (changed, "mutate"), (loaded, "load")):
        assert answer.status_code == 200, answer.text
        assert answer.headers["deprecation"] == "true"
        assert answer.headers["link"] == f'<{successor}>; rel="successor-version"'


def test_a_condition_belongs_to_its_route_and_is_one_raw_id(client: httpx.Client) -> None:
    commit = read_head(client)
    name = "Omnigraph-If-Graph-Commit"
    plain = client.post(f"{G}/mutate", json=hire("eve"), headers={name: commit})
    assert plain.status_code == 400
    route = f"{G}/mutate/if-graph-commit"
    wrong: list[list[tuple[str, str]]] = [
        [],
        [(name, commit), (name, commit)],
        *([(name, text)] for text in ("*", f'"{commit}"', f'W/"{commit}"', f"{commit},x", "")),
    ]
    for headers in wrong:
        assert client.post(route, json=hire("eve"), headers=headers).status_code == 400
    assert read_head(client) == commit


def test_a_conditional_write_needs_the_head_it_names(client: httpx.Client) -> None:
    """A stale condition is 412, and has no effect."""
    head = read_head(client)
    route = f"{G}/mutate/if-graph-commit"
    made = client.post(route, json=hire("eve"), headers={"Omnigraph-If-Graph-Commit": head})
    assert made.status_code == 200
    commit = made.json()["commit"]
    assert commit["parent_commit_id"] == head
    assert client.get(f"{G}/commits/{commit['graph_commit_id']}").json() == commit
    for stale in (head, "01ARZ3NDEKTSV4RRFFQ69G5FAV", "not-a-ulid".replace("-", "")):
        late = client.post(route, json=hire("fay"), headers={"Omnigraph-If-Graph-Commit": stale})
        assert late.status_code == 412, late.text
        found = late.json()
        assert "code" not in found
        actual = commit["graph_commit_id"]
        assert found["precondition_failure"] == {"expected": stale, "actual": actual}
    assert read_head(client) == commit["graph_commit_id"]


def test_a_fresh_branch_has_the_head_it_started_from(client: httpx.Client) -> None:
    client.post(f"{G}/branches", json={"name": "draft"})
    head = read_head(client, "draft")
    assert head == read_head(client)
    asked = hire("eve") | {"branch": "draft"}
    route = f"{G}/mutate/if-graph-commit"
    made = client.post(route, json=asked, headers={"Omnigraph-If-Graph-Commit": head})
    assert made.status_code == 200
    assert made.json()["commit"]["graph_branch"] == "draft"


def test_a_mutation_without_effect_makes_no_commit(client: httpx.Client) -> None:
    head = read_head(client)
    nothing = 'query none() { delete Person where name = "nobody-here" }'
    made = client.post(f"{G}/mutate", json={"query": nothing})
    assert made.status_code == 200, made.text
    assert made.json()["commit"] is None
    assert read_head(client) == head


def test_concurrent_loads_of_one_key_never_conflict(client: httpx.Client) -> None:
    person = json.dumps({"type": "Person", "data": {"name": "same", "age": 1}})

    def load(_: int) -> int:
        return client.post(f"{G}/load", json={"data": person}).status_code

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(load, range(16))) == {200}


def test_concurrent_updates_are_done_or_conflict(client: httpx.Client) -> None:
    update = 'query up($age: I64) { update Person set { age: $age } where name = "ada" }'

    def change(age: int) -> httpx.Response:
        asked = {"query": update, "params": {"age": age}}
        return client.post(f"{G}/mutate", json=asked)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(change, range(100, 116)))
    done = [each.json()["commit"] for each in answers if each.status_code == 200]
    refused = [each for each in answers if each.status_code != 200]
    assert done
    assert {each.status_code for each in refused} <= {409}
    assert {each.json()["code"] for each in refused} <= {"conflict"}
    assert {each["graph_commit_id"] for each in done} <= {
        each["graph_commit_id"] for each in client.get(f"{G}/commits").json()["commits"]
    }


def test_a_load_forks_its_branch_only_for_right_records(client: httpx.Client) -> None:
    person = {"type": "Person", "data": {"name": "eve"}}
    asked = {"data": json.dumps(person), "branch": "fork", "from": "main"}
    missing = client.post(f"{G}/load", json={"data": asked["data"], "branch": "fork"})
    assert missing.status_code == 404
    wrong = client.post(f"{G}/load", json=asked | {"data": '{"type": "Nothing", "data": {}}'})
    assert wrong.status_code == 400
    assert client.get(f"{G}/branches").json() == {"branches": ["main"]}
    made = client.post(f"{G}/load", json=asked).json()
    assert made["branch_created"] is True
    assert made["base_branch"] == "main"
    assert made["nodes"] == [{"name": "Person", "entities_loaded": 1}]
    assert (made["edges"], made["total_entities"]) == ([], 1)
    again = client.post(f"{G}/load", json=asked).json()
    assert again["branch_created"] is False


def test_a_dry_load_creates_no_branch(client: httpx.Client) -> None:
    person = json.dumps({"type": "Person", "data": {"name": "eve"}})
    asked = {"data": person, "branch": "fork", "from": "main", "dry_run": True}
    refused = client.post(f"{G}/load", json=asked)
    assert (refused.status_code, refused.json()["argument"]) == (400, "dry_run")
    assert client.get(f"{G}/branches").json() == {"branches": ["main"]}


def test_a_strict_insert_of_a_known_id_is_a_key_conflict(client: httpx.Client) -> None:
    person = json.dumps({"type": "Person", "data": {"name": "ada"}})
    answer = client.post(f"{G}/load", json={"data": person, "mode": "append"})
    assert answer.status_code == 409
    conflict = answer.json()["key_conflict"]
    assert conflict == {"entity_kind": "node", "type_name": "Person", "entity_id": "ada"}


def test_bodies_have_limits(client: httpx.Client) -> None:
    large = client.post(f"{G}/query", json={"query": " " * 1_100_000})
    assert large.status_code == 413
    assert large.json()["resource_limit"]["limit"] == 1024 * 1024
    load = client.post(f"{G}/load", json={"data": " " * (33 * 1024 * 1024)})
    assert load.status_code == 413
    lines = client.post(f"{G}/load/ndjson", content=b" " * (33 * 1024 * 1024), headers=LINES)
    assert lines.status_code == 413
    assert lines.json()["resource_limit"]["resource"] == "graph_batch_request_bytes"

    def chunks() -> Iterator[bytes]:
        yield from (b" " * 65_536 for _ in range(32))

    unknown = client.post(
        f"{G}/query", content=chunks(), headers={"content-type": "application/json"}
    )
    assert unknown.status_code == 413


def test_bodies_have_a_type_and_a_shape(shared: httpx.Client) -> None:
    for media in ("text/plain", None):
        headers = {} if media is None else {"content-type": media}
        assert shared.post(f"{G}/query", content=b"{}", headers=headers).status_code == 415
        assert shared.post(f"{G}/export", content=b"{}", headers=headers).status_code == 415
        assert shared.post(f"{G}/load/ndjson", content=b"{}", headers=headers).status_code == 415
    bodies: list[Any] = [{}, {"query": 1}, [], {"query": READ, "params": [1]}]
    for body in bodies:
        refused = shared.post(f"{G}/query", json=body)
        assert (refused.status_code, refused.json()["code"]) == (400, "bad_request")
    for data in (b"{", b"\xff", b""):
        headers = {"content-type": "application/json"}
        assert shared.post(f"{G}/query", content=data, headers=headers).status_code == 400
    assert shared.post(f"{G}/query", json={"query": READ, "unknown": 1}).status_code == 200
    assert shared.post(f"{G}/export", json={"unknown": 1}).status_code == 400


@pytest.mark.parametrize(
    "line",
    [
        '{"type":"Person","data":{"name":"x","name":"y"}}',
        '{"type":"Person","data":{"name":"x","unknown":1}}',
        '{"type":"Person","edge":"Knows","data":{"name":"x"}}',
        "\ufeff{",
    ],
)
def test_a_wrong_line_leaves_nothing(shared: httpx.Client, line: str) -> None:
    before = count_commits(shared)
    good = '{"type":"Person","data":{"name":"zed"}}\n'
    content = (good + line).encode()
    refused = shared.post(f"{G}/load/ndjson?mode=append", content=content, headers=LINES)
    assert refused.status_code == 400, refused.text
    assert count_commits(shared) == before


def test_a_wrong_record_is_counted_in_the_data(shared: httpx.Client) -> None:
    refused = shared.post(f"{G}/load", json={"data": '{"type":"Person"}'}).json()
    assert refused["error"].startswith("data record 1: "), refused


def test_lines_are_loaded_in_one_commit(client: httpx.Client) -> None:
    before = count_commits(client)
    lines = "\n".join(json.dumps({"type": "Person", "data": {"name": f"p{n}"}}) for n in range(50))
    headers = {"content-type": "application/x-ndjson; charset=utf-8"}
    made = client.post(f"{G}/load/ndjson?mode=append", content=lines, headers=headers)
    assert made.status_code == 200
    assert "uri" not in made.json()
    assert made.json()["total_entities"] == 50
    assert count_commits(client) == before + 1


def test_branches_are_created_listed_merged_and_deleted(client: httpx.Client) -> None:
    assert client.post(f"{G}/branches", json={"name": "etl/run-1"}).json()["from"] == "main"
    assert client.post(f"{G}/branches", json={"name": "etl/run-1"}).status_code == 409
    assert client.post(f"{G}/branches", json={"name": "b", "from": "none"}).status_code == 404
    assert client.get(f"{G}/branches").json() == {"branches": ["etl/run-1", "main"]}
    client.post(f"{G}/mutate", json=hire("eve") | {"branch": "etl/run-1"})
    first = client.post(f"{G}/branches/merge", json={"source": "etl/run-1"}).json()
    again = client.post(f"{G}/branches/merge", json={"source": "etl/run-1"}).json()
    assert first["outcome"] in {"fast_forward", "merged"}
    assert again["outcome"] == "already_up_to_date"
    assert not {"branch_deleted", "branch_delete_error"} & again.keys()
    assert client.delete(f"{G}/branches/etl%2Frun-1").status_code == 200
    assert client.delete(f"{G}/branches/etl%2Frun-1").status_code == 404
    assert client.delete(f"{G}/branches/main").status_code == 400
    assert client.get(f"{G}/branches/merge").status_code == 405


def test_a_merge_conflict_lists_the_conflicts_and_changes_nothing(client: httpx.Client) -> None:
    client.post(f"{G}/branches", json={"name": "draft"})
    for branch, age in (("main", 1), ("draft", 2)):
        person = json.dumps({"type": "Person", "data": {"name": "bob", "age": age}})
        client.post(f"{G}/load", json={"data": person, "branch": branch})
    head = read_head(client)
    refused = client.post(f"{G}/branches/merge", json={"source": "draft"})
    assert refused.status_code == 409
    conflict = refused.json()["merge_conflicts"][0]
    assert conflict.items() >= {"entity_kind": "node", "type_name": "Person"}.items()
    assert conflict["entity_id"] == "bob"
    assert conflict["kind"] == "divergent_update"
    assert conflict["message"]
    assert read_head(client) == head


def test_commits_and_schema_and_snapshot_are_read(shared: httpx.Client) -> None:
    commits = shared.get(f"{G}/commits").json()["commits"]
    assert shared.get(f"{G}/commits/{commits[0]['graph_commit_id']}").json() == commits[0]
    unknown = shared.get(f"{G}/commits/01ARZ3NDEKTSV4RRFFQ69G5FAV")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "not_found")
    assert "node Person" in shared.get(f"{G}/schema").json()["schema_source"]
    datasets = shared.get(f"{G}/snapshot").json()["datasets"]
    kinds = [each["entity_kind"] for each in datasets]
    assert kinds == ["edge", "edge", "node", "node"]
    counts = {each["type_name"]: each["entity_count"] for each in datasets}
    assert (counts["Person"], counts["Knows"]) == (4, 3)
    assert all(each["native_dataset_branch"] is None for each in datasets)


def test_a_schema_is_applied_where_no_cluster_manages_it(client: httpx.Client) -> None:
    schema = client.get(f"{G}/schema").json()["schema_source"]
    wider = schema.replace("age: I64?", "age: I64?\n  city: String?")
    made = client.post(f"{G}/schema/apply", json={"schema_source": wider}).json()
    assert made["applied"] is True
    assert made["step_count"] == len(made["steps"]) == 1
    assert "city" in client.get(f"{G}/schema").json()["schema_source"]
    request = {"schema_source": wider.replace("city: String?", "city: I64?")}
    refused = client.post(f"{G}/schema/apply", json=request)
    assert "--convert" in refused.json()["error"]
    made = client.post(f"{G}/schema/apply", json=request | {"convert": True}).json()
    assert [step["kind"] for step in made["steps"]] == ["convert_property"]


def test_every_answer_has_a_request_id(shared: httpx.Client) -> None:
    own = shared.get("/healthz", headers={"x-request-id": "mine-1"})
    assert own.headers["x-request-id"] == "mine-1"
    assert len(shared.get("/nothing").headers["x-request-id"]) == 26


def test_methods_and_paths_that_do_not_exist_are_told_apart(shared: httpx.Client) -> None:
    wrong = shared.put(f"{G}/query", json={})
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
    assert wrong.json()["code"] == "method_not_allowed"
    assert shared.get("/graphs//snapshot").status_code == 404
    assert shared.get(f"{G}/%ff").status_code == 400


def test_probes_ask_without_a_body(shared: httpx.Client) -> None:
    for path in ("/healthz", "/readyz"):
        found = shared.head(path)
        assert (found.status_code, found.content) == (200, b"")
        assert found.headers["content-length"] == str(len(shared.get(path).content))
    assert shared.head(f"{G}/snapshot").status_code == 405


def test_a_query_has_a_budget(tmp_path: Path) -> None:
    write = "query q() { match { $p: Person } update $p set { age: 1 } }"
    with serve_people(tmp_path, read_s_max=0.0) as running, running.connect() as client:
        before = count_commits(client)
        for path, text in (("query", READ), ("mutate", write)):
            timed = client.post(f"{G}/{path}", json={"query": text})
            assert timed.status_code == 413
            assert timed.json()["resource_limit"]["resource"] == "query_time_ms"
        assert count_commits(client) == before
