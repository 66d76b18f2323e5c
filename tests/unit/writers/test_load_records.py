"""Loads: the ids of records, duplicates by mode, old ids, and what a change says."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import KeyConflictError, LoadError, WriteRefusedError
from omnigraph.writers.graph_change import WriteMode
from omnigraph.writers.inputs import Dialect
from omnigraph.writers.load_records import LoadMode
from unit.writers.loaded_rows import accept, edge, load, loaded_rows, model_rows, node

MODES = tuple(LoadMode)
SLOTS = accept(
    "node Slot { tenant: String  number: I64  @key(tenant, number) }  edge Next: Slot -> Slot"
)
PEOPLE = accept(
    """
    node P { name: String @key  age: I32 }
    node Note { text: String? }
    edge Knows: P -> P { since: Date? }
    edge Likes: P -> P { rank: I32  @key(@src, @dst, rank) }
    """
)


def jsonl(*records: dict[str, Any]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def person(name: Any, age: Any = 1, **more: Any) -> dict[str, Any]:
    return {"type": "P", **more, "data": {"name": name, "age": age}}


def note(entity_id: str | None, text: str = "") -> dict[str, Any]:
    given_id = {} if entity_id is None else {"id": entity_id}
    return {"type": "Note", **given_id, "data": {"text": text}}


# ---- ids ----


def test_a_key_derives_the_id_and_ends_come_first_in_that_of_an_edge() -> None:
    records = [
        person("ann"),
        {"edge": "Likes", "from": "ann", "to": 'b"b', "data": {"rank": 7}},
    ]
    change = load(records, PEOPLE).change
    assert change[node("P")].rows["__id"].to_pylist() == ["ann"]
    assert change[edge("Likes")].rows["__id"].to_pylist() == ['["ann","b\\"b","7"]']
    assert change[node("P")].rows.schema == change[node("P")].shape.schema


def test_keyless_entities_get_fresh_ids_where_none_is_given() -> None:
    rows = load([note("a"), note(None), note(None)], PEOPLE).change[node("Note")].rows
    ids = rows["__id"].to_pylist()
    assert ids[0] == "a"
    assert [len(each) for each in ids[1:]] == [26, 26]
    assert len(set(ids)) == 3


def test_fresh_ids_need_no_look_at_the_table_and_given_ones_do() -> None:
    fresh = load([note(None)], PEOPLE).change[node("Note")]
    assert fresh.mode is WriteMode.UPSERT
    assert fresh.known_copies is not None
    assert fresh.known_copies.num_rows == 0
    given = load([note(None), note("a")], PEOPLE).change[node("Note")]
    assert (given.mode, given.known_copies) == (WriteMode.INSERT, None)


def test_a_given_id_must_be_the_derived_one() -> None:
    load([person("ann", id="ann")], PEOPLE)
    with pytest.raises(LoadError) as failure:
        load(jsonl(person("ann", id="ann"), person("bob", id="b")), PEOPLE)
    assert str(failure.value) == "input line 2: id 'b' does not match its canonical @key id 'bob'"
    assert (failure.value.record, failure.value.count) == (2, 1)
    assert failure.value.violations[0].entity_id == "bob"


@pytest.mark.parametrize("dialect", list(Dialect))
def test_the_id_of_a_keyed_edge_has_one_spelling_only(dialect: Dialect) -> None:
    for given_id in ("m1", '["a", "b","1"]', "a"):
        record = {"edge": "likes", "id": given_id, "from": "a", "to": "b", "data": {"rank": 1}}
        with pytest.raises(LoadError, match="does not match its canonical @key id"):
            load([record], PEOPLE, dialect=dialect)


def test_a_key_that_cannot_identify_is_refused_with_its_place() -> None:
    schema = "node N { f: F64 @key }"
    table = pa.table({"f": [1.5, None]})
    with pytest.raises(LoadError, match="table row 2: non-nullable property 'f' has null"):
        load(table, schema, type="N")


# ---- old ids ----


def slot(given_id: str, tenant: str, number: int) -> dict[str, Any]:
    return {"type": "Slot", "data": {"id": given_id, "tenant": tenant, "number": number}}


def test_an_old_id_is_made_canonical_and_edges_follow() -> None:
    text = jsonl(
        {"edge": "Next", "from": "acme", "to": "8"},
        slot("acme", "acme", 7),
        slot("8", "beta", 8),
        {"edge": "Next", "from": "other", "to": "acme"},
    )
    change = load(text, SLOTS, dialect=Dialect.COMPATIBLE).change
    assert change[node("Slot")].rows["__id"].to_pylist() == ['["7","acme"]', '["8","beta"]']
    ends = change[edge("Next")].rows.select(["__src", "__dst"]).to_pylist()
    assert ends == [
        {"__src": '["7","acme"]', "__dst": '["8","beta"]'},
        {"__src": "other", "__dst": '["7","acme"]'},
    ]


def test_an_old_id_may_have_zeros_before_its_number() -> None:
    codes = accept("node Code { value: I32 @key }")
    given = {"00042": 42, "-007": -7, "000": 0}
    records = [
        {"type": "Code", "data": {"id": old, "value": value}} for old, value in given.items()
    ]
    change = load(jsonl(*records), codes, dialect=Dialect.COMPATIBLE).change
    assert change[node("Code")].rows["__id"].to_pylist() == ["42", "-7", "0"]
    for wrong in ("0042", "00x42", "42.0", ""):
        record = {"type": "Code", "data": {"id": wrong, "value": 41}}
        with pytest.raises(LoadError, match="does not match"):
            load(jsonl(record), codes, dialect=Dialect.COMPATIBLE)


def test_an_old_id_of_two_nodes_is_ambiguous() -> None:
    text = jsonl(slot("acme", "acme", 7), slot("x", "x", 1), slot("acme", "acme", 8))
    with pytest.raises(LoadError, match="id 'acme' is ambiguous: it names two entities") as failure:
        load(text, SLOTS, dialect=Dialect.COMPATIBLE)
    assert (failure.value.record, failure.value.count) == (1, 2)


def test_an_id_that_spells_nothing_of_the_key_is_refused() -> None:
    with pytest.raises(LoadError, match="record 2: id 'zed' does not match"):
        load(jsonl(slot("acme", "acme", 7), slot("zed", "beta", 8)), SLOTS,
             dialect=Dialect.COMPATIBLE)  # fmt: skip


OLD = accept("node D { d: Date  f: F64  t: DateTime  b: Bool  @key(d, f, t, b) }  edge E: D -> D")
spellings = st.sampled_from(
    ["1970-01-02", "1", "01", "1970-1-2", "1.0", "1.50", "1.5", "15e-1", '"1970-01-02"', "true",
     "True", "false", "1970-01-01T00:00:00.001Z", '"1"', "0", "-0", "null", "[1]", "x", ""]
)  # fmt: skip
REFUSED_OLD_IDS = "ambiguous|does not match its canonical"
old_records = st.fixed_dictionaries(
    {
        "id": spellings,
        "d": st.sampled_from([0, 1]),
        "f": st.sampled_from([0.0, 1.0, 1.5]),
        "t": st.sampled_from([0, 1]),
        "b": st.booleans(),
    }
).map(lambda data: {"type": "D", "data": data})


@given(st.lists(old_records, min_size=1, max_size=3), spellings)
def test_old_ids_are_understood_as_the_model_understands_them(
    records: list[dict[str, Any]], end: str
) -> None:
    text = jsonl(*records, {"edge": "E", "from": end, "to": "x", "data": {"id": "e"}})
    try:
        wanted: Any = model_rows(text, OLD, is_strict=False)
    except LoadError:
        # Of records that are refused for both reasons either may be met first.
        with pytest.raises(LoadError, match=REFUSED_OLD_IDS):
            load(text, OLD, mode=LoadMode.MERGE, dialect=Dialect.COMPATIBLE)
        return
    ids = [row["@id"] for row in wanted["node:D"]]
    if len(set(ids)) < len(ids):
        with pytest.raises(WriteRefusedError, match="@unique violation on D"):
            load(text, OLD, mode=LoadMode.MERGE, dialect=Dialect.COMPATIBLE)
        return
    found = loaded_rows(load(text, OLD, mode=LoadMode.MERGE, dialect=Dialect.COMPATIBLE))
    assert found == wanted


# ---- duplicates ----


@pytest.mark.parametrize("mode", MODES)
def test_one_load_cannot_hold_a_key_twice(mode: LoadMode) -> None:
    text = jsonl(person("ann"), person("eve"), person("eve", 2), person("eve", 3))
    with pytest.raises(WriteRefusedError) as failure:
        load(text, PEOPLE, mode=mode)
    assert type(failure.value) is WriteRefusedError
    assert str(failure.value) == (
        "input line 3: @unique violation on P.name: eve (also input line 2)"
    )
    assert failure.value.count == 1


def test_a_composite_key_is_shown_by_its_members() -> None:
    text = jsonl(*[{"type": "Slot", "data": {"tenant": "acme", "number": 7}}] * 2)
    with pytest.raises(
        WriteRefusedError, match=r"@unique violation on Slot\.\(number, tenant\): 7, acme"
    ):
        load(text, SLOTS)
    likes = {"edge": "Likes", "from": "a", "to": "b", "data": {"rank": 1}}
    with pytest.raises(WriteRefusedError, match=r"Likes\.\(@src, @dst, rank\): a, b, 1"):
        load([likes, likes], PEOPLE)


@pytest.mark.parametrize("mode", [LoadMode.APPEND, LoadMode.PATCH, LoadMode.OVERWRITE])
def test_a_given_id_cannot_come_twice(mode: LoadMode) -> None:
    text = jsonl(note("a"), note("n2"), note("n2"), note("n1"), note("n1"), note("n1"))
    with pytest.raises(WriteRefusedError) as failure:
        load(text, PEOPLE, mode=mode)
    # Nothing exists yet, and a merge would quietly keep the last one: neither is said.
    assert not isinstance(failure.value, KeyConflictError)
    assert str(failure.value).splitlines() == [
        "input line 3: Note 'n2' is there twice (also input line 2)",
        "input line 5: Note 'n1' is there twice (also input line 4)",
    ]
    assert failure.value.count == 2
    assert [each.entity_id for each in failure.value.violations] == ["n2", "n1"]
    assert "merge" not in (failure.value.hint or "")


def test_the_last_record_of_an_id_wins_in_a_merge_and_the_others_stay_visible() -> None:
    loaded = load(
        jsonl(note("a", "1"), note("b", "2"), note(None, "3"), note("a", "4")),
        PEOPLE,
        mode=LoadMode.MERGE,
    )
    change = loaded.change[node("Note")]
    text = change.shape.columns["text"]
    assert change.rows[text].to_pylist() == ["2", "3", "4"]
    assert change.batches[0][text].to_pylist() == ["1", "2", "3", "4"]
    assert change.origins is not None
    assert change.origins.location_of(2) == "input line 4"
    assert loaded.nodes == {"Note": 4}


# ---- the change ----


def test_the_mode_of_a_load_is_that_of_its_changes() -> None:
    wanted = {
        LoadMode.APPEND: WriteMode.INSERT,
        LoadMode.MERGE: WriteMode.UPSERT,
        LoadMode.PATCH: WriteMode.UPSERT,
        LoadMode.OVERWRITE: WriteMode.OVERWRITE,
    }
    for mode, write_mode in wanted.items():
        records = [person("ann"), note("n", "x"), {"edge": "Knows", "from": "a", "to": "b"}]
        change = load(records, PEOPLE, mode=mode).change
        assert change[node("P")].mode is change[node("Note")].mode is write_mode
        assert list(change) == [node("Note"), node("P"), edge("Knows")]


def test_counts_are_input_records() -> None:
    loaded = load([person("ann"), person("bob"), {"edge": "knows", "from": "a", "to": "b"}], PEOPLE)
    assert (loaded.nodes, loaded.edges) == ({"P": 2}, {"Knows": 1})
    empty = load("\n\n", PEOPLE)
    assert (empty.change, empty.nodes, empty.edges) == ({}, {}, {})


def test_an_empty_table_empties_its_type_only_when_it_overwrites() -> None:
    table = pa.table({"text": pa.array([], pa.string())})
    assert load(table, PEOPLE, type="Note").change == {}
    loaded = load(table, PEOPLE, type="Note", mode=LoadMode.OVERWRITE)
    assert loaded.change[node("Note")].rows.num_rows == 0
    assert (loaded.nodes, loaded.edges) == ({}, {})


@pytest.mark.parametrize("dialect", list(Dialect))
def test_a_missing_required_value_is_refused(dialect: Dialect) -> None:
    text = jsonl(
        person("ann"), {"type": "P", "data": {"age": None, "name": None}}, person("c", None)
    )
    with pytest.raises(LoadError) as failure:
        load(text, PEOPLE, dialect=dialect)
    assert (failure.value.record, failure.value.count) == (2, 3)
    assert "2: non-nullable property 'name' has null or invalid values (P)" in str(failure.value)
    assert {violation.property for violation in failure.value.violations} == {"name", "age"}


def test_ends_that_are_missing_in_a_table_are_refused() -> None:
    table = pa.table({"from": ["a", None], "to": ["b", "c"]})
    with pytest.raises(LoadError, match="table row 2: requires field 'from'"):
        load(table, PEOPLE, type="Knows")


def test_a_large_table_is_loaded_without_a_look_at_single_rows() -> None:
    count = 200_000
    table = pa.table(
        {"name": pa.array(np.arange(count)).cast(pa.string()), "age": np.arange(count)}
    )
    change = load(table, PEOPLE, type="P").change[node("P")]
    assert change.rows.num_rows == count
    assert change.rows["__id"][count - 1].as_py() == str(count - 1)
    twice = load(pa.concat_tables([table, table]), PEOPLE, type="P").change[node("P")]
    assert twice.require_distinct is not None, "of so many rows it is asked while they are written"
    with pytest.raises(WriteRefusedError) as failure:
        twice.require_distinct()
    assert (len(failure.value.violations), failure.value.count) == (20, count)
