"""Loads and exports of the model: dialects, values, ids, modes."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest

from model import ModelGraph
from omnigraph.errors import KeyConflictError, LoadError, WriteRefusedError
from unit.model_world import SCHEMA, SEED, graph_of, library

Dialect = Literal["strict", "compatible"]
BOTH: tuple[Dialect, ...] = ("strict", "compatible")


def refused(
    graph: ModelGraph,
    records: str,
    fragment: str,
    *,
    mode: Literal["overwrite", "append", "merge"] = "append",
    dialect: Dialect = "strict",
) -> WriteRefusedError:
    """A load must fail with the fragment and leave the graph as it is."""
    before = graph.export()
    with pytest.raises(WriteRefusedError) as failure:
        graph.load(records, mode=mode, dialect=dialect)
    assert fragment in str(failure.value)
    assert graph.export() == before
    return failure.value


def node(value: Any, property_type: str, dialect: Dialect) -> Any:
    """What a property keeps of a JSON value."""
    graph = graph_of(f"node N {{ p: {property_type}? }}")
    record = json.dumps({"type": "N", "data": {"p": value}})
    graph.load(record, mode="append", dialect=dialect)
    (found,) = graph.nodes["N"].values()
    return found["p"]


# ---- framing ----


def test_the_compatible_dialect_reads_any_stream_of_values() -> None:
    record = {"type": "Author", "data": {"handle": "eve", "name": "Eve"}}
    other = {"type": "Author", "data": {"handle": "fay", "name": "Fay"}}
    text = json.dumps(record, indent=2) + json.dumps(other)
    graph = graph_of(SCHEMA)
    assert graph.load(text, mode="append", dialect="compatible") == ({"Author": 2}, {})
    assert refused(graph_of(SCHEMA), text, "line 1").code == "load_error"


def test_strict_counts_lines_and_compatible_counts_records() -> None:
    text = (
        '\r\n{"type":"Book","data":{"isbn":"b","title":"t","state":"out"}}\r\n\n{"type":"Nope"}\n'
    )
    for dialect, number in (("strict", 4), ("compatible", 2)):
        failure = refused(graph_of(SCHEMA), text, "unknown", dialect=dialect)  # type: ignore[arg-type]  # a literal
        assert isinstance(failure, LoadError)
        assert failure.record == number


AUTHOR = '"type":"Author","data":{"handle":"eve","name":"Eve"}'
EDGE = '"edge":"Wrote","from":"ann","to":"b3"'


@pytest.mark.parametrize(
    ("record", "fragment"),
    [
        ("[1]", "one object"),
        ('{"data":{}}', "expected 'type' or 'edge' field"),
        (f"{{{AUTHOR}}} {{{AUTHOR}}}", "line 1"),
        (f'{{{AUTHOR},"edge":"Wrote"}}', "exactly one of 'type' or 'edge'"),
        (f'{{{AUTHOR},"x":1}}', "unknown top-level field 'x'"),
        (f'{{{AUTHOR},"from":"ann"}}', "unknown top-level field 'from'"),
        (f'{{{AUTHOR},"_rowid":1}}', "reserved physical state '_rowid'"),
        ('{"type":"Author","data":{"handle":"eve","name":"Eve","x":1}}', "unknown input field 'x'"),
        ('{"type":"Author","data":{"_tombstone":1}}', "reserved physical state '_tombstone'"),
        ('{"type":"Author","type":"Book"}', "duplicate JSON member 'type'"),
        ('{"type":"Author","data":{"a":{"b":1,"b":2}}}', "duplicate JSON member 'b'"),
        ('{"type":"Author","data":3}', "'data' must be an object"),
        ('{"type":"author","data":{}}', "unknown type 'author'"),
        ('{"edge":"Nope","from":"a","to":"b"}', "unknown edge 'Nope'"),
        ('{"type":3}', "field 'type' must be a string"),
        ('{"edge":"Wrote","from":"ann"}', "requires field 'to'"),
        ('{"edge":"Wrote","from":"ann","to":3}', "field 'to' must be a string"),
        (f'{{{EDGE},"data":{{"src":"ann"}}}}', "reserved structural state 'src'"),
        (f'{{{EDGE},"id":3}}', "field 'id' must be a string"),
        (f'{{{EDGE},"id":"e","data":{{"id":"e"}}}}', "both beside the type and in 'data'"),
        ('{"type":"Author","data":{"handle":"eve"}}', "non-nullable property 'name' has null"),
        ('{"type":"Author","data":{"handle":"eve","name":"E","score":"x"}}', "expects Float64"),
        ('{"type":"Author","data":{"handle":"eve","name":"E","score":NaN}}', "NaN is not a number"),
        (
            '{"type":"Author","id":"x","data":{"handle":"eve","name":"E"}}',
            "canonical @key id 'eve'",
        ),
        (
            '{"edge":"Mentors","id":"x","from":"bob","to":"cyd"}',
            "does not match its canonical @key id",
        ),
    ],
)
def test_a_strict_load_refuses(record: str, fragment: str) -> None:
    failure = refused(library(), record, fragment)
    assert isinstance(failure, LoadError)
    assert failure.record == 1


@pytest.mark.parametrize(
    "record",
    [
        f'{{{AUTHOR},"x":1,"from":"ann","edge":"Nope"}}',
        '{"type":"Author","data":{"handle":"eve","name":"Eve","x":1,"_tombstone":2}}',
        '{"type":"Author","type":"Author","data":{"handle":"x","handle":"eve","name":"Eve"}}',
        '{"type":"Author","data":{"handle":"eve","name":"Eve","score":"high"}}',
        '{"type":"Author","data":{"id":"eve","handle":"eve","name":"Eve"}}',
    ],
)
def test_a_compatible_load_overlooks(record: str) -> None:
    graph = graph_of(SCHEMA)
    graph.load(record, mode="append", dialect="compatible")
    assert graph.nodes["Author"]["eve"]["score"] is None


def test_a_compatible_edge_ignores_an_id_that_is_no_string() -> None:
    graph = library()
    graph.load(f'{{{EDGE},"data":{{"id":3,"src":"x"}}}}', mode="append", dialect="compatible")
    assert "new1" in graph.edges["Wrote"]
    record = '{"type":"Author","data":{"id":3,"handle":"eve","name":"E"}}'
    refused(graph, record, "'id' must be a string", dialect="compatible")


def test_data_that_is_no_object_acts_as_empty_when_compatible() -> None:
    graph = graph_of("node N { x: I64? }")
    graph.load('{"type":"N","data":[1]}', mode="append", dialect="compatible")
    assert list(graph.nodes["N"]) == ["new1"]


def test_a_declared_id_is_a_property() -> None:
    graph = graph_of("node N { id: I64? }")
    graph.load(
        '{"type":"N","id":"a","data":{"id":3}} \n {"type":"N","data":{"id":4}}', mode="append"
    )
    assert {id_: found["id"] for id_, found in graph.nodes["N"].items()} == {"a": 3, "new1": 4}


# ---- values ----


@pytest.mark.parametrize("dialect", BOTH)
@pytest.mark.parametrize(
    ("property_type", "value", "expected"),
    [
        ("Date", "2024-01-02", 19724),
        ("Date", 19724, 19724),
        ("DateTime", "2024-01-02T02:00:00+02:00", 19724 * 86_400_000),
        ("DateTime", 5, 5),
        ("U64", 2**64 - 1, 2**64 - 1),
        ("F64", 3, 3.0),
        ("F32", 0.1, 0.10000000149011612),
        ("[String]", [], ()),
        ("[Date]", ["1970-01-02", 2], (1, 2)),
        ("Vector(2)", [1, 0.5], (1.0, 0.5)),
        ("Blob", "base64:", b""),
        ("Bool", True, True),
        ("I64", None, None),
    ],
)
def test_a_json_value_is_kept(
    property_type: str, value: Any, expected: Any, dialect: Dialect
) -> None:
    kept = node(value, property_type, dialect)
    assert (kept, type(kept)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("property_type", "value", "compatible"),
    [
        ("I32", "3", None),
        ("I32", 3.0, None),
        ("I32", True, None),
        ("F64", "x", None),
        ("F64", True, None),
        ("String", 3, None),
        ("Bool", 1, None),
        ("Blob", 3, None),
        ("[I32]", [1, "x"], (1, None)),
        ("[I32]", [1, None], (1, None)),
        ("DateTime", "2024-01-02T00:00:00.0001Z", 19724 * 86_400_000),
    ],
)
def test_a_wrong_type_is_null_in_the_compatible_dialect_only(
    property_type: str, value: Any, compatible: Any
) -> None:
    with pytest.raises(LoadError):
        node(value, property_type, "strict")
    assert node(value, property_type, "compatible") == compatible


@pytest.mark.parametrize("dialect", BOTH)
@pytest.mark.parametrize(
    "text", ['"\\ud800"', "[" * 100_000, '{"type":"N"', '{"type":"N","data":{"p":Infinity}}']
)
def test_what_is_not_json_is_refused_in_both_dialects(text: str, dialect: Dialect) -> None:
    graph = graph_of("node N { p: F64? }")
    refused(graph, text, "1: ", dialect=dialect)
    refused(graph, '{"type":"N","id":"\\ud800"}', "surrogates not allowed", dialect=dialect)


@pytest.mark.parametrize("dialect", BOTH)
@pytest.mark.parametrize(
    ("property_type", "value", "fragment"),
    [
        ("I32", 2**31, "exceeds Int32 range"),
        ("U32", -1, "exceeds UInt32 range"),
        ("F32", 1e39, "exceeds F32 range"),
        ("F64", 10**400, "N.p"),
        ("Vector(2)", [1], "expects 2 numbers, got 1"),
        ("Vector(2)", [1, None], "null"),
        ("Vector(2)", [1, "x"], "expects"),
        ("[I32]", 3, "expects [I32]"),
        ("Date", "2024-01-02T00:00:00", "invalid Date literal"),
        ("Date", 1.5, "expects Date"),
        ("Date", True, "expects Date"),
        ("Date", 2**31, "exceeds Date range"),
        ("DateTime", 10**15, "exceeds DateTime range"),
        ("DateTime", "soon", "invalid DateTime literal"),
        ("Blob", "base64:!", "N.p"),
        ("Blob", "http://x", "external URI"),
        ("Blob", "", "external URI"),
    ],
)
def test_a_value_out_of_bounds_is_refused_in_both_dialects(
    property_type: str, value: Any, fragment: str, dialect: Dialect
) -> None:
    with pytest.raises(LoadError) as failure:
        node(value, property_type, dialect)
    assert fragment in str(failure.value)


# ---- ids and modes ----


def test_an_old_id_is_replaced_by_the_canonical_one_and_edges_follow() -> None:
    graph = graph_of("node D { day: Date @key }  edge E: D -> D")
    text = """
        {"edge":"E","id":"e","from":"2024-01-02","to":"19725"}
        {"type":"D","id":"2024-01-02","data":{"day":19724}}
        {"type":"D","id":"19725","data":{"day":"2024-01-03"}}
        """
    graph.load(text, mode="append", dialect="compatible")
    assert sorted(graph.nodes["D"]) == ["19724", "19725"]
    assert (graph.edges["E"]["e"]["@src"], graph.edges["E"]["e"]["@dst"]) == ("19724", "19725")
    refused(graph_of("node D { day: Date @key }  edge E: D -> D"), text, "canonical @key id")


def test_an_old_id_may_be_one_component_but_only_of_one_key() -> None:
    schema = "node N { a: I64  b: String  @key(a, b) }"
    one = '{"type":"N","id":"7","data":{"a":7,"b":"x"}}'
    graph = graph_of(schema)
    graph.load(one, mode="append", dialect="compatible")
    assert list(graph.nodes["N"]) == ['["7","x"]']
    two = one + '{"type":"N","id":"7","data":{"a":7,"b":"y"}}'
    refused(graph_of(schema), two, "ambiguous", dialect="compatible")
    other = '{"type":"N","id":"8","data":{"a":7,"b":"x"}}'
    refused(graph_of(schema), other, "does not match", dialect="compatible")


def test_a_keyed_edge_has_no_old_ids() -> None:
    graph = library()
    record = '{"edge":"mentors","id":"bob","from":"bob","to":"cyd"}'
    refused(graph, record, "does not match", dialect="compatible")
    record = r'{"edge":"mentors","id":"[\"bob\",\"cyd\"]","from":"bob","to":"cyd"}'
    assert graph.load(record, mode="append") == ({}, {"Mentors": 1})


def test_append_meets_existing_entities_with_a_conflict() -> None:
    graph = library()
    failure = refused(
        graph, '{"type":"Author","data":{"handle":"ann","name":"A"}}', "already exists"
    )
    assert isinstance(failure, KeyConflictError)
    assert (failure.type_name, failure.entity_id) == ("Author", "ann")
    refused(graph, '{"edge":"Wrote","id":"w1","from":"dov","to":"b1"}', "already exists")
    refused(graph, '{"edge":"Mentors","from":"ann","to":"bob"}', "already exists")


def test_merge_replaces_whole_entities_and_keeps_others() -> None:
    graph = library()
    graph.load('{"type":"Author","data":{"handle":"ann","name":"A"}}', mode="merge")
    assert graph.nodes["Author"]["ann"]["score"] is None
    assert len(graph.nodes["Author"]) == 4


def test_overwrite_replaces_the_types_it_mentions() -> None:
    graph = library()
    graph.load('{"edge":"Follows","from":"ann","to":"dov"}', mode="overwrite")
    assert len(graph.edges["Follows"]) == 1
    assert len(graph.edges["Wrote"]) == 3
    record = '{"type":"Book","data":{"isbn":"b1","title":"t","state":"out"}}'
    refused(graph, record, "dst 'b3' not found in Book", mode="overwrite")


@pytest.mark.parametrize("mode", ["overwrite", "append", "merge"])
def test_a_key_or_unique_tuple_may_not_come_twice(
    mode: Literal["overwrite", "append", "merge"],
) -> None:
    author = '{"type":"Author","data":{"handle":"eve","name":"Eve"}}\n'
    refused(graph_of(SCHEMA), author * 2, "@unique violation on Author.handle", mode=mode)
    wrote = '{"edge":"Wrote","id":"n","from":"dov","to":"b1"}\n'
    graph = library()
    if mode == "merge":
        refused(graph, wrote * 2, "@unique violation on Wrote.(@src, @dst)", mode=mode)
    else:
        refused(graph, wrote * 2, "already exists", mode=mode)


def test_the_last_of_equal_edge_ids_wins_in_a_merge() -> None:
    schema = "node A { k: String @key }  edge E: A -> A @card(0..1)"
    nodes = '{"type":"A","data":{"k":"a"}}\n{"type":"A","data":{"k":"b"}}\n'
    edges = '{"edge":"E","id":"e","from":"a","to":"a"}\n{"edge":"E","id":"e","from":"a","to":"b"}\n'
    graph = graph_of(schema)
    assert graph.load(nodes + edges, mode="merge") == ({"A": 2}, {"E": 2})
    assert graph.edges["E"]["e"]["@dst"] == "b"


def test_moving_an_edge_away_may_break_a_minimum() -> None:
    schema = "node A { k: String @key }  edge E: A -> A @card(1..)"
    nodes = '{"type":"A","data":{"k":"a"}}\n{"type":"A","data":{"k":"b"}}\n'
    graph = graph_of(schema, nodes + '{"edge":"E","id":"e","from":"a","to":"a"}')
    record = '{"edge":"E","id":"e","from":"b","to":"a"}'
    refused(graph, record, "source 'a' has 0 edges (min 1)", mode="merge")


def test_an_empty_load_loads_nothing() -> None:
    assert library().load("\n \n", mode="overwrite") == ({}, {})


# ---- export ----


def test_an_export_lists_edges_first_and_omits_nulls() -> None:
    lines = library().export().splitlines()
    assert [json.loads(line).get("edge", json.loads(line).get("type")) for line in lines] == (
        ["Follows"] * 4 + ["In"] + ["Mentors"] * 2 + ["Wrote"] * 3 + ["Author"] * 4 + ["Book"] * 3
    )
    assert lines[7] == (
        '{"edge":"Wrote","id":"w1","from":"ann","to":"b1",'
        '"data":{"role":"lead","since":"2020-01-01T00:00:00.000Z"}}'
    )
    assert lines[10].startswith('{"type":"Author","id":"ann","data":{"bornOn":"1980-01-02",')


@pytest.mark.parametrize("dialect", BOTH)
def test_an_export_reloads_to_the_same_export(dialect: Dialect) -> None:
    seed = SEED + json.dumps(
        {
            "type": "Book",
            "data": {
                "isbn": "b4",
                "title": "é \u2028",
                "state": "pulp",
                "cover": "base64:aGk=",
                "vec": [0.1, 1],
            },
        }
    )
    exported = graph_of(SCHEMA, seed).export()
    graph = graph_of(SCHEMA)
    graph.load(exported, mode="overwrite", dialect=dialect)
    assert graph.export() == exported
    assert '"vec":[0.1,1.0]' in exported


def test_an_old_export_loads_too() -> None:
    graph = graph_of(SCHEMA)
    old = (
        '{"type":"Author","data":{"id":"ann","bornOn":3653,"email":null,"handle":"ann","name":"A"}}'
    )
    graph.load(old, mode="overwrite")
    assert '"bornOn":"1980-01-02"' in graph.export()


def test_an_export_may_name_its_types() -> None:
    assert library().export(["In"]) == '{"edge":"In","id":"i1","from":"cyd","to":"b3","data":{}}\n'
    with pytest.raises(Exception, match="unknown type 'Nope'"):
        library().export(["Nope"])
