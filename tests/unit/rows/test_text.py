"""Text analysis and edit distance."""

from __future__ import annotations

from random import Random

import pytest
import snowballstemmer

from omnigraph.rows.text_analysis import STOP_WORDS, TOKEN_CHARACTERS_MAX, analyze_text, is_within


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", []),
        ("The quick, brown FOX!", ["quick", "brown", "fox"]),
        ("running runs ran", ["run", "run", "ran"]),
        ("snake_case kebab-case it's", ["snake", "case", "kebab", "case", "s"]),
        ("Café crème, Ærø, Łódź, Straße", ["cafe", "creme", "aero", "lodz", "strass"]),
        ("ｆｕｌｌ ﬁt x²", ["full", "fit", "x2"]),
        ("İstanbul", ["istanbul"]),
        ("йод 東京 42", ["йод", "東京", "42"]),
        ("to be or not to be", []),
    ],
)
def test_a_text_becomes_tokens(text: str, tokens: list[str]) -> None:
    assert analyze_text(text) == tokens


def test_stop_words_are_dropped_before_stemming() -> None:
    assert len(STOP_WORDS) == 33
    assert analyze_text(" ".join(STOP_WORDS)) == []
    assert analyze_text("being such") == ["be"]


def test_long_tokens_are_dropped() -> None:
    assert analyze_text("x" * TOKEN_CHARACTERS_MAX) == ["x" * TOKEN_CHARACTERS_MAX]
    assert analyze_text("x" * (TOKEN_CHARACTERS_MAX + 1)) == []


@pytest.mark.parametrize(
    ("left", "right", "distance"),
    [
        ("", "", 0),
        ("cat", "cat", 0),
        ("cat", "bat", 1),
        ("cat", "cats", 1),
        ("cat", "ct", 1),
        ("ab", "ba", 2),
        ("kitten", "sitting", 3),
        ("", "abc", 3),
        ("flaw", "lawn", 2),
    ],
)
def test_a_text_is_within_its_edit_distance(left: str, right: str, distance: int) -> None:
    for limit in range(5):
        assert is_within(left, right, limit) == (limit >= distance)
        assert is_within(right, left, limit) == (limit >= distance)


def test_no_ending_has_a_digit() -> None:
    """Words that end with a digit are not stemmed, as stemming would not change them."""
    random = Random(7)
    stem = snowballstemmer.stemmer("english").stemWord
    endings = ["", "s", "ing", "ed", "ies", "ational", "ly", "y", "ful", "eed", "sses"]
    for _ in range(2_000):
        letters = "".join(random.choice("abcdeiouys") for _ in range(random.randrange(8)))
        word = letters + random.choice(endings) + random.choice("0123456789٣²")
        assert stem(word) == word


def test_a_word_is_stemmed_the_same_the_second_time() -> None:
    assert (
        analyze_text("Relational running") == analyze_text("Relational running") == ["relat", "run"]
    )
