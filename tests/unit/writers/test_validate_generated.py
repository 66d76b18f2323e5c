"""Random schemas, graphs and writes: the validator and the model must agree."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.errors import WriteRefusedError
from omnigraph.writers.graph_change import WriteMode
from unit.writers.validation_world import ValidationWorld, Write

EXAMPLES = 300

IDS = ["a", "b", "c", "d"]
# Values that obey every rule below, and some that break one.
TAME: dict[str, st.SearchStrategy[Any]] = {
    "k": st.sampled_from(IDS),
    "l": st.integers(0, 1),
    "t": st.none() | st.sampled_from(["a", "b", "c"]),
    "n": st.none() | st.integers(0, 2),
    "m": st.none() | st.integers(5, 7),
    "f": st.none() | st.sampled_from([0.0, -0.0, 0.5, 1e-9]),
    "e": st.none() | st.sampled_from(["on", "off"]),
    "d": st.none() | st.integers(0, 2),
    "b": st.none() | st.booleans(),
}
WILD = TAME | {
    "t": TAME["t"] | st.sampled_from(["x, y", "é", ""]),
    "n": TAME["n"] | st.sampled_from([-1, 3]),
    "m": TAME["m"] | st.just(8),
    "f": TAME["f"] | st.sampled_from([0.75, 1e20]),
    "e": TAME["e"] | st.just("of"),
}
TYPES = {
    "t": "String",
    "n": "I32",
    "m": "I64",
    "f": "F64",
    "e": "enum(on, off)",
    "d": "Date",
    "b": "Bool",
}
NODE_KEYS = ["@key(k)", "@key(k, l)", ""]
UNIQUES = ["t", "n", "f", "d", "e, b", "t, f", "k, l", "k", "m, t"]
EDGE_UNIQUES = ["@src", "@dst", "@src, @dst", "t", "@src, n"]
RULES = ["@range(n, 0..2)", "@range(f, ..0.5)", "@range(m, ..7)", '@check(t, "^[a-c]$")']
CARDS = ["", "@card(0..1)", "@card(1..2)", "@card(1..)"]

schemas = st.builds(
    lambda nodes, edges: "\n".join([*nodes, *edges]),
    st.tuples(
        *(
            st.builds(
                lambda name, key, uniques, rules: (
                    f"node {name} {{ k: String  l: I32  "
                    + "  ".join(f"{each}: {TYPES[each]}?" for each in TYPES)
                    + f" {key} "
                    + " ".join(f"@unique({each})" for each in uniques)
                    + " "
                    + " ".join(rules)
                    + " }"
                ),
                st.just(name),
                st.sampled_from(NODE_KEYS),
                st.lists(st.sampled_from(UNIQUES), unique=True, max_size=2),
                st.lists(st.sampled_from(RULES), unique=True, max_size=2),
            )
            for name in ("A", "B")
        )
    ),
    st.tuples(
        *(
            st.builds(
                lambda name, ends, card, key, uniques: (
                    f"edge {name}: {ends} {card} {{ t: String?  n: I32?  e: enum(on, off)?  "
                    + ("@key(@src, @dst) " if key else "")
                    + " ".join(f"@unique({each})" for each in uniques)
                    + " }"
                ),
                st.just(name),
                st.just(ends),
                st.sampled_from(CARDS),
                st.booleans(),
                st.lists(st.sampled_from(EDGE_UNIQUES), unique=True, max_size=2),
            )
            for name, ends in (("P", "A -> B"), ("Q", "A -> A"))
        )
    ),
)

ENDS = st.integers(0, 12)


def entities(name: str, values: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    """Entities of a type; ends are numbers that stand for nodes, see `_with_ends`."""
    ids = {"@id": st.sampled_from([*IDS, "e", "f"])}
    if name in ("A", "B"):
        return st.fixed_dictionaries(ids | values)
    ends = {"@src": ENDS, "@dst": ENDS}
    return st.fixed_dictionaries(ids | ends | {each: values[each] for each in ("t", "n", "e")})


@pytest.mark.slow
@settings(max_examples=EXAMPLES)
@given(data=st.data(), schema=schemas)
def test_every_write_is_accepted_or_refused_as_by_the_model(
    data: st.DataObject, schema: str
) -> None:
    world = ValidationWorld(schema, _valid_graph(data, schema))
    types = data.draw(st.sets(st.sampled_from("ABPQ"), min_size=1), "types")
    values = WILD if data.draw(st.sampled_from([False, False, True]), "is wild") else TAME
    writes: dict[str, Write] = {}
    for name in sorted(types):
        writes[name] = _write(data, world, name, values=values, others=writes)
    expected = world.model_message(writes)
    refused = world.refusal(writes)
    if expected is None or refused is None:
        assert expected == (refused and refused.message)
    else:
        _agree(expected, refused)


def _agree(expected: str, refused: WriteRefusedError) -> None:
    """The same kind of violation first, and the model's first one among all of that kind."""
    messages = [each.message for each in refused.violations]
    assert _kind(messages[0]) == _kind(expected)
    if refused.violations[0].rule in ("enum", "range", "check", "cardinality"):
        assert messages[0].startswith(expected)
    if refused.count == len(messages):
        assert any(expected in message for message in messages)
    assert refused.message.startswith(messages[0])


def _kind(message: str) -> str:
    """A message up to the value: the rule, the type and the members."""
    if " not found in " in message:
        return "reference"
    pattern = r"(@\w+ violation on [^:]*|invalid enum value).*?( for \w+\.\w+)?( \(.*\))?$"
    found = re.match(pattern, message)
    assert found is not None, message
    return found.group(1) + (found.group(2) or "")


def _valid_graph(data: st.DataObject, schema: str) -> dict[str, list[dict[str, Any]]]:
    """Entities that obey the schema: every drawn one that the model admits beside the others."""
    world = ValidationWorld(schema)
    for name in "ABPQ":
        for drawn in data.draw(st.lists(entities(name, TAME), max_size=8), f"committed {name}"):
            write = {name: Write([_with_ends(world, name, drawn, {})])}
            if world.model_message(write) is None:
                world.put(write)
    return {name: list(table.values()) for name, table in _tables(world).items()}


def _write(
    data: st.DataObject,
    world: ValidationWorld,
    name: str,
    *,
    values: dict[str, st.SearchStrategy[Any]],
    others: dict[str, Write],
) -> Write:
    mode = data.draw(st.sampled_from(WriteMode), f"mode {name}")
    drawn = data.draw(st.lists(entities(name, values), max_size=5), f"rows {name}")
    records = [world.entity(name, _with_ends(world, name, each, others)) for each in drawn]
    committed = _tables(world)[name]
    if mode is WriteMode.INSERT:
        records = [each for each in records if each["@id"] not in committed]
    rows = {each["@id"]: each for each in records}
    batches = []
    if data.draw(st.booleans(), f"batches {name}"):
        size = data.draw(st.integers(1, 5), f"batch size {name}")
        batches = [records[i : i + size] for i in range(0, len(records), size)]
    gone = [each for each in committed if each not in rows]
    deleted = data.draw(st.sets(st.sampled_from(gone)) if gone else st.just(set()), f"gone {name}")
    return Write(list(rows.values()), mode, sorted(deleted), batches)


def _with_ends(
    world: ValidationWorld, name: str, drawn: dict[str, Any], others: dict[str, Write]
) -> dict[str, Any]:
    """An edge whose ends are nodes, committed or written; now and then one that is missing."""
    ends = {"P": {"@src": "A", "@dst": "B"}, "Q": {"@src": "A", "@dst": "A"}}.get(name, {})
    found = dict(drawn)
    for end, node_type in ends.items():
        ids = list(_tables(world)[node_type])
        ids += [each["@id"] for each in others[node_type].rows] if node_type in others else []
        place = drawn[end]
        found[end] = ids[place % len(ids)] if ids and place else "nobody"
    return found


def _tables(world: ValidationWorld) -> dict[str, dict[str, Any]]:
    return {**world.store.nodes, **world.store.edges}
