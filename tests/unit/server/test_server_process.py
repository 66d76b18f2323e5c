"""The server as a process of its own: how it starts, and how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

import omnigraph
from omnigraph.server import server_command
from omnigraph.server.http_process import EXIT_CUT_OFF
from served import SCHEMA, apply_cluster, create_people

SERVE = (sys.executable, "-c", "from omnigraph.cli import main; main()", "serve")
CLUSTER = (sys.executable, "-m", "omnigraph.server.server_command")
G = "/graphs/people"
READ = {"query": "query q() { match { $p: Person } return { $p.name } }"}


@contextmanager
def start(*arguments: str, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server process, and its address."""
    kept = {name: value for name, value in os.environ.items() if "OMNIGRAPH" not in name}
    process = subprocess.Popen(
        arguments,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=kept | environment,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            process.wait(30)
        yield process, line.strip().replace("OMNIGRAPH_LISTEN_ADDR=", "http://")
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def graph(tmp_path: Path) -> str:
    return create_people(tmp_path / "people.omni")


def test_the_command_describes_its_flags(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        server_command.main(["--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    for flag in ("--cluster", "--bind", "--unauthenticated", "--require-all-graphs"):
        assert flag in shown


@pytest.mark.parametrize(
    ("flag", "value"),
    [("--reload-interval", "-1"), ("--reload-interval", "nan"), ("--workers", "0")],
)
def test_a_number_that_makes_no_sense_is_refused(
    capsys: pytest.CaptureFixture[str], flag: str, value: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        server_command.build_parser().parse_args(["--cluster", "x", f"{flag}={value}"])
    assert ended.value.code == 2
    assert f"'{value}' is not a number" in capsys.readouterr().err


def test_a_server_says_where_it_listens_and_ends_with_0(graph: str) -> None:
    with start(*SERVE, graph, "--bind", "127.0.0.1:0") as (process, url):
        assert httpx.get(f"{url}/healthz").json()["status"] == "ok"
        assert httpx.post(f"{url}{G}/query", json=READ).json()["row_count"] == 4
        site = httpx.get(f"{url}{G}/branches", headers={"host": "site.example"})
        assert site.status_code == 403
        process.send_signal(signal.SIGTERM)
        out, log = process.communicate(timeout=20)
    assert (process.returncode, out) == (0, "")
    assert "Traceback" not in log
    assert all(line.startswith("{") for line in log.splitlines())


@pytest.mark.slow
def test_what_is_under_way_is_finished_after_a_signal(graph: str) -> None:
    person = '{"type":"Person","data":{"name":"p%d"}}'
    lines = "\n".join(person % number for number in range(600_000))
    headers = {"content-type": "application/x-ndjson"}
    with start(*SERVE, graph, "--bind", "127.0.0.1:0") as (process, url):
        found: list[httpx.Response] = []

        def load() -> None:
            route = f"{url}{G}/load/ndjson?mode=append"
            found.append(httpx.post(route, content=lines, headers=headers, timeout=60))

        thread = threading.Thread(target=load)
        thread.start()
        # Long enough for the bytes to arrive, and not for 600,000 rows to be written.
        thread.join(0.3)
        assert thread.is_alive()
        process.send_signal(signal.SIGTERM)
        thread.join(60)
        process.communicate(timeout=30)
    assert process.returncode == 0
    assert found[0].status_code == 200
    assert found[0].json()["total_entities"] == 600_000


@pytest.mark.slow
def test_what_is_not_finished_at_the_deadline_is_not_acknowledged(graph: str) -> None:
    # More than two cores load in the half second before the signal and the time after it.
    person = '{"type":"Person","data":{"name":"p%d-%d"}}'
    bodies = ["\n".join(person % (load, number) for number in range(600_000)) for load in range(8)]
    headers = {"content-type": "application/x-ndjson"}
    environment = {"OMNIGRAPH_DRAIN_SECONDS": "1"}
    with start(*SERVE, graph, "--bind", "127.0.0.1:0", **environment) as (process, url):
        found: list[httpx.Response | httpx.TransportError] = []

        def load(lines: str) -> None:
            route = f"{url}{G}/load/ndjson?mode=append"
            try:
                found.append(httpx.post(route, content=lines, headers=headers, timeout=60))
            except httpx.TransportError as failure:
                found.append(failure)

        threads = [threading.Thread(target=load, args=(lines,)) for lines in bodies]
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        process.wait(30)
        ended_s = time.monotonic() - began
        for thread in threads:
            thread.join(60)
    assert process.returncode == EXIT_CUT_OFF
    assert ended_s < 10
    answered = [each.status_code for each in found if isinstance(each, httpx.Response)]
    assert set(answered) <= {200, 500}
    assert answered.count(200) < len(bodies)
    with omnigraph.open(graph) as opened:
        assert opened.check().is_healthy
        # Four people were there before.
        assert opened.branch().count("Person") >= 4 + 600_000 * answered.count(200)


@pytest.mark.slow
def test_two_processes_share_an_address_and_read_each_others_writes(graph: str) -> None:
    with start(*SERVE, graph, "--bind", "127.0.0.1:0", "--workers", "2") as (process, url):
        for number in range(20):
            # A connection of its own each time, so that either process may answer.
            hire = {"query": f'query hire() {{ insert Person {{ name: "p{number}" }} }}'}
            assert httpx.post(f"{url}{G}/mutate", json=hire, timeout=60).status_code == 200
            found = httpx.post(f"{url}{G}/query", json=READ, timeout=60).json()
            assert found["row_count"] == 5 + number
        process.send_signal(signal.SIGTERM)
        log = process.communicate(timeout=60)[1]
    assert process.returncode == 0
    assert "Traceback" not in log


@pytest.mark.slow
def test_processes_end_with_the_one_that_started_them(graph: str) -> None:
    with start(*SERVE, graph, "--bind", "127.0.0.1:0", "--workers", "2") as (process, url):
        assert httpx.post(f"{url}{G}/query", json=READ, timeout=60).status_code == 200
        process.kill()
        process.wait(30)
        until = time.monotonic() + 60
        while is_alive(url):
            assert time.monotonic() < until, "the workers go on"
            time.sleep(0.1)


def is_alive(url: str) -> bool:
    """Whether a server answers."""
    try:
        return httpx.get(f"{url}/healthz", timeout=60).status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.slow
def test_a_write_goes_on_when_its_client_goes_away(graph: str) -> None:
    person = '{"type":"Person","data":{"name":"p%d"}}'
    lines = "\n".join(person % number for number in range(50_000))
    headers = {"content-type": "application/x-ndjson"}
    with start(*SERVE, graph, "--bind", "127.0.0.1:0") as (process, url):
        route = f"{url}{G}/load/ndjson?mode=append"
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(route, content=lines, headers=headers, timeout=httpx.Timeout(30, read=0.05))
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == 0
    with omnigraph.open(graph) as opened:
        assert opened.branch().count("Person") == 50_004


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "environment", "message"),
    [
        ((), {}, "neither tokens nor a policy"),
        ((), {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"a": "x", "b": "x"}'}, "the same token"),
        (("--bind", "nowhere"), {"OMNIGRAPH_UNAUTHENTICATED": "1"}, "HOST:PORT"),
    ],
)
def test_a_start_that_cannot_be_meant_is_refused(
    tmp_path: Path, arguments: tuple[str, ...], environment: dict[str, str], message: str
) -> None:
    folder = tmp_path / "config"
    folder.mkdir()
    (folder / "g.pg").write_text(SCHEMA)
    text = "version: 1\nstorage: ../root\ngraphs: {people: {schema: g.pg}}\n"
    (folder / "cluster.yaml").write_text(text)
    apply_cluster(folder, is_first=True)
    with start(*CLUSTER, "--cluster", str(folder), *arguments, **environment) as (process, url):
        log = process.communicate(timeout=30)[1]
    assert (process.returncode, url) == (1, "")
    assert message in log
    assert "Traceback" not in log


@pytest.mark.slow
def test_a_policy_without_tokens_does_not_start(graph: str, tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(
        "version: 1\ngroups: {all: [ada]}\n"
        "rules: [{id: all, allow: {actors: {group: all}, actions: [read]}}]\n"
    )
    policy = ("--policy", str(tmp_path / "own.yaml"), "--unauthenticated")
    with start(*SERVE, graph, "--bind", "127.0.0.1:0", *policy) as (process, url):
        log = process.communicate(timeout=30)[1]
    assert (process.returncode, url) == (1, "")
    assert "there are no tokens" in log


@pytest.mark.slow
def test_a_cluster_without_a_ledger_is_refused(tmp_path: Path) -> None:
    with start(*CLUSTER, "--cluster", str(tmp_path), "--unauthenticated") as (process, _):
        log = process.communicate(timeout=30)[1]
    assert process.returncode == 1
    assert "cluster_state_missing" in log


@pytest.mark.slow
def test_one_graph_needs_a_flag_to_be_open_to_other_machines(graph: str) -> None:
    with start(*SERVE, graph, "--bind", "0.0.0.0:0") as (process, url):
        log = process.communicate(timeout=30)[1]
    assert (process.returncode, url) == (1, "")
    assert "--unauthenticated" in log
