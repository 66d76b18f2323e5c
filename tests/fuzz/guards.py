"""Random guards: conditions on the rows of each type, chosen by the text of a query."""

from __future__ import annotations

from random import Random
from typing import Final

from omnigraph.query.row_limits import RowLimits

CONDITIONS: Final = {
    "Person": (
        "$it.age > 1 or $it.age is null",
        '$it.active = true or $it.mood = "glad"',
        'not ($it.slug in ["b", "é", "d"])',
        '$it.tags is null or not ("b" in $it.tags)',
        "$it.score <= $it.ratio",
        "$it.vec is not null",
    ),
    "Place": (
        "$it.size is not null",
        '$it.name = "a" or $it.code = "b" or $it.code = "c"',
        'not ($it.code starts_with "a")',
    ),
    "Thing": (
        '$it.label is not null and $it.label != "b"',
        "$it.weight >= 1",
        '$it.made is null or $it.made < date("2020-01-02")',
    ),
}


def write_limits(text: str) -> RowLimits:
    """What the reader of a text sees: of most types not all nodes."""
    dice = Random(text)
    return RowLimits(
        "",
        (),
        tuple(
            (name, tuple(dice.sample(conditions, dice.choice((1, 1, 2)))))
            for name, conditions in CONDITIONS.items()
            if dice.random() < 0.7
        ),
    )
