"""The shell as a user has it: a process at a pseudo-terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

# Generous: what is waited for comes in milliseconds unless the machine is busy.
WAIT_S = 60.0
PROMPT = "main>"
CONTROLS = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]|\r")
PROGRAM = "import sys; from omnigraph.cli import main; sys.argv[0] = 'omnigraph'; main()"


class Terminal:
    """A program at a terminal: what it prints since the last time, and keys for it."""

    def __init__(self, arguments: list[str], environment: dict[str, str]) -> None:
        self._fd, own = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *arguments],
            env=environment,
            stdin=own,
            stdout=own,
            stderr=own,
            start_new_session=True,
        )
        os.close(own)
        self._shown = ""

    def read_until(self, text: str) -> str:
        """What is shown up to a text and with it."""
        end = time.monotonic() + WAIT_S
        while text not in self._shown:
            assert time.monotonic() < end, f"{text!r} did not come: {self._shown!r}"
            ready, _, _ = select.select([self._fd], [], [], 1.0)
            if ready:
                self._shown += CONTROLS.sub("", os.read(self._fd, 65_536).decode(errors="replace"))
        found, _, self._shown = self._shown.partition(text)
        return found + text

    def press(self, keys: str) -> None:
        """Press keys."""
        os.write(self._fd, keys.encode())

    def close(self) -> int:
        """Wait for the end of the program; its exit code."""
        # The other end is closed when the program ends.
        with suppress(OSError):
            while os.read(self._fd, 65_536):
                pass
        os.close(self._fd)
        return self.process.wait(WAIT_S)


@pytest.fixture
def terminal(store: Path, tmp_path: Path) -> Iterator[Terminal]:
    environment = dict(os.environ) | {
        "OMNIGRAPH_HOME": str(tmp_path / "home"),
        "PROMPT_TOOLKIT_NO_CPR": "1",
        "TERM": "xterm",
        "COLUMNS": "100",
        "LINES": "40",
    }
    environment.pop("OMNIGRAPH_GRAPH", None)
    opened = Terminal(["shell", str(store), "--timing"], environment)
    yield opened
    # A failed test leaves no process.
    opened.process.kill()
    opened.process.wait()


@pytest.mark.slow
@pytest.mark.on_disk
def test_the_shell_completes_edits_remembers_and_times_at_a_terminal(
    terminal: Terminal, tmp_path: Path
) -> None:
    terminal.read_until(PROMPT)
    # The type is completed, and Enter begins a line of a body that is not whole.
    terminal.press("match { $p: Per\t")
    terminal.read_until("$p: Person")
    terminal.press(" }\r")
    terminal.read_until("...")
    terminal.press("return { $p.name as name } order { name }\r\r")
    shown = terminal.read_until("time: ")
    assert [name in shown for name in ("ada", "bob", "eve")] == [True] * 3
    terminal.read_until(PROMPT)
    terminal.press("\\set who bob\r")
    terminal.read_until(PROMPT)
    terminal.press("match { $p: Person $p.name = $who } return { $p.name as found };\r")
    assert "bob" in terminal.read_until("time: ").partition("found\n")[2]
    terminal.read_until(PROMPT)
    # A mistake is reported, and the shell goes on.
    terminal.press("match { $p: Persn } return { $p.name };\r")
    terminal.read_until("unknown node type 'Persn'")
    terminal.read_until(PROMPT)
    # Up, up and up again: the input before the mistake and the one before that.
    terminal.press("\x1b[A")
    terminal.read_until("Persn")
    terminal.press("\x1b[A")
    terminal.read_until("as found")
    terminal.press("\x03")
    terminal.read_until(PROMPT)
    terminal.press("\\explain match { $p: Person } return { $p.name as n };\r")
    terminal.read_until("plan of shell")
    terminal.press("\\format csv\r")
    terminal.press("match { $p: Person } return { $p.name as n } order { n } limit 1;\r")
    terminal.read_until("n\nada\n")
    # Before the prompt, the terminal itself would take the key.
    terminal.read_until(PROMPT)
    terminal.press("\x04")
    assert terminal.close() == 0
    assert "Persn" in (tmp_path / "home" / "shell_history").read_text()
