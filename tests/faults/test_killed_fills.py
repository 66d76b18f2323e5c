"""A fill of vectors that is killed: nothing is lost, and what was kept is not asked for again."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

import omnigraph
from omnigraph.embedding.embedding_profile import Profile, Provider
from omnigraph.embedding.http_embedder import HttpEmbedder
from unit.embedding.loopback import loopback, says

pytestmark = pytest.mark.slow

SCHEMA = """
node Doc {
  slug: String @key
  text: String?
  vec: Vector(2)? @embed(text, model="m")
}
"""
TEXTS = 20_000
BATCH = 128
WORKER = Path(__file__).with_name("fill_workers.py")


def test_a_killed_fill_is_continued_from_what_it_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setenv("OMNIGRAPH_CACHE_DIR", str(tmp_path / "cache"))

    def answer(handler: BaseHTTPRequestHandler) -> None:
        texts = server.asked[-1].body["input"]
        texts = [texts] if isinstance(texts, str) else texts
        says({"data": [{"embedding": [int(text[1:]) + 1, 1]} for text in texts]})(handler)

    with loopback(answer) as server:
        embedder = HttpEmbedder(Profile(Provider.OPENAI_COMPATIBLE, server.url, "m", ""))
        with omnigraph.create(tmp_path / "g", schema=SCHEMA, embedder=embedder) as graph:
            rows = [
                {"type": "Doc", "data": {"slug": f"t{n}", "text": f"t{n}"}} for n in range(TEXTS)
            ]
            graph.branch().load(rows, mode="append")
        kills = 0
        for least in (10, 80):
            line = [sys.executable, str(WORKER), str(tmp_path / "g"), server.url]
            worker = subprocess.Popen(line, env=os.environ.copy())
            until = time.monotonic() + 120
            while len(server.asked) < least and worker.poll() is None:
                assert time.monotonic() < until
                time.sleep(0.01)
            kills += worker.poll() is None
            worker.kill()
            worker.wait()
        with omnigraph.open(tmp_path / "g", embedder=embedder) as graph:
            main = graph.branch()
            main.embed()
            status = main.embed_status()
            assert (status.ready, status.pending, status.failed) == (TEXTS, 0, 0)
            assert graph.check().problems == ()
        asked = Counter(text for each in server.asked for text in each.body["input"])
        assert len(asked) == TEXTS
        # Only what was on its way when a process was killed may be asked for twice.
        assert sum(asked.values()) - TEXTS <= kills * BATCH
        assert kills == 2
