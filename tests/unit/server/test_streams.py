from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import omnigraph
from served import RunningServer, serve_people

G = "/graphs/people"
LINES = {"content-type": "application/x-ndjson"}
BLOB = f"{G}/blob?entity=node&type=Person&id=ada&property=avatar"
HELLO = b"Hello World"
POLICY = """\
version: 1
groups: {readers: [bob], exporters: [cyd], drafters: [dan], all: [ada]}
protected_branches: [main]
rules:
  - id: read
    allow: {actors: {group: readers}, actions: [read]}
  - id: export
    allow: {actors: {group: exporters}, actions: [export]}
  - id: drafts
    allow: {actors: {group: drafters}, actions: [read, change], branch_scope: unprotected}
  - id: change
    allow: {actors: {group: all}, actions: [read, change, export, branch_merge, branch_create]}
"""


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


@pytest.fixture(scope="module")
def governed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server with a policy, whose graph no test changes."""
    folder = tmp_path_factory.mktemp("served")
    with serve_people(folder, actors=("ada", "bob", "cyd", "dan"), policy=POLICY) as running:
        yield running


def list_ids(client: httpx.Client) -> list[str]:
    commits = client.get(f"{G}/commits").json()["commits"]
    return [each["graph_commit_id"] for each in commits]


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("unknown=1", 400),
        ("limit=1&limit=2", 400),
        ("limit=0", 400),
        ("limit=x", 400),
        ("kind=x", 400),
        ("op=x", 400),
        ("limit=8193", 413),
        ("kind=node&kind=edge&op=insert", 200),
    ],
)
def test_the_query_of_changes_is_a_closed_list(
    shared: httpx.Client, query: str, status: int
) -> None:
    newest = list_ids(shared)[0]
    for route in (f"{G}/commits/{newest}/changes", f"{G}/changes"):
        answer = shared.get(f"{route}?{query}")
        assert answer.status_code == status, answer.text
        if status == 413:
            limit = answer.json()["resource_limit"]
            assert limit["resource"] == "commit_changes_page_changes"


def test_the_first_commit_has_no_changes_to_show(shared: httpx.Client) -> None:
    refused = shared.get(f"{G}/commits/{list_ids(shared)[-1]}/changes")
    assert refused.status_code == 409
    assert refused.json()["change_diff_refusal"]["reason"] == "parentless_commit"


def test_a_type_that_was_dropped_with_its_entities_cannot_be_compared(
    client: httpx.Client,
) -> None:
    schema = client.get(f"{G}/schema").json()["schema_source"]
    fewer = schema.replace("edge Knows: Person -> Person\n", "")
    made = client.post(f"{G}/schema/apply", json={"schema_source": fewer, "allow_data_loss": True})
    assert made.json()["applied"], made.text
    refused = client.get(f"{G}/commits/{list_ids(client)[0]}/changes")
    assert refused.status_code == 409
    assert refused.json()["change_diff_refusal"]["reason"] == "schema_boundary"


def test_a_change_has_the_images_that_exist(client: httpx.Client) -> None:
    update = 'query up() { update Person set { age: 99 } where name = "bob" }'
    delete = 'query no() { delete Person where name = "dan" }'
    for text in (update, delete):
        assert client.post(f"{G}/mutate", json={"query": text}).status_code == 200
    page = client.get(f"{G}/changes?start=beginning").json()
    changes = [each for block in page["blocks"] for each in block["changes"]]
    present = {"insert": (False, True), "update": (True, True), "delete": (True, False)}
    assert {each["op"] for each in changes} == present.keys()
    for each in changes:
        assert ("before" in each, "after" in each) == present[each["op"]]


def test_an_edge_that_moves_shows_where_it_was_and_is(client: httpx.Client) -> None:
    lines = client.post(f"{G}/export", json={"type_names": ["Knows"]}).text.splitlines()
    edge = next(each for each in map(json.loads, lines) if each["from"] == "ada")
    moved = json.dumps(edge | {"to": "dan"})
    assert client.post(f"{G}/load", json={"data": moved}).status_code == 200
    page = client.get(f"{G}/commits/{list_ids(client)[0]}/changes").json()
    [change] = page["changes"]
    assert (change["kind"], change["op"], change["id"]) == ("edge", "update", edge["id"])
    assert change["before"]["endpoints"] == {"from": "ada", "to": "bob"}
    assert change["after"]["endpoints"] == {"from": "ada", "to": "dan"}


def test_a_commit_between_two_pages_is_of_the_next_poll(client: httpx.Client) -> None:
    page = client.get(f"{G}/changes?start=beginning&limit=4").json()
    client.post(f"{G}/mutate", json={"query": 'query h() { insert Person { name: "eve" } }'})
    asked = {"limit": "4", "page_token": page["next_page_token"]}
    rest = client.get(f"{G}/changes", params=asked).json()
    found = [each["id"] for block in rest["blocks"] for each in block["changes"]]
    assert (len(found), "eve" in found, rest["caught_up"]) == (3, False, True)
    newer = client.get(f"{G}/changes", params={"cursor": rest["cursor"]}).json()
    assert [each["id"] for block in newer["blocks"] for each in block["changes"]] == ["eve"]


def test_history_that_was_cleaned_up_is_gone(tmp_path: Path) -> None:
    with serve_people(tmp_path) as running, running.connect() as client:
        cursor = client.get(f"{G}/changes").json()["cursor"]
        for name in ("eve", "fay"):
            asked = {"query": f'query h() {{ insert Person {{ name: "{name}" }} }}'}
            assert client.post(f"{G}/mutate", json=asked).status_code == 200
        first = list_ids(client)[1]
        with omnigraph.open(tmp_path / "people.omni") as graph:
            graph.cleanup(keep=1, grace=0, dry_run=False)
        gone = client.get(f"{G}/changes", params={"cursor": cursor})
    assert (gone.status_code, "code" in gone.json()) == (410, False)
    assert gone.json()["change_feed_gap"]["first_unreadable_commit_id"] == first


def test_a_feed_pages_within_a_block_and_ends_with_a_cursor(client: httpx.Client) -> None:
    query = "start=beginning&limit=1"
    pages = []
    while True:
        page = client.get(f"{G}/changes?{query}").json()
        pages.append(page)
        if "next_page_token" not in page:
            break
        assert not {"cursor", "caught_up"} & page.keys()
        query = f"limit=1&page_token={page['next_page_token']}"
    found = [each for page in pages for block in page["blocks"] for each in block["changes"]]
    assert len(found) == 7
    assert pages[-1]["caught_up"] is True
    cursor = pages[-1]["cursor"]
    after = client.get(f"{G}/changes", params={"cursor": cursor}).json()
    assert (after["blocks"], after["caught_up"]) == ([], True)
    client.post(f"{G}/mutate", json={"query": 'query h() { insert Person { name: "eve" } }'})
    newer = client.get(f"{G}/changes", params={"cursor": cursor}).json()
    assert [each["id"] for each in newer["blocks"][0]["changes"]] == ["eve"]
    token = pages[0]["next_page_token"]
    refused = client.get(f"{G}/changes", params={"cursor": token})
    assert refused.status_code == 400
    assert refused.json()["error"].startswith("change cursor rejected: ")
    both = client.get(f"{G}/changes", params={"cursor": cursor, "start": "now"})
    assert both.status_code == 400


def test_a_cursor_does_not_outlive_its_branch(client: httpx.Client) -> None:
    client.post(f"{G}/branches", json={"name": "draft"})
    cursor = client.get(f"{G}/changes?branch=draft").json()["cursor"]
    client.delete(f"{G}/branches/draft")
    client.post(f"{G}/branches", json={"name": "draft"})
    refused = client.get(f"{G}/changes", params={"branch": "draft", "cursor": cursor})
    assert refused.status_code == 400
    assert refused.json()["error"].startswith("change cursor rejected: ")


def test_a_forbidden_commit_is_as_unknown_as_one_that_is_not_there(
    governed: RunningServer,
) -> None:
    with governed.connect("ada") as client:
        commit = list_ids(client)[0]
    unknown = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
    with governed.connect("dan") as client:
        answers = [client.get(f"{G}/commits/{each}/changes") for each in (commit, unknown)]
    assert [each.status_code for each in answers] == [404, 404]
    bodies = [each.text.replace(commit, "*").replace(unknown, "*") for each in answers]
    assert bodies[0] == bodies[1]


def test_a_diff_needs_the_right_to_read_both_states(governed: RunningServer) -> None:
    states = {"old": "0", "new": "main"}
    reviewed = {"old": "main", "new": "main", "review": True}
    with governed.connect("bob") as client:
        lines = client.post(f"{G}/diff", json=states).text.splitlines()
        header, *changes = map(json.loads, lines)
        counted = client.post(f"{G}/diff", json=states | {"summary": True}).text.splitlines()
        stopped = client.post(f"{G}/diff", json=states | {"timeout": 0})
        unknown = client.post(f"{G}/diff", json=states | {"old": "gone", "review": True})
    assert counted == lines[:1]
    assert sum(each["inserted"] for each in header["summary"]) == len(changes)
    assert (stopped.status_code, unknown.status_code) == (413, 404)
    for actor in ("cyd", "dan"):
        with governed.connect(actor) as client:
            assert client.post(f"{G}/diff", json=states).status_code == 403
            assert client.post(f"{G}/diff", json=reviewed).status_code == 403


def test_what_became_of_an_entity_needs_the_right_to_read_it(governed: RunningServer) -> None:
    ada = {"type": "Person", "id": "ada"}
    with governed.connect("bob") as client:
        versions = client.post(f"{G}/history", json=ada | {"limit": 1}).text.splitlines()
        blamed = client.post(f"{G}/blame", json=ada).json()["properties"]
        values = client.get(f"{G}/entity", params=ada).json()["properties"]
        for verb in ("history", "blame"):
            assert client.post(f"{G}/{verb}", json=ada | {"timeout": 0}).status_code == 413
        assert client.get(f"{G}/entity", params=ada | {"id": "zoe"}).status_code == 404
    (version,) = map(json.loads, versions)
    assert version["after"]["properties"] == values
    assert {each["graph_commit_id"] for each in blamed.values()} == {
        version["commit"]["graph_commit_id"]
    }
    for actor in ("cyd", "dan"):
        with governed.connect(actor) as client:
            answers = [client.post(f"{G}/{verb}", json=ada) for verb in ("history", "blame")]
            answers.append(client.get(f"{G}/entity", params=ada))
            assert [each.status_code for each in answers] == [403, 403, 403]


def test_the_branch_of_a_feed_is_trimmed_before_the_policy_is_asked(
    governed: RunningServer,
) -> None:
    with governed.connect("dan") as client:
        assert client.get(f"{G}/changes", params={"branch": " main "}).status_code == 403
    with governed.connect("bob") as client:
        assert client.get(f"{G}/changes", params={"branch": " main "}).status_code == 200
        assert client.get(f"{G}/changes", params={"branch": "  "}).status_code == 400
        unknown = client.get(f"{G}/changes", params={"branch": " none "})
        assert (unknown.status_code, unknown.json()["error"]) == (404, "branch 'none' not found")


def test_a_state_is_read_with_the_rights_of_its_branch(governed: RunningServer) -> None:
    read = {"query": "query q() { match { $p: Person } return { $p.name } }"}
    with governed.connect("ada") as client:
        head = list_ids(client)[0]
    with governed.connect("dan") as client:
        assert client.post(f"{G}/query", json=read | {"snapshot": head}).status_code == 403
        assert client.get(f"{G}/branches").status_code == 403
        assert client.get(f"{G}/commits").status_code == 403
        assert client.get(BLOB).status_code == 403


def test_a_load_needs_the_right_to_create_its_branch_only_if_that_is_missing(
    governed: RunningServer,
) -> None:
    line = '{"type": "Person", "data": {"name": "eve"}}'
    body = {"data": line, "branch": "forked", "from": "main"}
    lines = f"{G}/load/ndjson?from=main&branch="
    with governed.connect("ada") as client:
        assert client.post(f"{G}/branches", json={"name": "open"}).status_code == 200
    with governed.connect("dan") as client:
        refused = [
            client.post(f"{G}/load", json=body),
            client.post(f"{lines}forked", content=line, headers=LINES),
        ]
        loaded = client.post(f"{G}/load", json=body | {"branch": "open"})
        streamed = client.post(f"{lines}open", content=line, headers=LINES)
        assert client.get(f"{G}/commits", params={"branch": "open"}).status_code == 200
    assert [each.status_code for each in refused] == [403, 403]
    for each in (loaded, streamed):
        assert (each.status_code, each.json()["branch_created"]) == (200, False)
    with governed.connect("ada") as client:
        assert "forked" not in client.get(f"{G}/branches").json()["branches"]


def test_lines_that_the_policy_denies_are_not_waited_for(governed: RunningServer) -> None:
    host, port = governed.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as opened:
        head = (
            f"POST {G}/load/ndjson HTTP/1.1\r\nhost: x\r\nauthorization: Bearer bob-secret\r\n"
            "content-type: application/x-ndjson\r\ncontent-length: 30000000\r\n\r\n"
        )
        opened.sendall(head.encode())
        assert opened.recv(100).startswith(b"HTTP/1.1 403")


def test_a_merge_whose_branch_may_not_be_deleted_is_made_all_the_same(
    governed: RunningServer,
) -> None:
    with governed.connect("ada") as client:
        assert client.post(f"{G}/branches", json={"name": "kept"}).status_code == 200
        asked = {"source": "kept", "target": "main", "delete_branch": True}
        made = client.post(f"{G}/branches/merge", json=asked)
        assert made.status_code == 200
        assert made.json()["branch_deleted"] is False
        assert "branch_delete" in made.json()["branch_delete_error"]
        assert "kept" in client.get(f"{G}/branches").json()["branches"]


def test_baselines_and_exports_need_their_own_right(governed: RunningServer) -> None:
    for actor, status in (("bob", 403), ("cyd", 200)):
        with governed.connect(actor) as client:
            assert client.post(f"{G}/changes/baseline", json={}).status_code == status
            assert client.post(f"{G}/export", json={}).status_code == status


def test_a_baseline_ends_with_its_cursor(client: httpx.Client) -> None:
    answer = client.post(f"{G}/changes/baseline", json={"kind": ["node"]})
    assert answer.headers["content-type"] == "application/x-ndjson; charset=utf-8"
    *records, last = map(json.loads, answer.text.splitlines())
    assert [each["type"] for each in records] == ["Person"] * 4
    assert last["baseline"]["snapshot_commit_id"] == list_ids(client)[0]
    asked = {"cursor": last["baseline"]["resume_cursor"], "kind": "node"}
    assert client.get(f"{G}/changes", params=asked).json()["caught_up"] is True


def test_an_export_loads_back(client: httpx.Client) -> None:
    answer = client.post(f"{G}/export", json={})
    assert answer.headers["content-type"] == "application/x-ndjson"
    lines = sorted(answer.text.splitlines())
    assert len(lines) == 7
    headers = {"content-type": "application/x-ndjson"}
    loaded = client.post(f"{G}/load/ndjson?mode=overwrite", content=answer.content, headers=headers)
    assert loaded.status_code == 200, loaded.text
    assert sorted(client.post(f"{G}/export", json={}).text.splitlines()) == lines
    some = client.post(f"{G}/export", json={"type_names": ["Knows"]}).text.splitlines()
    assert [json.loads(each)["edge"] for each in some] == ["Knows"] * 3
    unknown = client.post(f"{G}/export", json={"type_names": ["Nothing"]})
    assert (unknown.status_code, unknown.json()["code"]) == (400, "bad_request")


def test_one_export_of_a_graph_runs_at_a_time(tmp_path: Path) -> None:
    with serve_people(tmp_path) as running, running.connect() as client:
        served = running.serving.state.graphs["people"]
        with served.export_slot:
            refused = client.post(f"{G}/export", json={})
            assert refused.status_code == 413
            assert refused.json()["resource_limit"]["resource"] == "stream_export_slots"
        assert client.post(f"{G}/export", json={}).status_code == 200


@pytest.mark.parametrize(
    ("wanted", "status", "content", "described"),
    [
        ("bytes=0-4", 206, b"Hello", "bytes 0-4/11"),
        ("bytes=6-", 206, b"World", "bytes 6-10/11"),
        ("bytes=-5", 206, b"World", "bytes 6-10/11"),
        ("bytes=6-999", 206, b"World", "bytes 6-10/11"),
        ("bytes=-999", 206, HELLO, "bytes 0-10/11"),
        ("bytes=0-1,3-4", 200, HELLO, None),
        ("bytes=4-1", 200, HELLO, None),
        ("items=0-1", 200, HELLO, None),
        ("bytes=x", 200, HELLO, None),
        ("bytes=11-", 416, None, "bytes */11"),
        ("bytes=-0", 416, None, "bytes */11"),
    ],
)
def test_a_range_of_a_blob(
    shared: httpx.Client, wanted: str, status: int, content: bytes | None, described: str | None
) -> None:
    answer = shared.get(BLOB, headers={"range": wanted})
    assert answer.status_code == status
    assert answer.headers.get("content-range") == described
    if content is not None:
        assert answer.content == content
        assert answer.headers["content-length"] == str(len(content))
    else:
        assert answer.json()["code"] == "bad_request"
        assert answer.json()["blob_range"]["length"] == 11


def test_a_blob_has_a_strong_tag_that_conditions_compare(shared: httpx.Client) -> None:
    whole = shared.get(BLOB)
    tag = whole.headers["etag"]
    assert whole.headers["content-type"] == "application/octet-stream"
    assert whole.headers["accept-ranges"] == "bytes"
    assert whole.headers["omnigraph-snapshot-id"].startswith("manifest:main:")
    assert len(tag) == 34
    for condition, status in (
        ({"if-match": tag}, 200),
        ({"if-match": f'"x", {tag}'}, 200),
        ({"if-match": "*"}, 200),
        ({"if-match": f"W/{tag}"}, 412),
        ({"if-match": '"x"'}, 412),
        ({"if-match": "malformed"}, 412),
        ({"if-none-match": f"W/{tag}"}, 304),
        ({"if-none-match": "*"}, 304),
        ({"if-none-match": '"x"'}, 200),
        ({"if-range": tag, "range": "bytes=0-0"}, 206),
        ({"if-range": f"W/{tag}", "range": "bytes=0-0"}, 200),
        ({"if-range": '"x"', "range": "bytes=0-0"}, 200),
    ):
        for method in ("GET", "HEAD"):
            answer = shared.request(method, BLOB, headers=condition)
            expected = 200 if (method, status) == ("HEAD", 206) else status
            assert answer.status_code == expected, condition
            assert answer.headers["etag"] == tag
            if status == 304 or method == "HEAD":
                assert answer.content == b""
            if (method, status) == ("GET", 412):
                assert answer.json()["code"] == "conflict"


def test_the_head_of_a_blob_says_its_length(shared: httpx.Client) -> None:
    answer = shared.head(BLOB, headers={"range": "bytes=0-1"})
    assert (answer.status_code, answer.headers["content-length"]) == (200, "11")
    missing = shared.head(BLOB.replace("ada", "none"))
    assert (missing.status_code, missing.content) == (404, b"")


@pytest.mark.parametrize(
    ("old", "new", "status"),
    [
        ("entity=node&", "", 400),
        ("entity=node", "entity=thing", 400),
        ("type=Person", "type=Nothing", 400),
        ("property=avatar", "property=age", 400),
        ("id=ada", "id=none", 404),
        ("id=ada", "id=bob", 404),
        ("id=ada", "id=ada&branch=main&snapshot=x", 400),
    ],
)
def test_a_blob_that_is_not_there(shared: httpx.Client, old: str, new: str, status: int) -> None:
    assert shared.get(BLOB.replace(old, new)).status_code == status


def test_a_type_of_the_other_kind_is_no_suggestion(shared: httpx.Client) -> None:
    refused = shared.get(BLOB.replace("entity=node", "entity=edge")).json()
    assert refused["error"] == "unknown type 'Person'"
    assert "Person" not in refused.get("hint", "")


def test_answers_about_changes_show_no_storage(shared: httpx.Client) -> None:
    texts = [
        shared.get(f"{G}/changes?start=beginning").text,
        shared.get(f"{G}/commits/{list_ids(shared)[0]}/changes").text,
        shared.post(f"{G}/changes/baseline", json={}).text,
    ]
    for text in texts:
        for word in (".lance", "__manifest", "node:Person", "people.omni", "_rowid"):
            assert word not in text
