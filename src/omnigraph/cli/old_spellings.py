"""Verbs as they were once spelled: what they are called now, and the warning that says so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

Arguments = Sequence[str]


@dataclass(frozen=True, slots=True)
class _OldSpelling:
    """An old spelling, its successor, and the options that the old one gave by itself."""

    words: tuple[str, ...]
    successor: str
    remark: str = ""
    is_meant: Callable[[Arguments], bool] = lambda _: True
    defaults: tuple[tuple[str, str], ...] = ()


def _make_option_test(*options: str) -> Callable[[Arguments], bool]:
    """Whether one of these options is given; the verb of that name today takes none of them."""
    spelled = tuple(f"{each}=" for each in options)
    return lambda arguments: any(each in options or each.startswith(spelled) for each in arguments)


# `query lint` also runs a query called `lint`, and `check` verifies a graph: what they are given
# separates the old meaning from the new one.
_SPELLINGS: Final = (
    _OldSpelling(("read",), "query"),
    _OldSpelling(("change",), "mutate"),
    _OldSpelling(
        ("ingest",),
        "load",
        defaults=(("--from", "main"), ("--mode", "merge"), ("--dialect", "compatible")),
    ),
    _OldSpelling(("query", "lint"), "lint", is_meant=_make_option_test("--schema")),
    _OldSpelling(("query", "check"), "lint", is_meant=_make_option_test("--schema")),
    _OldSpelling(
        ("check",),
        "lint",
        remark="; 'check' verifies a graph",
        is_meant=_make_option_test("--query", "--schema"),
    ),
)


def translate_spelling(arguments: Arguments) -> tuple[list[str], str | None]:
    """A command line as it is spelled now, and a warning if it was spelled otherwise."""
    for each in _SPELLINGS:
        length = len(each.words)
        if tuple(arguments[:length]) == each.words and each.is_meant(arguments):
            rest = list(arguments[length:])
            given = [
                word
                for option, value in each.defaults
                if not _make_option_test(option)(rest)
                for word in (option, value)
            ]
            warning = f"'{' '.join(each.words)}' is now '{each.successor}'{each.remark}"
            return [each.successor, *given, *rest], warning
    return list(arguments), None
