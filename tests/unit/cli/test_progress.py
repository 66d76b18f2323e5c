from __future__ import annotations

import io
import sys

import pytest

from omnigraph.cli.views.progress import progress_bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_how_far_a_load_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress_bar() as progressed:
        assert progressed is not None
        progressed(1200)
    assert "loading" in terminal.getvalue()
    assert "1,200 records" in terminal.getvalue()


def test_nothing_is_shown_where_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with progress_bar() as progressed:
        assert progressed is None
    assert stream.getvalue() == ""
