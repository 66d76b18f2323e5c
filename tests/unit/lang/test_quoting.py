from __future__ import annotations

from omnigraph.lang.diagnostics import Collector, Finding, Severity
from omnigraph.lang.quoting import sanitize_text
from omnigraph.lang.source_text import Source, Span


def test_short_printable_text_is_shown_as_it_is() -> None:
    assert sanitize_text("größer als 日本") == "größer als 日本"


def test_long_text_is_cut() -> None:
    assert sanitize_text("a b" * 40) == ("a b" * 40)[:60] + "…"


def test_characters_that_a_terminal_would_obey_are_escaped() -> None:
    assert sanitize_text("a\x1b[31m\0\n\u2028\u200b") == "a\\x1b[31m\\x00\\n\\u2028\\u200b"


def test_every_message_and_hint_is_short_and_printable() -> None:
    collector = Collector(Source("a.gq", ""))
    name = "n" * 10_000
    collector.report_error("Q001", Span(0, 0), f"'{name}' holds \x1b", hint=f"not '{name}'")
    (found,) = collector.list_diagnostics()
    assert found.message == f"'{name[:60]}…' holds \\x1b"
    assert found.hint == f"not '{name[:60]}…'"
    finding = Finding("S030", Severity.ERROR, "a b " * 10_000, "node:A")
    assert len(finding.message) < 1000
