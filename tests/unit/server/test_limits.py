"""What one actor, one request and one connection may use; and what is counted of it."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, Tracer

from omnigraph.errors import QueryTimeoutError
from omnigraph.server.admission_control import AdmissionControl
from omnigraph.server.exchange import Call, RequestRefusedError
from omnigraph.server.lanes import LOOP_S_MAX, QUICK_S, Lanes
from omnigraph.server.request_tracing import find_tracer, record_span
from omnigraph.server.server_log import JsonFormatter
from omnigraph.server.server_settings import build_settings
from omnigraph.server.server_workers import RESTARTS_MAX, RESTARTS_WINDOW_S, RestartLimit
from served import serve_people

G = "/graphs/people"
POLICY = """\
version: 1
groups: {all: [ada, bob]}
rules:
  - id: all
    allow: {actors: {group: all}, actions: [read, change]}
"""
READ = {"query": "query q() { match { $p: Person } return { $p.name } }"}


@pytest.fixture
def fast_switches() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_an_actor_has_so_many_writes_under_way_and_others_go_on() -> None:
    control = AdmissionControl(writes_max=2, bytes_max=100)
    with ExitStack() as under_way:
        for _ in range(2):
            under_way.enter_context(control.admit("ada", 10))
        with pytest.raises(RequestRefusedError) as refused, control.admit("ada", 10):
            pass
        assert refused.value.status == 429
        assert (b"retry-after", b"60") in refused.value.headers
        with control.admit("bob", 10):
            assert control.writes == 3
    assert control.writes == 0
    with control.admit("ada", 10):
        assert control.writes == 1


def test_an_actor_has_so_many_bytes_under_way() -> None:
    control = AdmissionControl(writes_max=9, bytes_max=100)
    with control.admit(None, 60):
        with pytest.raises(RequestRefusedError), control.admit(None, 60):
            pass
        with control.admit(None, 40):
            pass
    with control.admit(None, 100):
        pass


@pytest.mark.usefixtures("fast_switches")
def test_writes_are_counted_while_others_begin_and_end() -> None:
    control = AdmissionControl(writes_max=2, bytes_max=100)
    is_over = threading.Event()

    def write(actor: int) -> None:
        while not is_over.is_set():
            for number in range(100):
                with control.admit(f"{actor}-{number}", 1):
                    pass

    with ThreadPoolExecutor(3) as pool:
        for actor in range(3):
            pool.submit(write, actor)
        try:
            assert all(0 <= control.writes <= 3 for _ in range(50_000))
        finally:
            is_over.set()


def test_a_read_that_waits_is_not_quick() -> None:
    async def measure() -> tuple[bool, bool]:
        lanes = Lanes()
        await lanes.run_measured("waits", lambda: time.sleep(0.1))
        await lanes.run_measured("works", lambda: None)
        lanes.shutdown()
        return lanes.is_quick("waits"), lanes.is_quick("works")

    assert asyncio.run(measure()) == (False, True)


def test_other_parameters_of_a_quick_text_do_not_stop_the_server(tmp_path: Path) -> None:
    text = """query triples($age: I64) {
      match { $a: Person { age: $age } $b: Person { age: $age } $c: Person { age: $age }
              $a.name < $b.name $b.name < $c.name }
      return { count($a) as n } }"""
    many = "\n".join(
        json.dumps({"type": "Person", "data": {"name": f"p{number}", "age": 77}})
        for number in range(700)
    )
    with (
        serve_people(tmp_path, read_s_max=1.5) as running,
        running.connect() as client,
        running.connect() as other,
        ThreadPoolExecutor(1) as pool,
    ):

        def ask(age: int) -> int:
            asked = {"query": text, "params": {"age": age}}
            return client.post(f"{G}/query", json=asked).status_code

        assert client.post(f"{G}/load", json={"data": many}).status_code == 200
        assert [ask(-1) for _ in range(5)] == [200] * 5
        slow = pool.submit(ask, 77)
        time.sleep(0.2)
        assert other.get("/healthz").status_code == 200
        assert not slow.done()
        assert slow.result() in {200, 413}
        assert ask(-1) == 200


@pytest.mark.parametrize(
    ("worked_s", "is_quick"), [(2 * QUICK_S, False), (0, True)], ids=["slow", "kept waiting"]
)
def test_a_text_that_was_slow_once_stays_in_threads(worked_s: float, is_quick: bool) -> None:
    """One that the machine kept waiting is measured again."""

    def work() -> None:
        until = time.thread_time() + worked_s
        while time.thread_time() < until:
            pass
        raise QueryTimeoutError(LOOP_S_MAX)

    async def measure() -> bool:
        lanes = Lanes()
        await lanes.run_measured("text", lambda: None)
        assert lanes.is_quick("text")
        with pytest.raises(QueryTimeoutError):
            lanes.run_quick("text", work)
        assert not lanes.is_quick("text")
        await lanes.run_measured("text", lambda: None)
        lanes.shutdown()
        return lanes.is_quick("text")

    assert asyncio.run(measure()) == is_quick


def test_parallel_loads_beyond_the_limit_are_refused(tmp_path: Path) -> None:
    lines = "\n".join(
        json.dumps({"type": "Person", "data": {"name": f"p{number}"}}) for number in range(2_000)
    )
    with (
        serve_people(tmp_path, actors=("ada", "bob"), policy=POLICY, actor_writes_max=2) as running,
        running.connect("ada") as client,
        running.connect("bob") as other,
        ThreadPoolExecutor(8) as pool,
    ):

        def load(_: int) -> tuple[int, str | None]:
            headers = {"content-type": "application/x-ndjson"}
            answer = client.post(f"{G}/load/ndjson", content=lines, headers=headers)
            return answer.status_code, answer.headers.get("retry-after")

        loads = [pool.submit(load, number) for number in range(12)]
        hire = {"query": 'query hire() { insert Person { name: "eve" } }'}
        assert other.post(f"{G}/mutate", json=hire).status_code == 200
        found = {each.result() for each in loads}
        assert found == {(200, None), (429, "60")}
        assert client.post(f"{G}/query", json=READ).json()["row_count"] == 2_005


def test_a_load_counts_from_the_first_byte_of_its_body(tmp_path: Path) -> None:
    lines = '{"type": "Person", "data": {"name": "eve"}}'
    headers = {"content-type": "application/x-ndjson"}
    with (
        serve_people(
            tmp_path,
            actors=("ada", "bob"),
            policy=POLICY,
            actor_writes_max=1,
            actor_bytes_max=10_000,
        ) as running,
        running.connect("ada") as client,
        running.connect("bob") as other,
    ):

        def load(by: httpx.Client, data: str = lines) -> httpx.Response:
            return by.post(f"{G}/load/ndjson", content=data, headers=headers)

        host, port = running.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=5) as opened:
            asked = (
                f"POST {G}/load HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ada-secret\r\n"
                "content-type: application/json\r\ncontent-length: 5000\r\n\r\n{"
            )
            opened.sendall(asked.encode())
            refused = wait_for(lambda: load(client, ""), 429)
            assert refused.headers["retry-after"] == "60"
            assert load(other).status_code == 200
        wait_for(lambda: load(client), 200)
        too_large = load(client, lines + " " * 10_000)
        assert (too_large.status_code, too_large.json()["code"]) == (429, "too_many_requests")
        assert load(client).status_code == 200


def wait_for(ask: Callable[[], httpx.Response], status: int) -> httpx.Response:
    """The first answer with a status."""
    answers: list[httpx.Response] = []

    def is_answered() -> bool:
        answers.append(ask())
        return answers[-1].status_code == status

    wait_until(is_answered)
    return answers[-1]


def wait_until(check: Callable[[], bool]) -> None:
    """Wait for something that the server does by itself."""
    for _ in range(500):
        if check():
            return
        time.sleep(0.02)
    raise AssertionError("it did not happen")


@dataclass(frozen=True)
class SlowGate:
    """Allows everything, after a while."""

    limits_types = False

    def has_query_limits(self, actor: str | None) -> bool:
        return actor is None

    def find_row_limits(self, *_: object) -> None:
        return None

    def list_requirements(self, _target: str) -> tuple[()]:
        return ()

    def check(self, *_: object) -> None:
        time.sleep(0.6)

    check_some = check


def test_a_request_is_answered_before_slow_headers_behind_it_end_the_connection(
    tmp_path: Path,
) -> None:
    with serve_people(tmp_path, header_s_max=0.2) as running:
        state = running.serving.state
        served = replace(state.graphs["people"], gate=SlowGate())
        running.serving.state = replace(state, graphs={"people": served})
        host, port = running.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=5) as opened:
            whole = f"GET {G}/branches HTTP/1.1\r\nhost: x\r\n\r\n"
            opened.sendall(whole.encode() + b"GET /healthz HTTP/1.1\r\nhost")
            answer = b"".join(iter(lambda: opened.recv(4096), b""))
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.endswith(b'{"branches":["main"]}')


@contextmanager
def ask_and_read_nothing(url: str, route: str, body: bytes) -> Iterator[socket.socket]:
    """A connection whose client sent a request, and takes next to nothing of the answer."""
    host, port = url.removeprefix("http://").split(":")
    with socket.socket() as opened:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        opened.settimeout(20)
        opened.connect((host, int(port)))
        head = f"POST {G}{route} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        opened.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        yield opened


def load_a_long_text(client: httpx.Client) -> None:
    """More than what the buffers of a connection take."""
    line = json.dumps({"type": "Company", "data": {"name": "n" * 6_000_000}})
    headers = {"content-type": "application/x-ndjson"}
    answer = client.post(f"{G}/load/ndjson?mode=merge", content=line, headers=headers)
    assert answer.status_code == 200


LONG = b'{"query": "query q() { match { $c: Company } return { $c.name, $c.name as b } }"}'


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("/query", LONG),
        pytest.param("/changes/baseline", b"{}", marks=pytest.mark.slow),
    ],
)
def test_the_connection_of_a_client_that_takes_nothing_ends(
    tmp_path: Path, route: str, body: bytes
) -> None:
    with serve_people(tmp_path, stall_s_max=0.3) as running, running.connect() as client:
        load_a_long_text(client)
        connections = running.server.server_state.connections
        before = len(connections)
        with ask_and_read_nothing(running.url, route, body) as opened:
            assert opened.recv(100).startswith(b"HTTP/1.1 200")
            wait_until(lambda: len(connections) == before)
            found = b"".join(iter(lambda: opened.recv(65_536), b""))
        # Neither the end of the rows, nor the line or the chunk at the end of a stream.
        assert not found.endswith((b"]}", b"0\r\n\r\n"))
        assert b'{"baseline"' not in found


@pytest.mark.slow
def test_an_export_ends_with_its_client_and_the_next_one_begins(tmp_path: Path) -> None:
    with serve_people(tmp_path) as running, running.connect() as client:
        load_a_long_text(client)
        with ask_and_read_nothing(running.url, "/export", b"{}") as opened:
            assert opened.recv(100).startswith(b"HTTP/1.1 200")
            refused = client.post(f"{G}/export", json={})
            assert refused.status_code == 413
            assert refused.json()["resource_limit"]["resource"] == "stream_export_slots"
        wait_for(lambda: client.post(f"{G}/export", json={"type_names": ["Knows"]}), 200)


def test_workers_are_started_again_so_often_within_a_minute() -> None:
    limit = RestartLimit()
    assert all(limit.may_restart(float(second)) for second in range(RESTARTS_MAX))
    assert not limit.may_restart(RESTARTS_WINDOW_S - 1)
    assert limit.may_restart(RESTARTS_WINDOW_S + 1)
    hourly = RestartLimit()
    assert all(hourly.may_restart(3_600.0 * hour) for hour in range(1_000))


def test_metrics_count_by_route_and_status_and_need_a_token(tmp_path: Path) -> None:
    with (
        serve_people(tmp_path, actors=("ada",)) as running,
        running.connect("ada") as client,
        running.connect() as unknown,
    ):
        for _ in range(3):
            client.post(f"{G}/query", json=READ)
        client.get("/graphs/secret-name/snapshot")
        client.get("/some/path/of/a/client")
        text = client.get("/metrics").text
        assert unknown.get("/metrics").status_code == 401
    assert 'omnigraph_requests_total{operation="cluster_query",status="200"} 3.0' in text
    assert 'omnigraph_requests_total{operation="unmatched",status="404"} 1.0' in text
    assert "omnigraph_graphs_served 1.0" in text
    assert "secret-name" not in text


def test_the_log_has_no_token_query_or_body(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.INFO, logger="omnigraph"),
        serve_people(tmp_path, actors=("ada",)) as running,
        running.connect("ada") as client,
    ):
        client.post(f"{G}/query", json=READ | {"params": {"secret": "hidden"}})
        client.get(f"{G}/blob?entity=node&type=Person&id=hidden&property=avatar")
    lines = [JsonFormatter().format(each) for each in caplog.records]
    found = [json.loads(line) for line in lines]
    assert {each["operation"] for each in found if each["event"] == "request"} == {
        "cluster_query",
        "cluster_getBlob",
    }
    assert "ada-secret" not in "".join(lines)
    assert "hidden" not in "".join(lines)


def test_bounds_come_from_the_environment_or_stay() -> None:
    given = {"OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX": "3", "OMNIGRAPH_PER_ACTOR_BYTES_MAX": "many"}
    settings = build_settings("[::1]:0", given)
    assert (settings.host, settings.port) == ("::1", 0)
    assert (settings.actor_writes_max, settings.actor_bytes_max) == (3, 4 * 1024**3)
    assert build_settings("x:0", {}).actor_writes_max == 16
    assert settings.is_loopback


class RecordingTracer(Tracer):
    """Remembers the spans that it starts."""

    def __init__(self) -> None:
        self.started: list[tuple[str, object]] = []

    def start_span(self, name: str, *_: object, **options: object) -> Span:
        self.started.append((name, options["attributes"]))
        return NonRecordingSpan(SpanContext(1, 1, is_remote=False))

    def start_as_current_span(self, *_: object, **__: object) -> Iterator[Span]:  # type: ignore[override]
        raise AssertionError("spans are recorded at their end")


def test_a_span_is_recorded_where_the_environment_asks_for_it(tmp_path: Path) -> None:
    assert find_tracer({"PATH": "x"}) is None
    assert find_tracer({"OTEL_TRACES_EXPORTER": "otlp"}) is not None
    with serve_people(tmp_path) as running:
        call = Call("GET", b"/", b"", [(b"traceparent", b"x")], "id", running.serving.state)
    tracer = RecordingTracer()
    record_span(tracer, call, "/healthz", 503, 0.1)
    assert tracer.started == [
        (
            "GET /healthz",
            {
                "http.request.method": "GET",
                "http.route": "/healthz",
                "http.response.status_code": 503,
                "omnigraph.request_id": "id",
            },
        )
    ]
