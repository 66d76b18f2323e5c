"""The embedder without a model."""

from __future__ import annotations

import math
import struct

import pytest

from omnigraph.embedding.mock_embedder import compute_mock_embedding


def test_equal_texts_have_equal_vectors_and_others_do_not() -> None:
    assert compute_mock_embedding("sea", 8) == compute_mock_embedding("sea", 8)
    assert compute_mock_embedding("sea", 8) != compute_mock_embedding("see", 8)


@pytest.mark.parametrize("dimension", [1, 2, 8, 100])
def test_a_vector_has_length_one_and_32_bit_components(dimension: int) -> None:
    vector = compute_mock_embedding("Überraschung", dimension)
    assert len(vector) == dimension
    assert math.isclose(math.hypot(*vector), 1, abs_tol=1e-6)
    assert struct.unpack(f"<{dimension}f", struct.pack(f"<{dimension}f", *vector)) == vector


def test_components_follow_the_published_recipe() -> None:
    """By hand for the empty text, whose seed is the offset of the hash."""
    mask = 2**64 - 1
    state = 14695981039346656037
    raw = []
    for _ in range(3):
        state ^= (state << 13) & mask
        state ^= state >> 7
        state ^= (state << 17) & mask
        raw.append(state / 2**64 * 2 - 1)
    length = math.hypot(*raw)
    assert compute_mock_embedding("", 3) == pytest.approx(
        [value / length for value in raw], abs=1e-6
    )


def test_the_seed_hashes_every_byte() -> None:
    """FNV-1a of "a" is a published test value."""
    state = 0xAF63DC4C8601EC8C
    mask = 2**64 - 1
    state ^= (state << 13) & mask
    state ^= state >> 7
    state ^= (state << 17) & mask
    sign = 1.0 if state / 2**64 > 0.5 else -1.0
    assert compute_mock_embedding("a", 1) == (sign,)
    first, second = compute_mock_embedding("a", 2)
    following = state ^ ((state << 13) & mask)
    following ^= following >> 7
    following ^= (following << 17) & mask
    expected = (following / 2**64 * 2 - 1) / (state / 2**64 * 2 - 1)
    assert second / first == pytest.approx(expected, rel=1e-5)
