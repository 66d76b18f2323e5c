"""`omnigraph embed` on files of records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from omnigraph.embedding.mock_embedder import compute_mock_embedding
from unit.cli.small_company import Answer, Run

LINES = [
    {"type": "Doc", "data": {"slug": "a", "title": "One", "text": "sea"}},
    {"type": "Doc", "data": {"slug": "b", "title": "Two", "text": None, "n": 7}},
    {"edge": "Cites", "from": "a", "to": "b"},
    {"type": "Other", "data": {"slug": "x"}},
    {"type": "Doc", "data": {"slug": "c"}},
]
SPEC = {"dimension": 4, "types": {"Doc": {"target": "vec", "fields": ["title", "text"]}}}


@pytest.fixture
def seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")
    monkeypatch.setenv("OMNIGRAPH_EMBED_MODEL", "demo")
    (tmp_path / "raw.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LINES))
    manifest = {"sources": {"raw_seed": "raw.jsonl"}, "embeddings": SPEC}
    (tmp_path / "seed.yaml").write_text(json.dumps(manifest))
    return tmp_path / "seed.yaml"


def written(seed: Path) -> list[Any]:
    text = (seed.parent / "build/seed.embedded.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_a_second_run_embeds_nothing(answer: Answer, seed: Path) -> None:
    first = answer("embed", "--seed", seed)
    assert (first["mode"], first["model"], first["dimension"]) == ("fill_missing", "demo", 4)
    assert (first["records"], first["entities"], first["embedded"]) == (5, 3, 2)
    found = written(seed)
    expected = pytest.approx(compute_mock_embedding("One\nsea", 4), abs=1e-6)
    assert found[0]["data"]["vec"] == expected
    assert found[1]["data"]["vec"] == pytest.approx(compute_mock_embedding("Two", 4), abs=1e-6)
    assert found[1]["data"]["n"] == 7
    assert found[2:] == LINES[2:]
    second = answer("embed", "--seed", seed)
    assert (second["embedded"], second["kept"]) == (0, 2)
    assert written(seed) == found
    assert not (seed.parent / "build/seed.embedded.jsonl.tmp").exists()


def test_one_record_is_embedded_again(answer: Answer, seed: Path) -> None:
    answer("embed", "--seed", seed)
    before = written(seed)
    found = answer("embed", "--seed", seed, "--select", "Doc:slug=b")
    assert (found["mode"], found["embedded"], found["kept"]) == ("reembed_selected", 1, 1)
    assert answer("embed", "--seed", seed, "--select", "n=7")["embedded"] == 1
    assert answer("embed", "--seed", seed, "--select", "Other:n=7")["embedded"] == 0
    assert answer("embed", "--seed", seed, "--reembed-all")["embedded"] == 2
    assert written(seed) == before


def test_vectors_are_removed(answer: Answer, seed: Path) -> None:
    answer("embed", "--seed", seed)
    folder = seed.parent
    (folder / "spec.json").write_text(json.dumps(SPEC))
    out = folder / "clean.jsonl"
    line = ("--input", folder / "build/seed.embedded.jsonl", "--output", out)
    found = answer("embed", *line, "--spec", folder / "spec.json", "--clean")
    assert (found["mode"], found["model"], found["cleaned"]) == ("clean", "", 2)
    assert [json.loads(each) for each in out.read_text().splitlines()] == LINES
    assert answer("embed", "--seed", seed, "--clean")["cleaned"] == 2
    assert written(seed) == LINES


def test_vectors_of_other_records_stay_when_some_are_removed(answer: Answer, seed: Path) -> None:
    answer("embed", "--seed", seed)
    before = written(seed)
    found = answer("embed", "--seed", seed, "--clean", "--select", "slug=b")
    assert (found["cleaned"], found["kept"]) == (1, 1)
    assert written(seed) == [before[0], *LINES[1:]]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--select", "slug"], "selects nothing"),
        (["--clean", "--reembed-all"], "excludes"),
        (["--wait"], "about graphs"),
        (["--input", "x"], "--seed names the files"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    run: Run, seed: Path, options: list[str], problem: str
) -> None:
    failed = run("embed", "--seed", seed, *options)
    assert failed.exit_code in (1, 2)
    assert problem in failed.stderr
    assert not (seed.parent / "build").exists()


def test_a_bad_file_is_named_with_its_line(run: Run, seed: Path) -> None:
    (seed.parent / "raw.jsonl").write_text('{"type": "Doc", "data": {}}\n{oops\n')
    failed = run("embed", "--seed", seed)
    assert failed.exit_code == 1
    assert "raw.jsonl line 2 is not JSON" in failed.stderr
    seed.write_text("embeddings: {}\n")
    assert "it names no seed" in run("embed", "--seed", seed).stderr
