"""Generated mutations do to real tables what they do to the model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.statements import read_records
from omnigraph.errors import CompileError, WriteRefusedError
from unit.writers.mutation_world import NOW, MutationWorld
from unit.writers.test_mutate import SCHEMA, SEED

_PARAMS = """$i: I64?, $j: I64, $f: F64?, $g: F64, $s: String, $t: String?, $d: Date?,
    $at: DateTime?, $b: Bool?, $blob: Blob?, $vec: Vector(2)?, $names: [String],
    $numbers: [I64]?, $days: [Date]?,
    $rows: [{ name: String, title: String?, n: I64?, x: F64?, tags: [String]? }]"""

_names = st.sampled_from(["ann", "bob", "cyd", "dov", "eve", "zed"])
_dates = st.sampled_from(["1970-01-01", "1980-01-02", "-0044-03-15", "2024-02-29"])
_records = st.fixed_dictionaries(
    {"name": _names},
    optional={
        "title": st.none() | st.sampled_from(["", "Dr", "é☃"]),
        "n": st.none() | st.integers(-1, 45) | st.just(2**40),
        "x": st.none() | st.sampled_from([0.0, 1.5, 1e39]),
        "tags": st.lists(_names, max_size=2),
    },
)
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
        "rows": st.lists(_records, max_size=4),
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
# Patterns, the people that they bind, and an edge with a property of it.
_PATTERNS = [
    ("$p: Person { name: $s }", ["p"], None),
    ("$p: Person  $p.age > $j", ["p"], None),
    ("$p: Person  not { $p knows $_ }", ["p"], None),
    ("$p: Person  $q: Person", ["p", "q"], None),
    ("$p: Person  $p $e: knows $q", ["p", "q"], "since"),
    ("$p: Person  $p $e: mentors $q", ["p", "q"], "level"),
    ("$p: Person  $p.name in $names  $p $e: mentors $q  $q knows $p", ["p", "q"], "level"),
    ("$n: Note  $n $e: about $p", ["p"], "weight"),
]
# Values of properties that read what is bound.
_BOUND_VALUES = {
    "title": ["${0}.title", "upper(${0}.title)", "${0}.email"],
    "email": ["${0}.email", "${0}.name"],
    "age": ["${0}.age + 1", "coalesce(${0}.age, 0) + 1", "${0}.small", "${0}.weight"],
    "height": ["${0}.height", "${0}.age / 0", "if(${0}.age > 3, 1 / ${0}.age, ${0}.height)"],
    "isOk": ["${0}.age > 30", "not ${0}.isOk"],
    "mood": ["${0}.mood"],
    "tags": ["${0}.tags"],
    "marks": ["${0}.marks", "if(${0}.age > 3, [$g], null)"],
    "vec": ["${0}.vec"],
}
_BOUND_EDGE_VALUES = {
    "since": ["$at", "${0}.seen", "$e.since"],
    "level": ["$i", "${0}.age", "$e.level + 1"],
    "weight": ["$f", "${0}.weight", "null"],
}
_BOUND_KEYS = ["${0}.name", "${0}.title", '${0}.name + "2"', "${0}.email", "$s"]


@st.composite
def _bound_values(draw: st.DrawFn, people: list[str], *, without: str = "") -> str:
    names = st.sampled_from(sorted(_VALUES.keys() - {without}))
    assignments = []
    for name in draw(st.lists(names, min_size=1, max_size=3, unique=True)):
        values = _VALUES[name] + 2 * _BOUND_VALUES.get(name, [])
        value = draw(st.sampled_from(values)).format(draw(st.sampled_from(people)))
        assignments.append(f"{name}: {value}")
    return ", ".join(assignments)


@st.composite
def _action(draw: st.DrawFn, people: list[str], edge_property: str | None) -> str:
    p, q = draw(st.sampled_from(people)), draw(st.sampled_from(people))
    match draw(st.sampled_from(["update", "update", "edge", "delete", "node", "mentors", "slot"])):
        case "edge" if edge_property is not None:
            value = draw(st.sampled_from(_BOUND_EDGE_VALUES[edge_property])).format(p)
            return f"update $e set {{ {edge_property}: {value} }}"
        case "update" | "edge":
            return f"update ${p} set {{ {draw(_bound_values(people))} }}"
        case "delete":
            return "delete $e" if edge_property and draw(st.booleans()) else f"delete ${p}"
        case "node":
            verb = draw(st.sampled_from(["insert", "create", "replace", "upsert", "upsert"]))
            title = draw(st.sampled_from([f"${q}.title", f"${q}.email", "$s"]))
            known = f"title: {title}, " if verb != "upsert" or draw(st.booleans()) else ""
            key = draw(st.sampled_from(_BOUND_KEYS)).format(p)
            rest = draw(_bound_values(people, without="title"))
            return f"{verb} Person {{ name: {key}, {known}{rest} }}"
        case "mentors":
            verb = draw(st.sampled_from(["insert", "create", "replace", "upsert"]))
            source = draw(st.sampled_from([f"${p}", f"${p}.email", "$s", "$t"]))
            level = draw(st.sampled_from(["$i", f"${q}.age"]))
            return f"{verb} Mentors {{ from: {source}, to: ${q}, level: {level} }}"
        case _:
            # Rows have no order, so that the entities without a key are all equal.
            slot = f"upsert Slot {{ tenant: ${p}.name, slot: ${q}.age, x: $i }}"
            return draw(st.sampled_from([slot, 'insert Knows { from: $s to: "bob" since: $at }']))


@st.composite
def _match(draw: st.DrawFn) -> str:
    pattern, people, edge_property = draw(st.sampled_from(_PATTERNS))
    actions = draw(st.lists(_action(people, edge_property), min_size=1, max_size=3))
    return f"match {{ {pattern} }} {' '.join(actions)}"


# Values of properties that read a record.
_RECORD_VALUES = {
    "title": ["$r.title", 'coalesce($r.title, "none")', "$r.name"],
    "age": ["$r.n", "$r.n + 1"],
    "height": ["$r.x", "$r.n / $r.x"],
    "weight": ["coalesce($r.x, 1.5)"],
    "isOk": ["$r.n > 3"],
    "tags": ["$r.tags", '$r.tags + ["z"]'],
    "marks": ["[$j]", "if($r.n > 3, [1, 2], null)"],
}


@st.composite
def _record_verb(draw: st.DrawFn) -> str:
    verb = draw(st.sampled_from(["insert", "create", "replace", "upsert", "upsert"]))
    kind = draw(st.sampled_from(["person", "person", "mentors", "slot", "note"]))
    if kind == "mentors":
        level = draw(st.sampled_from(["$r.n", "$i"]))
        return f'{verb} Mentors {{ from: $r.name, to: "ann", level: {level} }}'
    if kind == "slot":
        return "upsert Slot { tenant: $r.name, slot: 1, x: coalesce(x, 0) + $r.n }"
    if kind == "note":
        return "insert Note { n: $r.n text: $r.title }"
    names = draw(st.lists(st.sampled_from(sorted(_RECORD_VALUES)), max_size=3, unique=True))
    names = [*names, *(["title"] if verb != "upsert" and "title" not in names else [])]
    old = _OLD_VALUES if verb == "upsert" else {}
    values = {name: 2 * _RECORD_VALUES[name] + _VALUES[name] + old.get(name, []) for name in names}
    given = [f"{name}: {draw(st.sampled_from(values[name]))}" for name in names]
    return f"{verb} Person {{ {', '.join(['name: $r.name', *given])} }}"


@st.composite
def _record_update(draw: st.DrawFn) -> str:
    names = draw(st.lists(st.sampled_from(sorted(_RECORD_VALUES)), max_size=3, unique=True))
    values = {name: _RECORD_VALUES[name] + _OLD_VALUES.get(name, []) for name in [*names, "title"]}
    given = [f"{name}: {draw(st.sampled_from(values[name]))}" for name in values]
    where = draw(st.sampled_from(["name = $r.name", "$r.title = name", "@id = $r.name"]))
    return f"update Person set {{ {', '.join(given)} }} where {where}"


_record_statements = st.one_of(
    _record_verb(),
    _record_verb(),
    _record_update(),
    st.sampled_from(
        [
            'update Mentors set { level: level + $r.n } where from = $r.name and to = "ann"',
            "update Slot set { x: $r.n } where slot = $r.n and tenant = $r.name",
            "update Slot set { x: coalesce(x, 0) + 1 } where slot = $r.x and tenant = $s",
            "delete Person where name = $r.title",
            "delete Person where @id = $r.name",
            'delete Mentors where @src = $r.name and @dst = "ann"',
            "delete Slot where tenant = $r.name and slot = $r.n + 1",
            "delete Note where @id = $r.name",
        ]
    ),
)
_loops = st.builds(
    lambda statements: f"for $r in $rows {{ {' '.join(statements)} }}",
    st.lists(_record_statements, min_size=1, max_size=3),
)
_looping_bodies = st.builds(
    lambda before, loops, after: [*before, *loops, *after],
    st.lists(_writes | _deletes, max_size=2),
    st.lists(_loops, min_size=1, max_size=2),
    st.lists(_writes | _deletes, max_size=2),
)
_bodies = (
    st.lists(_writes, min_size=1, max_size=6)
    | st.lists(_deletes, min_size=1, max_size=4)
    | st.lists(_writes | _deletes, min_size=2, max_size=8)
)
# A verb that follows a match would be an action of it.
_matching_bodies = st.builds(
    lambda writes, matches, rest: [*writes, *matches, *rest],
    st.lists(_writes, max_size=2),
    st.lists(_match(), min_size=1, max_size=2),
    st.lists(_updated_person() | _deletes | _match(), max_size=2),
)
# What is looked up for several statements together is refused after what they say themselves.
_LATE = ("already exists", "missing required", "cannot be computed", "exceeds", "whole number")
# Rows of a match are looked at value by value, where the model takes them one by one.
_LATE_IN_MATCHES = (*_LATE, "two rows give", "cannot assign null", "not allowed", "base64")
_Steps: TypeAlias = list[tuple[list[str], dict[str, Any]]]


@pytest.mark.slow
@given(st.lists(st.tuples(_bodies, _params), min_size=1, max_size=6))
def test_generated_mutations_agree_with_the_model(steps: _Steps) -> None:
    _compare_with_model(steps, _LATE)


@pytest.mark.slow
@given(st.lists(st.tuples(_matching_bodies, _params), min_size=1, max_size=6))
def test_generated_matches_agree_with_the_model(steps: _Steps) -> None:
    _compare_with_model(steps, _LATE_IN_MATCHES)


@pytest.mark.slow
@given(st.lists(st.tuples(_looping_bodies, _params), min_size=1, max_size=6))
def test_generated_loops_agree_with_the_model(steps: _Steps) -> None:
    _compare_with_model(steps, _LATE_IN_MATCHES)


def _compare_with_model(steps: _Steps, late: tuple[str, ...]) -> None:
    world = MutationWorld(SCHEMA, SEED)
    for statements, params in steps:
        text = f"query q({_PARAMS}) {{ {' '.join(statements)} }}"
        try:
            mutation, bound = world.compiled(text, params)
        except CompileError as refusal:
            # Statements of a loop whose order would matter: nothing is compared.
            if "another statement of this 'for'" not in str(refusal):
                raise
            continue
        records = read_records(mutation, params)
        alone = world.model.copy()
        theirs = _refusal(partial(alone.mutate, mutation, bound, now=NOW, records=records))
        if theirs is None:
            world.mutate(text, params)
        else:
            ours = _refusal(partial(world.validated, text, params))
            assert ours is not None
            if not any(each in text for each in late for text in (theirs, ours)):
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
