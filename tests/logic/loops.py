"""Loops: their titles, and the placeholders they replace."""

from __future__ import annotations

import re
from dataclasses import dataclass

from logic.case import CaseError
from logic.sections import Section

_LOOP = re.compile(r"loop \$([a-z_][A-Za-z0-9_]*) ([0-9]+) ([0-9]+)")
_FOREACH = re.compile(r"foreach \$([a-z_][A-Za-z0-9_]*)((?: [A-Za-z0-9_.-]+)+)")
_PLACEHOLDER = re.compile(r"\$\{([^}]*)\}?")
_ITERATIONS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Substitution:
    """A loop variable and its value in one iteration."""

    variable: str
    value: str

    def apply(self, text: str, *, line: int) -> str:
        """The text with the placeholder replaced; other placeholders are refused."""
        for found in _PLACEHOLDER.finditer(text):
            if found.group(0) != f"${{{self.variable}}}":
                raise CaseError(f"unknown placeholder '{found.group(0)}'", line=line)
        return text.replace(f"${{{self.variable}}}", self.value)


def parse_loop_title(section: Section) -> tuple[str, tuple[str, ...]]:
    """The variable and the values of a loop."""
    if section.body.strip():
        raise CaseError(f"'{section.kind}' takes no body", line=section.line)
    each = _FOREACH.fullmatch(section.title)
    if each is not None:
        return each.group(1), tuple(each.group(2).split())
    counted = _LOOP.fullmatch(section.title)
    if counted is None:
        raise CaseError(f"malformed section '{section.title}'", line=section.line)
    start, end = int(counted.group(2)), int(counted.group(3))
    if start >= end:
        raise CaseError("the range of the loop is empty", line=section.line)
    if end - start > _ITERATIONS_MAX:
        raise CaseError(f"a loop has at most {_ITERATIONS_MAX} iterations", line=section.line)
    return counted.group(1), tuple(str(value) for value in range(start, end))
