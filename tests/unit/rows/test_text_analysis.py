"""Tokens of whole columns, compared with those of one text at a time."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from omnigraph.rows import text_analysis as module
from omnigraph.rows.comparison import Values
from omnigraph.rows.text_analysis import analyze_text, tokenize_texts

# Separators and letters of one to four bytes, and what lower case and folding change.
PIECES = [
    "running", "Cats", "Straße", "ΑΣ", "ΑΣx", "—", " ", "_", "-", "é", "ﬁt", "İstanbul", "東京",
    "x²", "\u00a0", "it's", "the", "  ", "K", "a" * 41, "A" * 40, "é" * 41, "😀", "\u0301", "й",
    "doc12", "٣", "\0", "\n", "𝔘nicode",
]  # fmt: skip


def assert_agrees(texts: Values) -> None:
    found = tokenize_texts(texts)
    tokens: list[list[str]] = [[] for _ in range(len(texts))]
    for text, code in zip(found.texts.tolist(), found.codes.tolist(), strict=True):
        tokens[text].append(found.vocabulary[code])
    assert tokens == [analyze_text(text or "") for text in texts.to_pylist()]
    assert len(set(found.vocabulary)) == len(found.vocabulary)


@pytest.mark.parametrize("block_bytes", [1, 300, 10**6])
@pytest.mark.parametrize("seed", range(3))
def test_a_column_has_the_tokens_of_its_texts(
    seed: int, block_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BLOCK_BYTES", block_bytes)
    random = Random(seed)
    texts = [
        None
        if random.random() < 0.1
        else "".join(random.choice(PIECES) for _ in range(random.randrange(9)))
        for _ in range(400)
    ]
    assert_agrees(pa.array(texts, pa.utf8()))
    assert_agrees(pa.array(texts, pa.large_utf8())[7:300])
    assert_agrees(pa.chunked_array([pa.array(texts)[3:50], pa.array(texts)[50:]]))


@pytest.mark.parametrize(
    "texts", [[], [None], ["", ""], ["the"], [None, "cats"], ["cats", None], ["-"], ["a-b", "c"]]
)
def test_columns_without_much_in_them(texts: list[str | None]) -> None:
    assert_agrees(pa.array(texts, pa.utf8()))
    assert_agrees(pa.chunked_array([], pa.utf8()))


def test_whoever_waits_can_stop_it() -> None:
    class Stopped(Exception):
        pass

    def stop() -> None:
        raise Stopped

    with pytest.raises(Stopped):
        tokenize_texts(pa.array(["cats"]), check=stop)
