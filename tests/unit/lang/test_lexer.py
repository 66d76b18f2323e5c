from __future__ import annotations

import pytest

from omnigraph.lang.lexer import TokenKind, lex
from omnigraph.lang.source_text import Source


def kinds(text: str) -> list[tuple[TokenKind, str]]:
    return [(token.kind, token.text) for token in lex(Source("a.gq", text)).tokens[:-1]]


@pytest.mark.parametrize("text", ["1e5", "1E5", "1e-5", "1.5e+3", "10px", "0x1f", "1_000", "2d"])
def test_digits_that_go_on_with_letters_are_one_bad_number(text: str) -> None:
    assert kinds(text) == [(TokenKind.BAD_NUMBER, text)]


def test_digits_before_marks_stay_numbers() -> None:
    assert kinds("1..5 1.5-2") == [
        (TokenKind.INTEGER, "1"),
        (TokenKind.PUNCTUATION, ".."),
        (TokenKind.INTEGER, "5"),
        (TokenKind.FLOAT, "1.5"),
        (TokenKind.PUNCTUATION, "-"),
        (TokenKind.INTEGER, "2"),
    ]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_line_comment_ends_at_every_kind_of_line_end(end: str) -> None:
    tokens = lex(Source("a.gq", f"// one{end}word // two{end}"))
    assert [token.text for token in tokens.tokens] == ["word", ""]
    assert [comment.text for comment in tokens.comments] == ["// one", "// two"]
