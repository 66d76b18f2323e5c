"""Tokens near others, compared with one pair at a time."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from omnigraph.rows import vocabulary as module
from omnigraph.rows.text_analysis import is_within
from omnigraph.rows.vocabulary import ABSENT, Vocabulary, find_near_tokens


def some_tokens(random: Random, count: int) -> list[str]:
    letters = "abcdé東😀"
    found = {
        "".join(random.choice(letters) for _ in range(random.randrange(1, 7))) for _ in range(count)
    }
    return sorted(found)


@pytest.mark.parametrize("edits", [0, 1, 2, 3, 10, 2**32 - 1])
@pytest.mark.parametrize("block_tokens", [3, 10_000])
def test_near_tokens_are_those_within_the_distance(
    edits: int, block_tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BLOCK_TOKENS", block_tokens)
    random = Random(edits)
    tokens = some_tokens(random, 300)
    for wanted in ([], ["abc"], some_tokens(random, 3), ["a" * 30]):
        expected = [
            place
            for place, token in enumerate(tokens)
            if any(is_within(token, each, edits) for each in wanted)
        ]
        assert Vocabulary(pa.array(tokens)).find_near(wanted, edits).tolist() == expected
        assert find_near_tokens(pa.array(tokens), wanted, edits).tolist() == expected


def test_a_token_is_found_by_itself() -> None:
    tokens = some_tokens(Random(1), 200)
    vocabulary = Vocabulary(pa.array(tokens))
    assert [vocabulary.find_code(token) for token in tokens] == list(range(len(tokens)))
    for absent in ("", "zz", "\U0010ffff", "aaaaaaaaa"):
        assert vocabulary.find_code(absent) == ABSENT
    assert Vocabulary(pa.array([], pa.utf8())).find_code("a") == ABSENT
    assert Vocabulary(pa.array([], pa.utf8())).find_near(["a"], 2).tolist() == []
