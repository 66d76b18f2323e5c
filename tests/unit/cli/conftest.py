"""A small graph, and the commands run on it in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import places
from omnigraph.cli.app import app
from unit.cli.small_company import ADD, EVERYONE, PEOPLE, SCHEMA, Answer, Run


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs a command; the environment of the developer has no part in it."""
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("OMNIGRAPH_PROFILE", raising=False)

    def run_command(*arguments: object, text: str | None = None) -> Result:
        return CliRunner().invoke(app, [str(argument) for argument in arguments], input=text)

    return _Elsewhere(run_command) if places.is_on_s3() else run_command


class _Elsewhere:
    """Runs commands on S3 that name a graph on the disk, and lets them speak of the disk."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._addresses: dict[str, str] = {}

    def __call__(self, *arguments: object, text: str | None = None) -> Result:
        given = [str(argument) for argument in arguments]
        for argument in given:
            if argument.endswith(".omni") and argument not in self._addresses:
                self._addresses[argument] = places.fresh_uri()
        moved = [self._addresses.get(argument, argument) for argument in given]
        # What is far away is changed with consent only.
        consent = ["--yes"] if moved != given else []
        result = self._run(*consent, *moved, text=text)
        for name in ("stdout_bytes", "stderr_bytes", "output_bytes"):
            setattr(result, name, self._as_on_disk(getattr(result, name)))
        return result

    def _as_on_disk(self, output: bytes) -> bytes:
        for path, uri in self._addresses.items():
            output = output.replace(
                f"{uri} (direct, remote)".encode(), f"{path} (direct, local)".encode()
            )
            output = output.replace(uri.encode(), path.encode())
        return output


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a schema, data and queries."""
    (tmp_path / "s.pg").write_text(SCHEMA)
    lines = "".join(json.dumps(each) + "\n" for each in PEOPLE)
    (tmp_path / "people.jsonl").write_text(lines)
    (tmp_path / "everyone.gq").write_text(EVERYONE)
    (tmp_path / "add.gq").write_text(ADD)
    return tmp_path


@pytest.fixture
def empty(run: Run, folder: Path) -> Path:
    """A graph without entities."""
    store = folder / "g.omni"
    created = run("init", store, "--schema", folder / "s.pg", "--quiet")
    assert created.exit_code == 0, created.output
    return store


@pytest.fixture
def store(run: Run, folder: Path, empty: Path) -> Path:
    """A graph with three people, one of whom knows another."""
    loaded = run("load", empty, "--data", folder / "people.jsonl", "--mode", "append", "--quiet")
    assert loaded.exit_code == 0, loaded.output
    return empty


@pytest.fixture
def answer(run: Run) -> Answer:
    """Runs a command with `--json` that must succeed, and gives its document."""

    def run_json(*arguments: object) -> Any:  # Any: a JSON document
        result = run(*arguments, "--json", "--quiet")
        assert result.exit_code == 0, result.output
        assert result.stderr == ""
        return json.loads(result.stdout)

    return run_json
