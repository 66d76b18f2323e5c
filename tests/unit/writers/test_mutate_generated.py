"""Generated mutations do to real tables what they do to the model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import WriteRefusedError
from unit.writers.mutation_world import NOW, MutationWorld
from unit.writers.test_mutate import SCHEMA, SEED

_PARAMS = """$i: I64?, $j: I64, $f: F64?, $g: F64, $s: String, $t: String?, $d: Date?,
    $at: DateTime?, $b: Bool?, $blob: Blob?, $vec: Vector(2)?, $names: [String],
    $numbers: [I64]?, $days: [Date]?"""

_names = st.sampled_from(["ann", "bob", "cyd", "dov", "eve", "zed"])
_dates = st.sampled_from(["1970-01-01", "1980-01-02", "-0044-03-15", "2024-02-29"])
_params: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "i": st.none() | st.integers(-1, 45) | st.just(2**31),
        "j": st.integers(-1, 45) | st.just(2**40),
        "f": st.none() | st.sampled_from([0.0, -1.5, 40.0, 1e39]),
        "g": st.sampled_from([0.1, 1.5, 40.0, 7.0]),
        "s": _names,
        "t": st.none() | st.sampled_from(["", "Dr", "Mr", "é☃"]),
        "d": st.none() | _dates,
        "at": st.none() | st.just("2020-01-01T10:00:00.5Z"),
        "b": st.none() | st.booleans(),
        "blob": st.sampled_from([None, "base64:", "base64:AAEC", "base64:AAE", "http://x"]),
        "vec": st.none() | st.just([0.5, -1]),
        "names": st.lists(_names, max_size=3),
        "numbers": st.none() | st.lists(st.integers(-2, 2), max_size=3),
        "days": st.none() | st.lists(_dates, max_size=2),
    }
)

# The values that each property of Person may be given.
_VALUES = {
    "title": ['"Dr"', '"Mr"', "$t", "$s"],
    "email": ['"x"', "$t", "$s"],
    "age": ["40", "$i", "$f", "null"],
    "small": ["0", "$i"],
    "height": ["1.7", "40", "$f", "$i"],
    "weight": ["$g", "$j", "80.5"],
    "born": ['date("1970-01-02")', "$d"],
    "seen": ["now()", "$at", 'datetime("1969-12-31T23:59:59.999Z")'],
    "isOk": ["true", "$b", "$i > 3 or $b", "not ($f is null)", "$j = $g"],
    "mood": ['"glad"', '"sad"', "$t"],
    "tags": ["[]", '["a", $s]', "$names", "[$t]"],
    "days": ["$days", '[date("1970-01-03")]'],
    "times": ['[datetime("2020-01-01T00:00:00Z")]', "[$at]"],
    "marks": ["$numbers", "[1, $j]", "[$i]", "[$g]"],
    "vec": ["$vec", "[1, 0.5]", "[$f, 1]"],
    "photo": ["$blob", "$t"],
}
# The same, from the entity as it is.
_OLD_VALUES = {
    "title": ["upper(title)", 'title + "."', "email"],
    "email": ['coalesce(email, "none")', "email"],
    "age": ["age + 1", "coalesce(age, 0) + 1", "small / 2", "age * 2147483648"],
    "height": ["weight * 2", "height / 0", "if(age > 3, 1 / age, height)"],
    "isOk": ["age > 30", "not isOk"],
    "tags": ["tags", "$names"],
    "seen": ["seen"],
    "marks": ["marks"],
}
_PERSON_CONDITIONS = [
    "true",
    "$b",
    'name = "ann"',
    "name = $s",
    "@id in $names",
    "age = 40",
    "email = $s",
    "age > $i",
    "not (age = $j)",
    "height < $f",
    "title = $t",
    'title starts_with "D" or mood = "sad"',
    "isOk",
    "born <= $d",
    "seen = $at or seen is null",
    'tags contains "a"',
    "weight >= $g and name != $s",
]
_EDGE_CONDITIONS = ["true", "from = $s", "@dst in $names", "@src = $s and to = $s", '@id = "k1"']
_end = st.sampled_from(["$s", '"ann"', '"bob"'])


@st.composite
def _assignments(draw: st.DrawFn, names: list[str], *, reads_old: bool = False) -> str:
    old = _OLD_VALUES if reads_old else {}
    values = {name: _VALUES[name] + old.get(name, []) for name in names}
    return ", ".join(f"{name}: {draw(st.sampled_from(values[name]))}" for name in names)


@st.composite
def _person(draw: st.DrawFn) -> str:
    names = draw(st.lists(st.sampled_from(sorted(_VALUES)), max_size=4, unique=True))
    verb = draw(st.sampled_from(["insert", "create", "replace", "upsert", "upsert"]))
    others = [name for name in names if name != "title"]
    known = ["title"] if verb != "upsert" or draw(st.booleans()) else []
    rest = draw(_assignments([*known, *others], reads_old=verb == "upsert"))
    return f"{verb} Person {{ name: {draw(_end)}, {rest} }}"


@st.composite
def _updated_person(draw: st.DrawFn) -> str:
    names = draw(st.lists(st.sampled_from(sorted(_VALUES)), min_size=1, max_size=3, unique=True))
    where = draw(st.sampled_from(_PERSON_CONDITIONS))
    assignments = draw(_assignments(names, reads_old=True))
    return f"update Person set {{ {assignments} }} where {where}"


_writes = st.one_of(
    _person(),
    _updated_person(),
    _updated_person(),
    st.sampled_from(
        [
            "insert Note { n: $i text: $t }",
            "update Note set { n: $j } where n < 3",
            "update Note set { text: $s } where n = $j or text = $t",
            "insert Slot { tenant: $s slot: $g x: $i }",
            "insert Slot { tenant: $s slot: $j }",
            "upsert Slot { tenant: $s, slot: $j, x: coalesce(x, 0) + 1 }",
            "update Knows set { since: $at } where @src = $s",
            "update Mentors set { level: level + $j } where @dst in $names",
            "update Mentors set { level: $i } where @src = $s",
            "upsert Mentors { from: $s, to: $s, level: 1 }",
            "update Slot set { x: $j } where tenant = $s",
            'insert About { from: "n1" to: $s weight: $f }',
            'insert Knows { from: "bob" to: $t since: $at }',
        ]
    ),
    st.builds("insert Knows {{ from: {} to: {} since: $at }}".format, _end, _end),
    st.builds("insert Mentors {{ from: {} to: {} level: $i }}".format, _end, _end),
)
_deletes = st.one_of(
    st.builds("delete Person where {}".format, st.sampled_from(_PERSON_CONDITIONS)),
    st.builds(
        "delete {} where {}".format,
        st.sampled_from(["Knows", "Mentors", "About", "Lives", "Twin"]),
        st.sampled_from(_EDGE_CONDITIONS),
    ),
    st.sampled_from(
        ["delete City where name = $s", 'delete City where name > "C"', "delete Note where n = $i"]
    ),
)
_bodies = (
    st.lists(_writes, min_size=1, max_size=6)
    | st.lists(_deletes, min_size=1, max_size=4)
    | st.lists(_writes | _deletes, min_size=2, max_size=8)
)
# What is looked up for several statements together is refused after what they say themselves.
_LATE = ("already exists", "missing required", "cannot be computed", "exceeds", "whole number")
_steps = st.lists(st.tuples(_bodies, _params), min_size=1, max_size=6)


@pytest.mark.slow
@given(_steps)
def test_generated_mutations_agree_with_the_model(
    steps: list[tuple[list[str], dict[str, Any]]],
) -> None:
    world = MutationWorld(SCHEMA, SEED)
    for statements, params in steps:
        text = f"query q({_PARAMS}) {{ {' '.join(statements)} }}"
        mutation, bound = world.compiled(text, params)
        theirs = _refusal(partial(world.model.copy().mutate, mutation, bound, now=NOW))
        if theirs is None:
            world.mutate(text, params)
        else:
            ours = _refusal(partial(world.validated, text, params))
            assert ours is not None
            if not any(each in text for each in _LATE for text in (theirs, ours)):
                assert _rule(theirs) in ours


def _rule(message: str) -> str:
    """The part of a message that does not depend on which of several entities is named."""
    return message.split(": ", maxsplit=1)[0] if "violation on" in message else message


def _refusal(run: Callable[[], object]) -> str | None:
    try:
        run()
    except WriteRefusedError as refusal:
        return refusal.message
    return None
