from __future__ import annotations

import pytest

from omnigraph.lang.diagnostic_views import describe_diagnostic, render_human
from omnigraph.lang.diagnostics import Collector, Diagnostic
from omnigraph.lang.source_text import Source, Span


def diagnostic(text: str, spanned: str, *, hint: str | None = None) -> Diagnostic:
    start = text.index(spanned)
    collector = Collector(Source("a.gq", text))
    collector.report_error("Q001", Span(start, start + len(spanned)), "it is wrong", hint=hint)
    return collector.list_diagnostics()[0]


def test_the_caret_stands_under_the_text_it_means() -> None:
    assert render_human(diagnostic("one\ntwo three", "three", hint="say four")).splitlines() == [
        "a.gq:2:5: error[Q001]: it is wrong",
        "  2 | two three",
        "    |     ^^^^^",
        "    = say four",
    ]


@pytest.mark.parametrize(
    ("line", "shown", "caret"),
    [
        ('"日本語", x!', '"日本語", x!', "          ^^"),
        ("\tx!", "\tx!", "\t^^"),
        ("\x1b[1m x!", "\\x1b[1m x!", "        ^^"),
        ("\u2028 x!", "\\u2028 x!", "       ^^"),
    ],
)
def test_the_caret_counts_columns_of_a_terminal(line: str, shown: str, caret: str) -> None:
    assert render_human(diagnostic(line, "x!")).splitlines()[1:] == [
        f"  1 | {shown}",
        f"    | {caret}",
    ]


def test_a_long_line_is_cut_around_the_place() -> None:
    rendered = render_human(diagnostic("a" * 1_000_000 + "!" + "b" * 1_000_000, "!"))
    assert len(rendered) < 500
    excerpt, caret = rendered.splitlines()[1:]
    assert excerpt[caret.index("^")] == "!"


def test_json_positions_count_bytes_too() -> None:
    assert describe_diagnostic(diagnostic("é x", "x"))["position"] == {
        "line": 1,
        "column": 3,
        "byte": 3,
    }
