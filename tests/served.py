"""Real servers for tests: in a thread of this process, on a free port of the loopback interface."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx

import omnigraph
from omnigraph.clusters.applied_cluster import open_cluster
from omnigraph.clusters.control_plane import ControlPlane
from omnigraph.server.bearer_tokens import BearerTokens, build_tokens
from omnigraph.server.cluster_serving import boot_cluster
from omnigraph.server.http_process import HttpServer, listen
from omnigraph.server.server_boot import boot_graph
from omnigraph.server.server_run import run_on_socket
from omnigraph.server.server_settings import ServerSettings
from omnigraph.server.server_state import ServerState, Serving

# What the tests of a server start from: four people, of whom three know each other.
SCHEMA = """\
node Person { name: String @key
  age: I64?
  avatar: Blob? }
node Company { name: String @key }
edge Knows: Person -> Person
edge WorksAt: Person -> Company
"""
PEOPLE = [
    {"type": "Person", "data": {"name": "ada", "age": 36, "avatar": "base64:SGVsbG8gV29ybGQ="}},
    *({"type": "Person", "data": {"name": name, "age": 20}} for name in ("bob", "cyd", "dan")),
    {"edge": "Knows", "from": "ada", "to": "bob"},
    {"edge": "Knows", "from": "bob", "to": "cyd"},
    {"edge": "Knows", "from": "cyd", "to": "dan"},
]
TOKENS = {"ada": "ada-secret", "bob": "bob-secret"}
SETTINGS = ServerSettings(port=0, reload_s=0.0, drain_s_max=10)


@dataclass
class RunningServer:
    """A server that answers; `url` is its address."""

    url: str
    serving: Serving
    server: HttpServer

    def connect(self, actor: str | None = None, **options: Any) -> httpx.Client:
        """A client, with the token of an actor."""
        headers = {} if actor is None else {"authorization": f"Bearer {actor}-secret"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=30, **options)

    def wake(self) -> None:
        """Have the server look for changes now."""
        self.server.wake_soon()


def create_people(path: Path) -> str:
    """A graph with people, at a path."""
    with omnigraph.create(path, schema=SCHEMA, durable=False) as graph:
        graph.branch().load(PEOPLE, mode="append")
    return str(path)


def make_tokens(*actors: str) -> BearerTokens:
    """The tokens of some actors."""
    return build_tokens([(actor, f"{actor}-secret") for actor in actors])


@contextmanager
def serve(
    state: ServerState, *, root: str | None = None, quarantined: Any = None, **settings: Any
) -> Iterator[RunningServer]:
    """A server for a state, until the end of the context."""
    serving, chosen = Serving(state), replace(SETTINGS, **settings)
    started, found = threading.Event(), []
    with listen(chosen) as opened:
        port = opened.getsockname()[1]

        def start(server: HttpServer) -> None:
            found.append(server)
            started.set()

        def run() -> None:
            run_on_socket(
                opened, serving, chosen, root=root, quarantined=quarantined, on_start=start
            )

        thread = threading.Thread(target=run, name="server")
        thread.start()
        started.wait(30)
        _wait_for_loop(found[0], thread)
        try:
            yield RunningServer(f"http://127.0.0.1:{port}", serving, found[0])
        finally:
            found[0].stop()
            thread.join(30)
            assert not thread.is_alive(), "the server did not end"


def _wait_for_loop(server: HttpServer, thread: threading.Thread) -> None:
    """Return when the server answers, so that a test can wake it at once."""
    while not server.started:
        assert thread.is_alive(), "the server did not start"
        time.sleep(0.005)


@contextmanager
def serve_people(
    folder: Path,
    *,
    actors: tuple[str, ...] = (),
    policy: str | None = None,
    **settings: Any,
) -> Iterator[RunningServer]:
    """A server for one graph with people, whose id is `people`."""
    uri = create_people(folder / "people.omni")
    file = None
    if policy is not None:
        file = folder / "policy.yaml"
        file.write_text(policy)
    state = boot_graph(
        uri,
        graph_id=None,
        policy=None if file is None else str(file),
        tokens=make_tokens(*actors),
        is_open=not actors,
    )
    with serve(state, **settings) as running:
        yield running


def apply_cluster(folder: Path, *, is_first: bool = False) -> None:
    """Bring the configuration in a folder into force."""
    if is_first:
        assert ControlPlane(str(folder), "ada").import_state().is_ok
    assert ControlPlane(str(folder), "ada").apply().is_ok


@contextmanager
def serve_cluster(
    folder: Path, *, actors: tuple[str, ...] = (), is_strict: bool = False, **settings: Any
) -> Iterator[RunningServer]:
    """A server for the cluster of a folder."""
    state, quarantined = boot_cluster(
        open_cluster(folder), make_tokens(*actors), is_open=not actors, is_strict=is_strict
    )
    with serve(state, root=str(folder), quarantined=quarantined, **settings) as running:
        yield running
