"""Cuts a `.gqt` file into its header lines and sections."""

from __future__ import annotations

import re
from dataclasses import dataclass

from logic.case import CaseError, Place

_SECTION_PREFIX = "--- "
_HEADER_LINE = re.compile(r"# ([a-z_]+): (\S.*)")


@dataclass(frozen=True, slots=True)
class Section:
    """A section: the words after `--- `, and the lines up to the next section."""

    title: str
    lines: tuple[str, ...]
    place: Place

    @property
    def line(self) -> int:
        """The number of its first line, counted from 1."""
        return self.place.header + 1

    @property
    def kind(self) -> str:
        """The first word of the title."""
        return self.title.split(" ", 1)[0]

    @property
    def body(self) -> str:
        """The lines as one text, without blank lines around them."""
        return "\n".join(self.lines).strip("\n")

    @property
    def rows(self) -> tuple[str, ...]:
        """The lines that are not blank."""
        return tuple(line for line in self.lines if line.strip())


def read_text(data: bytes) -> str:
    """The text of a file; anything but UTF-8 with `\\n` line ends is refused."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as failure:
        raise CaseError(f"not UTF-8: {failure.reason}", line=1) from failure
    if "\r" in text:
        raise CaseError("carriage return", line=text[: text.index("\r")].count("\n") + 1)
    return text


def cut(text: str) -> tuple[list[tuple[str, str, int]], list[Section]]:
    """The header entries as (key, value, line number), and the sections."""
    lines = text.split("\n")
    starts = [index for index, line in enumerate(lines) if line.startswith(_SECTION_PREFIX)]
    first = starts[0] if starts else len(lines)
    headers = [
        _header_entry(line, number)
        for number, line in enumerate(lines[:first], start=1)
        if line.strip()
    ]
    ends = [*starts[1:], len(lines)]
    return headers, [_section(lines, start, end) for start, end in zip(starts, ends, strict=False)]


def _header_entry(line: str, number: int) -> tuple[str, str, int]:
    found = _HEADER_LINE.fullmatch(line)
    if found is None:
        raise CaseError(f"expected '# key: value', found {line!r}", line=number)
    return found.group(1), found.group(2), number


def _section(lines: list[str], start: int, end: int) -> Section:
    title = lines[start].removeprefix(_SECTION_PREFIX)
    if not title or title != title.strip() or "  " in title:
        raise CaseError("a section title has single blanks only", line=start + 1)
    return Section(title, tuple(lines[start + 1 : end]), Place(start, end))
