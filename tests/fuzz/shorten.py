"""Makes a failing life as short as it can be: steps, records, properties and lines fall away."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from fuzz.lives import Life, Load, Step
from fuzz.reads import Ask

Item = TypeVar("Item")
Fails = Callable[[Life], bool]

# A shortening that goes on for longer is short enough.
TRIES_MAX: Final = 3_000


class _Spent(Exception):
    """No more tries."""


def shortened(life: Life, fails: Fails) -> Life:
    """The shortest life on the way down that still fails."""
    best = life
    tries = 0

    def try_one(other: Life) -> bool:
        nonlocal best, tries
        tries += 1
        if tries > TRIES_MAX:
            raise _Spent
        if not fails(other):
            return False
        best = other
        return True

    try:
        while True:
            before = best
            for way in (_bounds, _steps, _records, _properties, _lines):
                _follow(way, lambda: best, try_one)
            if best == before:
                return best
    except _Spent:
        return best


def _follow(
    way: Callable[[Life], Iterator[Life]], best: Callable[[], Life], try_one: Fails
) -> None:
    """Go one way down as long as it leads down."""
    is_down = True
    while is_down:
        is_down = False
        start = best()
        for other in way(start):
            if try_one(other):
                is_down = True
                break


def _bounds(life: Life) -> Iterator[Life]:
    if life.is_small:
        yield replace(life, is_small=False)


def _steps(life: Life) -> Iterator[Life]:
    yield from (replace(life, steps=tuple(each)) for each in _without_parts(life.steps))


def _records(life: Life) -> Iterator[Life]:
    for place, step in enumerate(life.steps):
        if isinstance(step, Load):
            for lines in _without_parts(step.lines.splitlines()):
                yield _replaced(life, place, Load("\n".join(lines)))


def _properties(life: Life) -> Iterator[Life]:
    for place, step in enumerate(life.steps):
        if isinstance(step, Load):
            lines = step.lines.splitlines()
            for number, line in enumerate(lines):
                for record in _poorer(json.loads(line)):
                    poorer = json.dumps(record, ensure_ascii=False)
                    changed = [*lines[:number], poorer, *lines[number + 1 :]]
                    yield _replaced(life, place, Load("\n".join(changed)))


def _poorer(record: dict[str, object]) -> Iterator[dict[str, object]]:
    data = record["data"]
    assert isinstance(data, dict)
    keys = {"slug", "code"}
    if set(data) - keys:
        yield record | {"data": {name: data[name] for name in data if name in keys}}
    for name in set(data) - keys:
        yield record | {"data": {other: data[other] for other in data if other != name}}


def _lines(life: Life) -> Iterator[Life]:
    for place, step in enumerate(life.steps):
        if isinstance(step, Ask):
            for text in _shorter_texts(step.text):
                yield _replaced(life, place, _asking(step, text))


def _asking(ask: Ask, text: str) -> Ask:
    """The query with another text; if any rows did before, they still do."""
    unlimited = "\n".join(line for line in text.splitlines() if not line.startswith("limit "))
    if ask.unlimited is None or unlimited == text:
        return replace(ask, text=text, unlimited=None, limit=None)
    return replace(ask, text=text, unlimited=unlimited)


def _shorter_texts(text: str) -> Iterator[str]:
    """The text without a line, or without the lines of a pair of braces."""
    lines = text.splitlines()
    for first in range(1, len(lines) - 1):
        depth = 0
        for last in range(first, len(lines) - 1):
            depth += lines[last].count("{") - lines[last].count("}")
            if depth < 0:
                break
            if depth == 0:
                yield "\n".join([*lines[:first], *lines[last + 1 :]])
                break


def _replaced(life: Life, place: int, step: Step) -> Life:
    return replace(life, steps=(*life.steps[:place], step, *life.steps[place + 1 :]))


def _without_parts(items: Sequence[Item]) -> Iterator[list[Item]]:
    """The items without a run of them, the long runs first."""
    length = len(items) // 2
    while length:
        for start in range(0, len(items), length):
            yield [*items[:start], *items[start + length :]]
        length //= 2
