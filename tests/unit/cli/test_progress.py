from __future__ import annotations

import io
import sys

import pytest

from omnigraph.bulk.task_runner import Stage
from omnigraph.cli.views.progress_bars import show_load_bars


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_how_far_a_load_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with show_load_bars() as bars:
        assert bars.records is not None
        assert bars.stages is not None
        bars.records(1200)
        bars.stages(Stage("write", 3, 9))
    assert "3/9 units" in terminal.getvalue()
    assert "loading" in terminal.getvalue()
    assert "1,200 records" in terminal.getvalue()


def test_nothing_is_shown_where_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with show_load_bars() as bars:
        assert bars.records is None
        assert bars.stages is None
    assert stream.getvalue() == ""
