from __future__ import annotations

import pytest

from omnigraph.lang.source_text import Position, Source, Span


def test_a_place_is_counted_in_lines_characters_and_bytes() -> None:
    source = Source("a.gq", "añ\nb€c\r\n")
    assert source.locate(0) == Position(1, 1, 0)
    assert source.locate(2) == Position(1, 3, 3)
    assert source.locate(5) == Position(2, 3, 8)
    assert source.locate(99) == Position(3, 1, 11)
    assert source.get_line(2) == "b€c"


@pytest.mark.parametrize("text", ["", "abc", "é" * 3000, "a€𝄞\ud800" * 1000, "x" * 2047 + "é"])
def test_bytes_are_exact_at_every_place(text: str) -> None:
    source = Source("a.gq", text)
    places = [*range(0, len(text), 97), 1023, 1024, 1025, 2048, len(text)]
    for place in (each for each in places if each <= len(text)):
        assert source.to_byte_offset(place) == len(text[:place].encode("utf-8", "surrogatepass"))


def test_spans_are_joined() -> None:
    assert Span(3, 5).join(Span(1, 4)) == Span(1, 5)
