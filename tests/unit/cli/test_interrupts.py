"""Ctrl-C: exit code 130, and only what is true is said."""

from __future__ import annotations

import gzip
import os
import pty
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from omnigraph import Branch, Graph
from unit.cli.small_company import ADD, Run

MUTATION = ("mutate", "-e", ADD, "--params", '{"name": "zoe"}', "--quiet")


@pytest.mark.on_disk
def test_an_interrupted_write_that_did_not_happen_says_so(
    run: Run, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Branch, "mutate", _interrupted)
    result = run(*MUTATION, "--store", store)
    assert result.exit_code == 130
    assert result.stderr == "error: interrupted; nothing was written\n"
    assert result.stdout == ""


def test_an_interrupted_write_that_happened_is_not_denied(
    run: Run, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate = Branch.mutate

    def interrupted_too_late(branch: Branch, *arguments: object, **options: object) -> None:
        mutate(branch, *arguments, **options)  # type: ignore[arg-type]  # passed on as they came
        raise KeyboardInterrupt

    monkeypatch.setattr(Branch, "mutate", interrupted_too_late)
    result = run(*MUTATION, "--store", store)
    assert result.exit_code == 130
    assert "nothing was written" not in result.stderr
    assert "omnigraph commit list" in result.stderr


@pytest.mark.on_disk
def test_an_interrupted_load_says_that_the_branch_it_created_stays(
    run: Run, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Branch, "load", _interrupted)
    data = ("--data", store.parent / "people.jsonl", "--mode", "merge")
    result = run("load", store, *data, "--branch", "new", "--from", "main", "--quiet")
    assert result.exit_code == 130
    assert "nothing was written" in result.stderr
    assert "branch new was created for this load and stays" in result.stderr
    assert run("branch", "list", "--uri", store).stdout == "main\nnew\n"


@pytest.mark.parametrize("verb", ["mutate", "load"])
def test_an_interrupt_before_and_after_a_write_tells_whether_it_happened(
    run: Run, store: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    data = store.parent / "more.jsonl"
    data.write_text('{"type": "Person", "data": {"name": "yan"}}\n')
    load = ("load", "--data", data, "--mode", "append", "--quiet")
    command = (*(load if verb == "load" else MUTATION), "--store", store)
    with monkeypatch.context() as patched:
        patched.setattr(Graph, "branch", _interrupted)
        before = run(*command)
    assert (before.exit_code, before.stderr) == (130, "error: interrupted; nothing was written\n")
    with monkeypatch.context() as patched:
        patched.setattr(Graph, "close", _interrupted)
        after = run(*command)
    newest = run("commit", "list", store, "--limit", "1").stdout.split()[0]
    assert after.exit_code == 130
    assert after.stderr == f"error: interrupted; commit {newest} was written\n"


def test_an_interrupted_read_only_stops(
    run: Run, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Graph, "branches", _interrupted)
    result = run("branch", "list", "--uri", store)
    assert (result.exit_code, result.stderr) == (130, "error: interrupted\n")


@pytest.mark.slow
@pytest.mark.on_disk
def test_a_real_interrupt_during_a_load_writes_nothing(run: Run, store: Path) -> None:
    before = run("commit", "list", store).stdout
    data = store.parent / "endless.jsonl.gz"
    # More lines than anybody can read in the time of this test.
    lines = b'{"type":"Person","data":{"name":"zoe"}}\n' * 2**18
    data.write_bytes(gzip.compress(lines) * 1000)
    program = Path(sys.executable).with_name("omnigraph")
    command = [str(program), "load", str(store), "--data", str(data), "--mode", "append"]
    terminal, end = pty.openpty()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=end) as process:
        os.close(end)
        said = b""
        try:
            while not re.search(rb"[1-9][\d,]* records", said):
                said += os.read(terminal, 4096)
            process.send_signal(signal.SIGINT)
            said += _rest(terminal)
            output, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    os.close(terminal)
    assert process.returncode == 130, said
    assert output == b""
    assert b"error: interrupted; nothing was written" in said
    assert run("commit", "list", store).stdout == before


def _rest(terminal: int) -> bytes:
    """What is still said until the other side is closed, which reads as an error."""
    said = b""
    with suppress(OSError):
        while data := os.read(terminal, 4096):
            said += data
    return said


def _interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt
