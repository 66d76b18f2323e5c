"""A small graph, and the commands run on it in this process."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import places
from omnigraph.cli.app import app
from omnigraph.execution.sources.source_cache import FOLDER_VARIABLE, OFF
from unit.cli.small_company import ADD, EVERYONE, PEOPLE, SCHEMA, Answer, Run


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs a command; the environment of the developer has no part in it."""
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("OMNIGRAPH_PROFILE", raising=False)
    monkeypatch.delenv("OMNIGRAPH_GRAPH", raising=False)
    return _Elsewhere(_run_here) if places.is_on_s3() else _run_here


def _run_here(*arguments: object, text: str | None = None) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=text)


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
    return _write_inputs(tmp_path)


def _write_inputs(folder: Path) -> Path:
    (folder / "s.pg").write_text(SCHEMA)
    lines = "".join(json.dumps(each) + "\n" for each in PEOPLE)
    (folder / "people.jsonl").write_text(lines)
    (folder / "everyone.gq").write_text(EVERYONE)
    (folder / "add.gq").write_text(ADD)
    return folder


@pytest.fixture(scope="session")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Graphs to copy, by name: making one takes many times as long as copying it."""
    folder = _write_inputs(tmp_path_factory.mktemp("seeds"))
    empty, store = folder / "empty.omni", folder / "store.omni"
    with pytest.MonkeyPatch.context() as patch:
        # The test that asks first may have set variables of its own.
        for name in [each for each in os.environ if each.startswith("OMNIGRAPH_")]:
            patch.delenv(name)
        patch.setenv("OMNIGRAPH_HOME", str(folder / "home"))
        patch.setenv(FOLDER_VARIABLE, OFF)
        _run_quietly(_run_here, "init", empty, "--schema", folder / "s.pg")
        shutil.copytree(empty, store)
        _load_people(_run_here, store, folder)
    return {"empty": empty, "store": store}


@pytest.fixture
def empty(run: Run, folder: Path, request: pytest.FixtureRequest) -> Path:
    """A graph without entities."""
    graph = folder / "g.omni"
    if places.is_on_s3():
        _run_quietly(run, "init", graph, "--schema", folder / "s.pg")
    else:
        shutil.copytree(request.getfixturevalue("seeds")["empty"], graph)
    return graph


@pytest.fixture
def store(run: Run, folder: Path, request: pytest.FixtureRequest) -> Path:
    """A graph with three people, one of whom knows another."""
    if places.is_on_s3():
        graph: Path = request.getfixturevalue("empty")
        _load_people(run, graph, folder)
    else:
        graph = folder / "g.omni"
        shutil.copytree(request.getfixturevalue("seeds")["store"], graph)
    return graph


def _load_people(run: Run, graph: Path, folder: Path) -> None:
    _run_quietly(run, "load", graph, "--data", folder / "people.jsonl", "--mode", "append")


def _run_quietly(run: Run, *arguments: object) -> None:
    result = run(*arguments, "--quiet")
    assert result.exit_code == 0, result.output


@pytest.fixture
def answer(run: Run) -> Answer:
    """Runs a command with `--json` that must succeed, and gives its document."""

    def run_json(*arguments: object) -> Any:  # Any: a JSON document
        result = run(*arguments, "--json", "--quiet")
        assert result.exit_code == 0, result.output
        assert result.stderr == ""
        return json.loads(result.stdout)

    return run_json
