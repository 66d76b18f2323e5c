"""Sends a server thousands of wrong requests: none may be its own failure, or show its inside.

    PYTHONPATH=tests python -m faults.http_fuzz 10000

Every request is drawn from a seed: valid ones whose path, query, headers or body were damaged, and
bytes that are not HTTP. An answer must have a status of the contract and a document with `error`;
the log must have no trace, and the graph must answer as before.
"""

from __future__ import annotations

import json
import logging
import random
import socket
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, Final

import httpx

from omnigraph.server.server_log import JsonFormatter
from served import serve_people

G: Final = "/graphs/people"
# What clients of the contract know.
STATUSES: Final = frozenset(
    {200, 206, 304, 400, 401, 403, 404, 405, 409, 410, 412, 413, 415, 416, 424, 429}
)
READ: Final = "query q($n: String?) { match { $p: Person } return { $p.name } }"
BODIES: Final[list[tuple[str, str, Any]]] = [
    ("POST", f"{G}/query", {"query": READ, "params": {"n": "ada"}}),
    ("POST", f"{G}/mutate", {"query": 'query h() { insert Person { name: "eve" } }'}),
    ("POST", f"{G}/load", {"data": '{"type":"Person","data":{"name":"eve"}}'}),
    ("POST", f"{G}/branches", {"name": "draft", "from": "main"}),
    ("POST", f"{G}/branches/merge", {"source": "draft", "target": "main"}),
    ("POST", f"{G}/export", {"branch": "main", "type_names": ["Person"]}),
    ("POST", f"{G}/changes/baseline", {"branch": "main", "kind": ["node"]}),
    ("POST", f"{G}/queries/find", {"params": {}}),
    ("POST", f"{G}/schema/apply", {"schema_source": "node Person { name: String @key }"}),
    ("POST", f"{G}/load/ndjson?mode=merge", {"type": "Person", "data": {"name": "x"}}),
    ("GET", f"{G}/changes?start=beginning&limit=3", None),
    ("GET", f"{G}/commits?branch=main", None),
    ("GET", f"{G}/blob?entity=node&type=Person&id=ada&property=avatar", None),
    ("DELETE", f"{G}/branches/draft", None),
    ("GET", f"{G}/commits/01ARZ3NDEKTSV4RRFFQ69G5FAV/changes", None),
]
VALUES: Final[list[Any]] = [
    *(None, True, 0, -1, 2**63, 2**70, 1e308, "", "\0", "\ud7ff", "main", "a/b", "../..", "%00"),
    *([], {}, [[[]]], {"a": {"b": []}}, "x" * 5_000, "\u202e", "nearest($p.a, 'x')", "{" * 500),
]
HEADERS: Final[list[tuple[str, str]]] = [
    *(("content-type", each) for each in ("text/plain", "application/json;x", "")),
    *(("range", each) for each in ("bytes=0-", "bytes=-", "bytes=9-1", "bytes=1-2,3-4", "x")),
    *(("if-match", each) for each in ("*", '"x"', 'W/"', ",,", '"')),
    *(("if-none-match", each) for each in ("*", '"x"', 'W/"y"')),
    *(("accept", each) for each in ("application/vnd.apache.arrow.stream", "*/*", "")),
    *(("omnigraph-if-graph-commit", each) for each in ("x", "*", "01ARZ3NDEKTSV4RRFFQ69G5FAV")),
    *(("x-request-id", each) for each in ("a", "b" * 300)),
    ("authorization", "Bearer x"),
    ("origin", "https://evil.example"),
    ("transfer-encoding", "identity"),
]


class HttpFuzz:
    """Draws requests, and checks what is answered."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.statuses: Counter[int] = Counter()

    def send(self, client: httpx.Client) -> None:
        """Send one damaged request, and check its answer."""
        method, path, body = self._random.choice(BODIES)
        draw = self._random.random
        if draw() < 0.3:
            path = self._damage_text(path)
        if draw() < 0.1:
            method = self._random.choice(
                ["GET", "POST", "PUT", "DELETE", "HEAD", "PATCH", "OPTIONS"]
            )
        content = b"" if body is None else json.dumps(self._damage_value(body)).encode()
        if draw() < 0.3:
            content = self._damage_bytes(content)
        media = "application/x-ndjson" if "ndjson" in path else "application/json"
        headers = {"content-type": media}
        headers |= dict(self._random.sample(HEADERS, self._random.choice([0, 0, 1, 2])))
        url = httpx.URL(client.base_url, raw_path=_ascii(path))
        request = client.build_request(method, url, content=content, headers=headers)
        try:
            answer = client.send(request)
        except httpx.LocalProtocolError:
            return
        self._check(answer, method)

    def _check(self, answer: httpx.Response, method: str) -> None:
        self.statuses[answer.status_code] += 1
        assert answer.status_code in STATUSES, (answer.request, answer.text)
        text = answer.text
        for word in ("Traceback", "site-packages", ".lance", "__manifest", "ada-secret"):
            # A path of storage is shown by the one route that the contract says shows it.
            assert word not in text or "dataset_path" in text, (answer.request, text)
        is_json = answer.headers.get("content-type") == "application/json"
        if answer.status_code >= 400 and method != "HEAD" and is_json:
            assert answer.json()["error"], answer.request

    def _damage_value(self, value: Any) -> Any:
        draw = self._random.random()
        if draw < 0.1:
            return self._random.choice(VALUES)
        if isinstance(value, dict):
            found = {name: self._damage_value(each) for name, each in value.items()}
            if draw < 0.2 and found:
                found.pop(self._random.choice(list(found)))
            if draw > 0.9:
                found[self._random.choice(["extra", "branch", "name", "params", "from"])] = (
                    self._random.choice(VALUES)
                )
            return found
        if isinstance(value, str) and draw < 0.3:
            return self._damage_text(value)
        return value

    def _damage_text(self, text: str) -> str:
        place = self._random.randrange(len(text) + 1)
        piece = self._random.choice(
            ["%2F", "%00", "%ff", "..", "/", "?", "&", "=", "{", '"', "é", ""]
        )
        return text[:place] + piece + text[place + self._random.randrange(3) :]

    def _damage_bytes(self, data: bytes) -> bytes:
        found = bytearray(data)
        for _ in range(self._random.randrange(4)):
            if found:
                found[self._random.randrange(len(found))] = self._random.randrange(256)
        return bytes(found)

    def send_garbage(self, address: tuple[str, int]) -> None:
        """Send bytes that are hardly HTTP, and close."""
        lines = [
            b"GET / HTTP/9.9\r\n\r\n",
            b"POST /graphs/people/query HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
            b"GET /%ff%fe HTTP/1.1\r\nhost: x\r\n\r\n",
            b"GET http://[ HTTP/1.1\r\nhost: x\r\n\r\n",
            b"GET /healthz HTTP/1.1\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n",
            self._random.randbytes(200),
        ]
        with socket.create_connection(address, timeout=5) as opened:
            opened.sendall(self._random.choice(lines))
            opened.settimeout(0.05)
            try:
                assert b"Traceback" not in opened.recv(4_096)
            except OSError:
                return


def _ascii(path: str) -> bytes:
    """A path as bytes that the client sends as they are."""
    return b"/" + path.lstrip("/").encode("ascii", "replace").replace(b" ", b"+")


class _Collector(logging.Handler):
    """Keeps the lines of the log that are not about requests."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line."""
        if record.getMessage() != "request":
            self.lines.append(JsonFormatter().format(record))


def run(count: int, *, seed: int, folder: Path) -> Counter[int]:
    """Send so many requests to a server of a graph in a folder; the statuses of the answers."""
    collector, fuzz = _Collector(), HttpFuzz(seed)
    logging.getLogger("omnigraph").addHandler(collector)
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
    try:
        with serve_people(folder) as running, running.connect() as client:
            host, port = running.url.removeprefix("http://").split(":")
            for number in range(count):
                if number % 50 == 49:
                    fuzz.send_garbage((host, int(port)))
                else:
                    fuzz.send(client)
            answer = client.post(f"{G}/query", json={"query": READ})
            assert answer.status_code in {200, 400}, answer.text
            assert client.get("/healthz").status_code == 200
    finally:
        logging.getLogger("omnigraph").removeHandler(collector)
    traces = [line for line in collector.lines if "trace" in line or "Traceback" in line]
    assert not traces, traces[:3]
    return fuzz.statuses


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        statuses = run(int(sys.argv[1]), seed=int((sys.argv[2:] or ["1"])[0]), folder=Path(made))
    print(f"{sum(statuses.values())} answers: {dict(sorted(statuses.items()))}")  # noqa: T201
