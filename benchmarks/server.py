"""What served reads and writes cost, beside a bare server of the same stack and the engine alone.

Clients are a process of their own, with raw sockets in a closed loop. On a machine that others use,
compare the CPU of the server per request, which waiting does not change, and not requests/s.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import numpy as np
import pyarrow as pa
import uvloop
from rich.console import Console
from rich.table import Table

import omnigraph

SCHEMA: Final = """
node Person { name: String @key  age: I64  city: String  mail: String?  score: F64
  joined: Date?  active: Bool  team: String }
edge Knows: Person -> Person
"""
POINT: Final = """query point($name: String) {
  match { $p: Person { name: $name } } return { $p.name, $p.age } }"""
HOP2: Final = """query hop2($name: String) {
  match { $p: Person { name: $name }  $p knows $q  $q knows $r }
  return { $r.name as name } order { name } limit 10 }"""
ROWS: Final = """query rows() {
  match { $p: Person } return { $p.name, $p.age, $p.city, $p.mail, $p.score, $p.joined, $p.active,
  $p.team } limit 1000 }"""
ADD: Final = """query add($name: String) { insert Person { name: $name, age: 3, city: "c5",
  score: 1.5, active: true, team: "t" } }"""
SERVE: Final = (sys.executable, "-c", "from omnigraph.cli import main; main()", "serve")
BARE: Final = """
import sys, uvicorn, socket
async def app(scope, receive, send):
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": [
        (b"content-type", b"application/json"), (b"content-length", b"15")]})
    await send({"type": "http.response.body", "body": b'{"status":"ok"}'})
opened = socket.create_server(("127.0.0.1", 0), backlog=2048)
print("LISTEN=127.0.0.1:%d" % opened.getsockname()[1], flush=True)
config = uvicorn.Config(app, loop="uvloop", http="httptools", ws="none", lifespan="off",
    log_level="error", access_log=False, proxy_headers=False, server_header=False)
uvicorn.Server(config).run(sockets=[opened])
"""
CONNECTIONS: Final = (1, 8, 64)
PEOPLE: Final = 20_000
EDGES: Final = 200_000
_NUMBERS: Final = 1_000_000
COMMITS: Final = 200
LOADED: Final = 50_000


@dataclass(frozen=True, slots=True)
class Load:
    """What one run sends, and to where."""

    port: int
    kind: str
    connections: int
    seconds: float
    seed: int


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run answered: seconds of each request, and the statuses that were not 200."""

    seconds: list[float]
    failures: int

    def percentile(self, part: int) -> float:
        """Milliseconds below which a part of the requests stayed."""
        if len(self.seconds) < 2:
            return float("nan")
        return 1000 * statistics.quantiles(self.seconds, n=100)[part - 1]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each run")
    parser.add_argument("--mixed", type=float, default=0.0, help="of 32 readers with 4 writers")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        uri = build_graph(Path(folder) / "people.omni")
        print_engine(uri)
        with serve(uri) as (process, port), start_bare() as (bare, bare_port):
            warm(port)
            print_table(given.seconds, (process, port), (bare, bare_port))
            print_first_reads(port)
            print_load(port)
            if given.mixed:
                print_mixed(given.mixed, port)
        print_workers(uri, given.seconds)


def build_graph(path: Path) -> str:
    """People, and edges between them."""
    random = np.random.default_rng(1)
    names = np.array([f"p{number}" for number in range(PEOPLE)])
    people = pa.table(
        {
            "name": names,
            "age": random.integers(1, 99, PEOPLE),
            "city": np.char.add("c", random.integers(0, 100, PEOPLE).astype(str)),
            "mail": np.char.add(names, "@example.org"),
            "score": random.random(PEOPLE),
            "joined": pa.array(random.integers(0, 20_000, PEOPLE), pa.int32()).cast(pa.date32()),
            "active": random.random(PEOPLE) < 0.5,
            "team": np.char.add("t", random.integers(0, 30, PEOPLE).astype(str)),
        }
    )
    ends = {name: names[random.integers(0, PEOPLE, EDGES)] for name in ("from", "to")}
    with omnigraph.create(path, schema=SCHEMA) as graph:
        graph.branch().load({"Person": people, "Knows": pa.table(ends)}, mode="append")
    return str(path)


def print_engine(uri: str) -> None:
    """CPU of the engine alone, for the same reads of warm data."""
    with omnigraph.open(uri) as graph:
        branch = graph.branch()
        for name, text in (("point", POINT), ("hop2", HOP2), ("rows", ROWS)):
            params = None if name == "rows" else {"name": "p77"}
            used = measure_cpu(lambda text=text, params=params: branch.query(text, params=params))
            Console().print(f"engine alone, {name}: {used:.0f} µs of CPU")


def measure_cpu(work: Callable[[], object], count: int = 300) -> float:
    """Microseconds of this thread for one call, after some to warm up."""
    for _ in range(50):
        work()
    started = time.thread_time()
    for _ in range(count):
        work()
    return 1e6 * (time.thread_time() - started) / count


@contextmanager
def serve(uri: str, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The server of a graph as a process."""
    with _run([*SERVE, uri, "--bind", "127.0.0.1:0", *arguments]) as found:
        yield found


@contextmanager
def start_bare() -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A server of the same stack that answers a constant."""
    with _run([sys.executable, "-c", BARE]) as found:
        yield found


@contextmanager
def _run(command: list[str]) -> Iterator[tuple[subprocess.Popen[str], int]]:
    process = subprocess.Popen(  # noqa: S603
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        # All clients are one actor here.
        env=os.environ | {"OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX": "1000"},
    )
    try:
        assert process.stdout is not None
        yield process, int(process.stdout.readline().rpartition(":")[2])
    finally:
        process.kill()
        process.wait()


def warm(port: int) -> None:
    """Have the server load what reads need."""
    for kind in ("point", "hop2", "rows"):
        run(Load(port, kind, 1, 1.0, 1))


def print_table(
    seconds: float,
    own: tuple[subprocess.Popen[str], int],
    bare: tuple[subprocess.Popen[str], int],
) -> None:
    """A row for each kind of request and number of connections."""
    table = Table("request", "connections", "requests/s", "p50 ms", "p99 ms", "CPU µs", "failed")
    for kind in ("bare", "health", "point", "hop2", "rows", "mutate"):
        for connections in CONNECTIONS:
            process, port = bare if kind == "bare" else own
            before = read_cpu(process.pid)
            found = run(Load(port, kind, connections, seconds, 7))
            used = 1e6 * (read_cpu(process.pid) - before) / max(len(found.seconds), 1)
            table.add_row(
                kind,
                str(connections),
                f"{len(found.seconds) / seconds:,.0f}",
                f"{found.percentile(50):.2f}",
                f"{found.percentile(99):.2f}",
                f"{used:,.0f}",
                str(found.failures),
            )
    Console(width=100).print(table)


def print_first_reads(port: int) -> None:
    """The first read after a commit, beside the reads after it: those are warm again."""
    with httpx.Client(base_url=f"http://127.0.0.1:{port}/graphs/people") as client:
        first: list[float] = []
        again: list[float] = []
        writes: list[float] = []
        for number in range(COMMITS):
            add = {"query": ADD, "params": {"name": f"first{number}-{time.monotonic_ns()}"}}
            writes.append(_time_request(client, "/mutate", add))
            point = {"query": POINT, "params": {"name": f"p{number}"}}
            first.append(_time_request(client, "/query", point))
            again += [_time_request(client, "/query", point) for _ in range(3)]
    medians = [1000 * statistics.median(each) for each in (first, again, writes)]
    tenth = COMMITS // 10
    growth = statistics.median(first[-tenth:]) / statistics.median(first[:tenth])
    Console().print(
        f"point after a commit: {medians[0]:.2f} ms, warm {medians[1]:.2f} ms"
        f" ({medians[0] / medians[1]:.1f}x); the last tenth of {COMMITS} commits {growth:.1f}x of"
        f" the first; a commit {medians[2]:.1f} ms"
    )


def _time_request(client: httpx.Client, route: str, body: dict[str, Any]) -> float:  # Any: JSON
    started = time.monotonic()
    client.post(route, json=body).raise_for_status()
    return time.monotonic() - started


def print_load(port: int) -> None:
    """8 readers alone, and beside a load."""
    alone = run(Load(port, "point", 8, 3.0, 11))
    person = {"age": 1, "city": "c1", "score": 1.0, "active": True, "team": "t1"}
    lines = "\n".join(
        json.dumps({"type": "Person", "data": {"name": f"load{number}", **person}})
        for number in range(LOADED)
    )
    taken: list[float] = []

    def load() -> None:
        headers = {"content-type": "application/x-ndjson"}
        route = f"http://127.0.0.1:{port}/graphs/people/load/ndjson?mode=append"
        started = time.monotonic()
        httpx.post(route, content=lines, headers=headers, timeout=120).raise_for_status()
        taken.append(time.monotonic() - started)

    loader = threading.Thread(target=load)
    loader.start()
    beside = run(Load(port, "point", 8, 5.0, 12))
    loader.join()
    ratio = beside.percentile(99) / alone.percentile(99)
    Console().print(
        f"8 readers, p99: {alone.percentile(99):.1f} ms alone, {beside.percentile(99):.1f} ms"
        f" beside a load of {LOADED:,} rows ({ratio:.1f}x), which takes {taken[0]:.1f} s"
    )


def print_workers(uri: str, seconds: float) -> None:
    """Point queries of 8 connections by one process, and by two."""
    rates = []
    for workers in ("1", "2"):
        with serve(uri, "--workers", workers) as (_, port):
            for _ in range(2):
                # Each process has to see the texts before it answers them in its event loop.
                run(Load(port, "point", 16, 2.0, 1))
            found = run(Load(port, "point", 8, 2 * seconds, 7))
            rates.append(len(found.seconds) / (2 * seconds))
    Console().print(
        f"point, 8 connections: {rates[0]:,.0f}/s by one process, {rates[1]:,.0f}/s by two"
        f" ({rates[1] / rates[0]:.2f}x) on {os.cpu_count()} processors, clients included"
    )


def print_mixed(seconds: float, port: int) -> None:
    """32 readers alone, and beside 4 writers."""
    alone = run(Load(port, "point", 32, seconds / 2, 3))
    found: dict[str, Measured] = {}

    def write() -> None:
        found["writes"] = run(Load(port, "mutate", 4, seconds, 5))

    writer = threading.Thread(target=write)
    writer.start()
    beside = run(Load(port, "point", 32, seconds, 4))
    writer.join()
    writes = found["writes"]
    rates = len(alone.seconds) / (seconds / 2), len(beside.seconds) / seconds
    Console().print(
        f"32 readers: {rates[0]:,.0f}/s alone, {rates[1]:,.0f}/s beside 4 writers"
        f" ({rates[1] / rates[0]:.2f}x), p99 {beside.percentile(99):.0f} ms;"
        f" {len(writes.seconds) / seconds:,.0f} writes/s;"
        f" failed: {alone.failures + beside.failures + writes.failures}"
    )


def read_cpu(pid: int) -> float:
    """The seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(load: Load) -> Measured:
    """Run the clients of a load in a process of their own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_run_clients, (load,))


def _run_clients(load: Load) -> Measured:
    return uvloop.run(_send_all(load))


async def _send_all(load: Load) -> Measured:
    until = time.monotonic() + load.seconds
    clients = [_send(load, number, until) for number in range(load.connections)]
    found = await asyncio.gather(*clients)
    return Measured(
        [each for measured in found for each in measured.seconds],
        sum(measured.failures for measured in found),
    )


async def _send(load: Load, number: int, until: float) -> Measured:
    reader, writer = await asyncio.open_connection("127.0.0.1", load.port)
    random = np.random.default_rng(load.seed * 1_000 + number)
    seconds: list[float] = []
    failures = 0
    while (started := time.monotonic()) < until:
        writer.write(_build_request(load.kind, int(random.integers(0, _NUMBERS))))
        status = await _read_answer(reader)
        seconds.append(time.monotonic() - started)
        failures += status != 200
    writer.close()
    return Measured(seconds, failures)


async def _read_answer(reader: asyncio.StreamReader) -> int:
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    await reader.readexactly(length)
    return int(head.split(b" ", 2)[1])


def _build_request(kind: str, number: int) -> bytes:
    if kind in {"bare", "health"}:
        return b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
    texts = {"point": POINT, "hop2": HOP2, "rows": ROWS, "mutate": ADD}
    body: dict[str, Any] = {"query": texts[kind]}  # Any: JSON
    if kind == "mutate":
        body["params"] = {"name": f"new{number}-{time.monotonic_ns()}"}
    elif kind != "rows":
        body["params"] = {"name": f"p{number % PEOPLE}"}
    data = json.dumps(body).encode()
    route = b"mutate" if kind == "mutate" else b"query"
    head = (
        b"POST /graphs/people/%b HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    )
    return head % route + b"content-length: %d\r\n\r\n%b" % (len(data), data)


if __name__ == "__main__":
    main()
