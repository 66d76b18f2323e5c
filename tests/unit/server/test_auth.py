from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import omnigraph
from omnigraph.errors import CredentialsError
from omnigraph.operations.service_health import describe_health
from omnigraph.server import service_routes
from omnigraph.server.bearer_tokens import BearerTokens, parse_header, read_tokens
from omnigraph.server.exchange import Call
from omnigraph.server.server_boot import classify_auth, derive_graph_id
from omnigraph.server.server_state import AuthMode
from served import RunningServer, make_tokens, serve_people

G = "/graphs/people"
CONTRACT = Path(__file__).parents[3] / "docs/reference/openapi.json"
READ = {"query": "query q() { match { $p: Person } return { $p.name } order { $p.name } }"}
HIRE = {"query": 'query hire() { insert Person { name: "eve" } }'}
POLICY = """\
version: 1
groups: {writers: [ada], readers: [bob]}
rules:
  - id: write
    allow: {actors: {group: writers}, actions: [read, change, export, branch_create, branch_merge]}
  - id: read
    allow: {actors: {group: readers}, actions: [read]}
"""


@pytest.fixture(scope="module")
def denying(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server with tokens and without a policy."""
    with serve_people(tmp_path_factory.mktemp("served"), actors=("ada", "bob")) as running:
        yield running


@pytest.fixture(scope="module")
def governed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server with tokens and a policy."""
    folder = tmp_path_factory.mktemp("served")
    with serve_people(folder, actors=("ada", "bob", "cyd"), policy=POLICY) as running:
        yield running


def test_health_needs_no_token(denying: RunningServer) -> None:
    with denying.connect() as client:
        found = client.get("/healthz").json()
        assert client.get("/openapi.json").json() == json.loads(CONTRACT.read_text())
        assert client.get("/readyz").json()["auth_mode"] == "default_deny"
    assert found == describe_health()
    assert found["status"] == "ok"
    assert found["version"].startswith("0.10.")
    assert found["source_version"] == omnigraph.__version__
    assert found["internal_schema_version"] > 0


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (None, "missing bearer token"),
        ("bearer ada-secret", "missing bearer token"),
        ("Basic ada-secret", "missing bearer token"),
        ("Bearer wrong", "invalid bearer token"),
        ("Bearer ada-secret", None),
    ],
)
def test_a_token_is_needed_in_the_exact_scheme(
    denying: RunningServer, header: str | None, message: str | None
) -> None:
    headers = {} if header is None else {"authorization": header}
    with denying.connect() as client:
        answer = client.post(f"{G}/query", json=READ, headers=headers)
        unknown = client.get("/graphs/unknown/snapshot", headers=headers)
    if message is None:
        assert (answer.status_code, unknown.status_code) == (200, 404)
        return
    assert answer.status_code == unknown.status_code == 401
    assert answer.json() == {"error": message, "code": "unauthorized"}
    assert "www-authenticate" not in answer.headers


def test_an_unknown_graph_is_not_found_and_a_wrong_id_is_refused(denying: RunningServer) -> None:
    with denying.connect("ada") as client:
        missing = client.get("/graphs/x/snapshot")
        assert missing.status_code == 404
        assert missing.json()["error"] == "graph 'x' not found"
        for wrong in ("bad_id", "policies", "a" * 65, "%C3%A4"):
            assert client.get(f"/graphs/{wrong}/snapshot").status_code == 400
        for flat in ("/snapshot", "/query", "/branches"):
            assert client.get(flat).status_code == 404


def test_without_a_policy_tokens_allow_only_to_read(denying: RunningServer) -> None:
    with denying.connect("ada") as client:
        assert client.post(f"{G}/query", json=READ).json()["row_count"] == 4
        denied = [
            client.post(f"{G}/mutate", json=HIRE),
            client.post(f"{G}/export", json={}),
            client.post(f"{G}/schema/apply", json={"schema_source": "node A { a: String }"}),
            client.get("/graphs"),
        ]
        assert [each.status_code for each in denied] == [403] * 4
        assert denied[0].json()["code"] == "forbidden"
        assert "no policy is applied" in denied[0].json()["error"]
        assert client.post(f"{G}/queries/any").status_code == 404
        assert client.get(f"{G}/queries").json() == {"queries": []}


def test_the_actor_is_that_of_the_token_whatever_else_is_sent(governed: RunningServer) -> None:
    with governed.connect("ada", params={"actor": "bob"}) as client:
        made = client.post(
            f"{G}/mutate", json=HIRE | {"actor_id": "bob"}, headers={"X-Actor-Id": "bob"}
        ).json()
    assert made["actor_id"] == made["commit"]["actor_id"] == "ada"


def test_decisions_follow_the_token(governed: RunningServer) -> None:
    with governed.connect("bob") as client:
        denied = client.post(f"{G}/mutate", json=HIRE)
        assert denied.status_code == 403
        assert "'bob'" in denied.json()["error"]
        assert "write" not in denied.text, "no rule is named"
        assert client.post(f"{G}/query", json=READ).status_code == 200
        assert client.get("/graphs").status_code == 403, "no policy is applied to the server"


def test_tags_and_reverts_need_the_rights_of_what_they_do(governed: RunningServer) -> None:
    with governed.connect("ada") as client:
        made = client.post(f"{G}/tags", json={"name": "v1"})
        assert (made.status_code, made.json()["actor_id"]) == (200, "ada")
        assert client.delete(f"{G}/tags/v1").status_code == 403
        commit = made.json()["graph_commit_id"]
        undone = client.post(f"{G}/revert", json={"commit": "gone"})
        closed = client.post(f"{G}/revert/plan", json={"commit": commit, "message": "m"})
        assert closed.status_code == 400, "a plan makes no commit that could have a message"
        assert undone.status_code == 404
    with governed.connect("bob") as client:
        assert [each["name"] for each in client.get(f"{G}/tags").json()["tags"]] == ["v1"]
        refused = [
            client.post(f"{G}/tags", json={"name": "v2"}),
            client.post(f"{G}/revert", json={"commit": commit}),
            client.post(f"{G}/cherry-pick", json={"commit": commit}),
            client.post(f"{G}/revert/plan", json={"commit": commit}),
            client.post(f"{G}/cherry-pick/plan", json={"commit": commit}),
            client.post(f"{G}/branches/merge/plan", json={"source": "gone"}),
        ]
    assert {(each.status_code, each.json()["code"]) for each in refused} == {(403, "forbidden")}


def test_a_plan_needs_the_rights_of_its_read(governed: RunningServer) -> None:
    with governed.connect("bob") as client:
        plan = client.post(f"{G}/explain", json=READ | {"analyze": False}).json()
        run = client.post(f"{G}/explain", json=READ | {"timeout": 0})
        mutation = client.post(f"{G}/explain", json=HIRE)
    with governed.connect("cyd") as client:
        denied = client.post(f"{G}/explain", json=READ)
    assert [each["actual_rows"] for each in plan["operators"]] == [None] * 3
    assert (run.status_code, mutation.status_code, denied.status_code) == (413, 400, 403)


def test_an_open_server_has_no_actor_and_no_security_in_its_contract(tmp_path: Path) -> None:
    with serve_people(tmp_path) as running, running.connect() as client:
        made = client.post(f"{G}/mutate", json=HIRE).json()
        assert made["actor_id"] is None
        assert client.get("/graphs").status_code == 403
        contract = client.get("/openapi.json").text
    assert "securitySchemes" not in contract
    assert '"security"' not in contract


def test_requests_of_other_origins_are_refused(denying: RunningServer) -> None:
    with denying.connect("ada") as client:
        own = client.get(f"{G}/branches", headers={"origin": denying.url})
        other = client.get(f"{G}/branches", headers={"origin": "https://evil.example"})
    assert (own.status_code, other.status_code) == (200, 403)
    assert "access-control-allow-origin" not in own.headers


def test_a_private_server_answers_only_to_names_of_this_machine(tmp_path: Path) -> None:
    with serve_people(tmp_path, is_private=True) as running, running.connect() as client:
        # A site whose name leads to this machine is of one origin with it.
        site = {"host": "site.example:80", "origin": "http://site.example:80"}
        refused = client.get(f"{G}/branches", headers=site)
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
        for host in ("localhost", "localhost:80", "127.0.0.1", "[::1]:80"):
            assert client.get(f"{G}/branches", headers={"host": host}).status_code == 200
        for host in ("127.site.example", "localhost.site.example:80", ""):
            assert client.get(f"{G}/branches", headers={"host": host}).status_code == 403


def test_the_contract_is_made_once(denying: RunningServer) -> None:
    call = Call("GET", b"/openapi.json", b"", [], "id", denying.serving.state)
    assert service_routes.get_openapi(call).body is service_routes.get_openapi(call).body


def test_tokens_come_from_a_variable_a_file_or_a_text(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    file.write_text('{"ada": " a ", "bob": "b"}')
    both = read_tokens(
        {"OMNIGRAPH_SERVER_BEARER_TOKEN": "d", "OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": str(file)}
    )
    assert [both.find_actor(each) for each in (b"a", b"b", b"d", b"x")] == [
        *("ada", "bob", "default"),
        None,
    ]
    inline = read_tokens({"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"cyd": "c"}'})
    assert inline.find_actor(b"c") == "cyd"
    assert "c" not in repr(inline).replace("BearerTokens", "")
    assert not read_tokens({})


@pytest.mark.parametrize(
    "environment",
    [
        {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"a": "same", "b": "same"}'},
        {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{" ": "secret"}'},
        {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"a": " "}'},
        {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"a": "x1secret", "a": "y"}'},
        {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": "[]x"},
        {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '["a"]'},
        {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"a": 1}'},
        {"OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": "/there/is/no/file"},
        {"OMNIGRAPH_SERVER_BEARER_TOKENS_AWS_SECRET": "arn:hidden"},
        {
            "OMNIGRAPH_SERVER_BEARER_TOKEN": "x",
            "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"default": "secret"}',
        },
    ],
)
def test_wrong_tokens_are_an_error_that_shows_none(environment: dict[str, str]) -> None:
    with pytest.raises(CredentialsError) as caught:
        read_tokens(environment)
    for token in ("x1secret", "'same'", "arn:hidden", '"secret"'):
        assert token not in caught.value.message


def test_an_object_in_a_token_file_is_refused() -> None:
    nested = {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"a": {"b": "c"}}'}
    with pytest.raises(CredentialsError):
        read_tokens(nested)


def test_a_start_is_classified_by_tokens_policies_and_the_flag() -> None:
    some, none = make_tokens("ada"), BearerTokens()
    assert classify_auth(none, has_policy=False, is_open=True) is AuthMode.OPEN
    for is_open in (False, True):
        denied = classify_auth(some, has_policy=False, is_open=is_open)
        enabled = classify_auth(some, has_policy=True, is_open=is_open)
        assert (denied, enabled) == (AuthMode.DEFAULT_DENY, AuthMode.POLICY_ENABLED)
        with pytest.raises(CredentialsError):
            classify_auth(none, has_policy=True, is_open=is_open)
    with pytest.raises(CredentialsError):
        classify_auth(none, has_policy=False, is_open=False)


def test_a_header_without_a_token_has_none() -> None:
    assert parse_header(b"Bearer x") == b"x"
    assert parse_header(b"Bearer ") is None
    assert parse_header(b"BEARER x") is None


def test_the_id_of_a_graph_comes_from_its_address() -> None:
    assert derive_graph_id("/data/org.omni") == "org"
    assert derive_graph_id("s3://bucket/a b/my_graph.omni/") == "my-graph"
    assert derive_graph_id("s3://bucket/_/") == "graph"


def test_a_slow_client_is_cut_off(tmp_path: Path) -> None:
    with serve_people(tmp_path, header_s_max=0.3, body_s_max=0.3) as running:
        with httpx.Client(base_url=running.url) as client:

            def drip() -> Iterator[bytes]:
                yield b'{"query": "'
                time.sleep(1)
                yield b'"}'

            headers = {"content-type": "application/json"}
            slow = client.post(f"{G}/query", content=drip(), headers=headers)
        assert slow.status_code == 400
        host, port = running.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=5) as opened:
            opened.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n")
            assert opened.recv(100) == b""
        with socket.create_connection((host, int(port)), timeout=5) as opened:
            opened.sendall(b"GET /healthz HTTP/1.1\r\n" + b"x: " + b"y" * 70_000 + b"\r\n\r\n")
            assert opened.recv(100).startswith(b"HTTP/1.1 431")
