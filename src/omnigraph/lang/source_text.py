"""Source texts, and positions in them."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from omnigraph.lang.tree_nodes import tree_node

# Counting the bytes before a place takes at most this many characters.
_BLOCK_CHARACTERS = 1024


@tree_node(frozen=True, slots=True)
class Span:
    """A half-open range of characters."""

    start: int
    end: int

    def join(self, other: Span) -> Span:
        """The smallest span that covers both."""
        return Span(min(self.start, other.start), max(self.end, other.end))


# A tree built by hand, not by a parser, has no place in a text.
NO_SPAN = Span(0, 0)


@dataclass(frozen=True, slots=True)
class Position:
    """A place as people and editors count it: line and column from 1, byte from 0."""

    line: int
    column: int
    byte: int


class Source:
    """A named text with fast offset-to-position lookup."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text

    def __repr__(self) -> str:
        return f"Source({self.name!r}, {len(self.text)} characters)"

    @cached_property
    def _line_starts(self) -> list[int]:
        starts = [0]
        find = self.text.find
        at = find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = find("\n", at + 1)
        return starts

    @cached_property
    def _is_ascii(self) -> bool:
        return self.text.isascii()

    @cached_property
    def _block_bytes(self) -> list[int]:
        """Where each block of characters starts in the UTF-8 form of the text."""
        blocks = range(0, len(self.text), _BLOCK_CHARACTERS)
        lengths = (_count_bytes(self.text[at : at + _BLOCK_CHARACTERS]) for at in blocks)
        return list(accumulate(lengths, initial=0))

    def locate(self, offset: int) -> Position:
        """Line, column and byte of a character offset; offsets past the end mean the end."""
        offset = max(0, min(offset, len(self.text)))
        line = bisect_right(self._line_starts, offset)
        column = offset - self._line_starts[line - 1] + 1
        return Position(line, column, self.to_byte_offset(offset))

    def to_byte_offset(self, offset: int) -> int:
        """Where a character starts in the UTF-8 form of the text."""
        if self._is_ascii:
            return offset
        block = min(offset, len(self.text)) // _BLOCK_CHARACTERS
        rest = self.text[block * _BLOCK_CHARACTERS : offset]
        return self._block_bytes[block] + _count_bytes(rest)

    def get_line(self, number: int) -> str:
        """One line, counted from 1, without its line end."""
        start = self._line_starts[number - 1]
        end = self._line_starts[number] - 1 if number < len(self._line_starts) else len(self.text)
        return self.text[start:end].rstrip("\r")


def _count_bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
