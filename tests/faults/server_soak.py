"""Kills a server under load again and again: no acknowledged write may be lost.

    PYTHONPATH=tests python -m faults.server_soak 50

Clients insert people with names of their own and note the names of those that were acknowledged.
The server is killed, started again and asked for all of them; the graph is checked at the end. The
time from the start to the first answer is compared with that of opening the graph alone.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Final

import httpx

import omnigraph
from served import create_people

SERVE: Final = (sys.executable, "-c", "from omnigraph.cli import main; main()", "serve")
OPEN: Final = "import omnigraph, sys; omnigraph.open(sys.argv[1]).branch().head"
G: Final = "/graphs/people"
CLIENTS: Final = 4


class Writers:
    """Clients that insert until their server is gone."""

    def __init__(self, url: str, life: int) -> None:
        self._url = url
        self._life = life
        self._lock = threading.Lock()
        self.acknowledged: set[str] = set()
        self._threads = [threading.Thread(target=self._run, args=(n,)) for n in range(CLIENTS)]
        for each in self._threads:
            each.start()

    def join(self) -> None:
        """Wait for the end of all clients."""
        for each in self._threads:
            each.join(60)

    def _run(self, client: int) -> None:
        number = 0
        with httpx.Client(base_url=self._url, timeout=30) as connected:
            while True:
                name = f"life{self._life}-{client}-{number}"
                text = f'query hire() {{ insert Person {{ name: "{name}" }} }}'
                try:
                    answer = connected.post(f"{G}/mutate", json={"query": text})
                except httpx.TransportError:
                    return
                assert answer.status_code == 200, answer.text
                with self._lock:
                    self.acknowledged.add(name)
                number += 1


def start(uri: str) -> tuple[subprocess.Popen[str], str, float]:
    """A server, its address, and how long it took to answer."""
    began = time.monotonic()
    process = subprocess.Popen(
        [*SERVE, uri, "--bind", "127.0.0.1:0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    url = process.stdout.readline().strip().replace("OMNIGRAPH_LISTEN_ADDR=", "http://")
    httpx.post(f"{url}{G}/query", json={"query": ALL}, timeout=60).raise_for_status()
    return process, url, time.monotonic() - began


ALL: Final = "query q() { match { $p: Person } return { $p.name } }"


def read_names(url: str) -> set[str]:
    """The names of all people."""
    rows = httpx.post(f"{url}{G}/query", json={"query": ALL}, timeout=60).json()["rows"]
    return {row["p.name"] for row in rows}


def run(kills: int, *, seed: int, folder: Path) -> tuple[int, float]:
    """Kill a server so often; acknowledged writes, and the worst seconds beyond an open alone."""
    uri = create_people(folder / "people.omni")
    drawn, acknowledged, slowest = random.Random(seed), set[str](), 0.0
    for life in range(kills):
        process, url, started_s = start(uri)
        began = time.monotonic()
        subprocess.run([sys.executable, "-c", OPEN, uri], check=True)
        slowest = max(slowest, started_s - (time.monotonic() - began))
        assert acknowledged <= read_names(url), "an acknowledged write was lost"
        writers = Writers(url, life)
        time.sleep(drawn.uniform(0.05, 0.6))
        process.kill()
        process.wait()
        writers.join()
        acknowledged |= writers.acknowledged
    with omnigraph.open(uri) as graph:
        assert acknowledged <= {row["p.name"] for row in graph.branch().query(ALL)}
        report = graph.check()
        assert report.is_healthy, report
    return len(acknowledged), slowest


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        count, seconds = run(int(sys.argv[1]), seed=1, folder=Path(made))
    print(f"{count} acknowledged writes, none lost; at most {seconds:.1f} s beyond an open")  # noqa: T201
