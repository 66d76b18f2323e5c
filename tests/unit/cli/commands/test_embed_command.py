"""`omnigraph embed` on graphs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from unit.cli.small_company import Answer, Run

SCHEMA = """
node Doc {
  slug: String @key
  text: String?
  vec: Vector(4)? @embed(text, model="demo")
}
"""


@pytest.fixture
def store(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")
    monkeypatch.setenv("OMNIGRAPH_EMBED_MODEL", "demo")
    schema, data = tmp_path / "docs.pg", tmp_path / "docs.jsonl"
    schema.write_text(SCHEMA)
    lines = [{"type": "Doc", "data": {"slug": slug, "text": slug}} for slug in "ab"]
    data.write_text("".join(json.dumps(line) + "\n" for line in lines))
    graph = tmp_path / "docs.omni"
    for line in (
        ("init", graph, "--schema", schema),
        ("load", graph, "--data", data, "--mode", "append"),
    ):
        assert run(*line).exit_code == 0
    return graph


def test_vectors_are_counted_made_and_counted_again(answer: Answer, store: Path) -> None:
    before = answer("embed", "status", store)
    assert (before["ready"], before["pending"], before["failed"]) == (0, 2, 0)
    assert before["properties"] == [
        {
            "type": "Doc",
            "property": "vec",
            "model": "demo",
            "ready": 0,
            "pending": 2,
            "failed": 0,
            "reason": None,
        }
    ]
    made = answer("embed", "--store", store)
    assert (made["branch"], made["filled"], len(made["commits"])) == ("main", 2, 1)
    assert answer("embed", "status", "--store", store)["ready"] == 2
    assert answer("embed", "--store", store, "--type", "Doc", "--wait")["filled"] == 0


def test_people_read_a_line_per_property(run: Run, store: Path) -> None:
    assert "Doc.vec  demo  0 ready  2 pending  0 failed" in run("embed", "status", store).stdout
    assert "made 2 vectors on main in 1 commit" in run("embed", "--store", store).stdout


def test_a_write_says_when_its_vectors_are_made(answer: Answer, store: Path) -> None:
    text = 'query q() { insert Doc { slug: "c", text: "c" } }'
    answer("mutate", "--store", store, "-e", text, "--embed", "write")
    assert answer("embed", "status", store)["ready"] == 1
    data = store.parent / "docs.jsonl"
    answer("load", store, "--data", data, "--mode", "merge", "--embed", "write")
    assert answer("embed", "status", store)["pending"] == 0


def test_another_model_is_refused(run: Run, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBED_MODEL", "other")
    failed = run("embed", "--store", store)
    assert failed.exit_code == 1
    assert "made by the model 'demo'" in failed.stderr
