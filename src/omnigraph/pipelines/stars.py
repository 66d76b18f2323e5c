"""Stars in expressions: all columns of a record, of which those that only we know are none.

Spark would put every column of a frame in place of a star, and beside those of a record a frame has
the numbers by which it is found again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

_TOKEN: Final = re.compile(
    r"""(?P<nothing>\s+|--[^\n]*|/\*.*?\*/)
    |[rR]'[^']*'|[rR]"[^"]*"
    |'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`]|``)*`
    |\w+|.""",
    re.DOTALL | re.VERBOSE,
)
_STAR: Final = "*"
_OPENS: Final = ("(", ",")
_CLOSES: Final = (")", ",")
# It counts rows, and no columns.
_COUNT: Final = "count"


def expand_stars(sql: str, names: Sequence[str]) -> str | None:
    """An expression with names in place of the stars among arguments; None if one is elsewhere."""
    tokens = [each for each in _TOKEN.finditer(sql) if each.lastgroup != "nothing"]
    parts, end = [], 0
    for star, before, after in _find_stars([each.group() for each in tokens]):
        if before not in _OPENS or after not in _CLOSES:
            return None
        parts += [sql[end : tokens[star].start()], ", ".join(names)]
        end = tokens[star].end()
    return "".join([*parts, sql[end:]])


def _find_stars(tokens: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """The stars that stand for columns, with what is before and behind each.

    One between two values multiplies them, and one behind a point is the fields of a struct.
    """
    for at, token in enumerate(tokens):
        if token != _STAR:
            continue
        before = tokens[at - 1] if at else ""
        after = tokens[at + 1] if at + 1 < len(tokens) else ""
        is_value = before in ("", *_OPENS) or after in ("", *_CLOSES)
        is_count = before == "(" and at > 1 and tokens[at - 2].lower() == _COUNT
        if is_value and before != "." and not is_count:
            yield at, before, after
