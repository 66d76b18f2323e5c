"""Mutations as changes: what each statement does, compared with the model on real tables."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from omnigraph.errors import ExecutionError, WriteRefusedError
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.storage import open_objects
from omnigraph.versioning import WHOLE, IdSet, Log, ReadSet, make_mark
from omnigraph.writers import computed_values
from omnigraph.writers.graph_change import WriteMode
from omnigraph.writers.key_cache import KeyCache
from omnigraph.writers.mutate import run_mutation
from omnigraph.writers.validate import unique_groups
from unit.writers.mutation_world import NOW, MutationWorld, request_params

SCHEMA = """
node Person {
  name: String @key
  title: String
  email: String? @unique
  age: I32?
  small: U32?
  height: F32?
  weight: F64?
  born: Date?
  seen: DateTime?
  isOk: Bool?
  mood: enum(glad, sad)?
  tags: [String]?
  days: [Date]?
  times: [DateTime]?
  marks: [I64]?
  vec: Vector(2)?
  photo: Blob?
  @range(age, -5..100)
}
node Note { text: String?  n: I64? }
node Slot { tenant: String  slot: F64  x: I64?  @key(tenant, slot) }
node City { name: String @key }
edge Knows: Person -> Person { since: DateTime? }
edge Mentors: Person -> Person { level: I32?  @key(@src, @dst) }
edge About: Note -> Person { weight: F64? }
edge Lives: Person -> City
edge Twin: City -> City
"""

SEED = """
{"type":"Person","data":{"name":"ann","title":"Dr","age":40,"height":1.7,"born":"1980-01-02",\
"seen":"2020-01-01T10:00:00.5Z","isOk":true,"mood":"glad","tags":["a","b"],"days":["1970-01-03"],\
"times":["1970-01-01T00:00:01Z"],"marks":[1,2],"vec":[1,0.5],"photo":"base64:aGk="}}
{"type":"Person","data":{"name":"bob","title":"Mr","age":30,"weight":80.5}}
{"type":"Person","data":{"name":"cyd","title":"Ms"}}
{"type":"Person","data":{"name":"dov","title":"Mr","age":40,"photo":"base64:"}}
{"type":"Note","id":"n1","data":{"text":"first","n":1}}
{"type":"Note","id":"n2","data":{"text":"second","n":2}}
{"type":"City","data":{"name":"Bern"}}
{"type":"City","data":{"name":"Genf"}}
{"type":"Slot","data":{"tenant":"acme","slot":7,"x":1}}
{"edge":"Knows","id":"k1","from":"ann","to":"bob","data":{"since":"2020-01-01T00:00:00Z"}}
{"edge":"Knows","id":"k2","from":"bob","to":"cyd"}
{"edge":"Knows","id":"k3","from":"dov","to":"dov"}
{"edge":"Knows","id":"k4","from":"cyd","to":"ann"}
{"edge":"Mentors","from":"ann","to":"bob","data":{"level":3}}
{"edge":"About","id":"a1","from":"n1","to":"ann"}
{"edge":"About","id":"a2","from":"n2","to":"bob"}
{"edge":"Lives","id":"l1","from":"ann","to":"Bern"}
{"edge":"Twin","id":"t1","from":"Bern","to":"Genf"}
"""

PERSON, NOTE, CITY = (TypeKey(TypeKind.NODE, name) for name in ("Person", "Note", "City"))
KNOWS, MENTORS, LIVES = (TypeKey(TypeKind.EDGE, name) for name in ("Knows", "Mentors", "Lives"))


@pytest.fixture
def world() -> MutationWorld:
    return MutationWorld(SCHEMA, SEED)


def refused(world: MutationWorld, text: str, **params: Any) -> str:
    """The message of a refusal, which the model gives too."""
    with pytest.raises(WriteRefusedError) as ours:
        world.validated(text, params)
    mutation, bound = world.compiled(text, params)
    with pytest.raises(WriteRefusedError) as models:
        world.model.mutate(mutation, bound, now=NOW)
    assert models.value.message in ours.value.message
    return ours.value.message


def ids(array: pa.Array | pa.ChunkedArray) -> list[str]:
    return sorted(array.to_pylist())


# ---- inserts ----


def test_an_insert_makes_one_row_with_all_columns(world: MutationWorld) -> None:
    mutated = world.mutate('insert Person { name: "eve" title: "Ms" age: 7 }')
    assert (mutated.nodes, mutated.edges, mutated.is_insert_only) == (1, 0, True)
    assert list(mutated.change) == [PERSON]
    assert mutated.change[PERSON].mode is WriteMode.UPSERT
    assert mutated.reads == {}


def test_an_insert_by_an_existing_key_replaces_the_whole_row(world: MutationWorld) -> None:
    world.mutate('insert Person { name: "ann" title: "Prof" }')
    assert world.image()["Person"]["ann"]["photo"] is None


def test_entities_without_a_key_are_new_each_time(world: MutationWorld) -> None:
    mutated = world.mutate("""
        insert Note { n: 1 } insert Note { n: 1 }
        insert Knows { from: "ann" to: "bob" } insert Knows { from: "ann" to: "bob" }""")
    assert (mutated.nodes, mutated.edges) == (2, 2)
    for change in mutated.change.values():
        assert (change.mode, change.rows.num_rows) == (WriteMode.INSERT, 2)
        # Nobody has to look for the copies of fresh ids.
        assert change.known_copies is not None
        assert change.known_copies.num_rows == 0


def test_fresh_ids_differ_between_runs() -> None:
    world = MutationWorld(SCHEMA)
    text = "insert Note { n: 1 } insert Note { n: 2 }"
    mutation, params = world.compiled(text)
    given, keys = request_params(params), KeyCache(Log(open_objects("memory://none")))
    patterns = world.pattern_reads(text, params)
    runs = [
        run_mutation(mutation, given, view=world.view, keys=keys, patterns=patterns)
        for _ in range(2)
    ]
    found = {id_ for run in runs for id_ in run.change[NOTE].rows["__id"].to_pylist()}
    assert len(found) == 4
    assert {len(id_) for id_ in found} == {26}


def test_a_keyed_edge_is_replaced_under_its_derived_id(world: MutationWorld) -> None:
    mutated = world.mutate('insert Mentors { from: "ann" to: "bob" level: 4 }')
    assert mutated.change[MENTORS].mode is WriteMode.UPSERT
    assert world.image()["Mentors"] == {'["ann","bob"]': {"@src": "ann", "@dst": "bob", "level": 4}}


def test_a_composite_key_gives_a_composite_id(world: MutationWorld) -> None:
    world.mutate(
        """insert Slot { tenant: "a\\"b" slot: 1000000000000000000000.0 }
        insert Slot { tenant: "acme" slot: 7 }"""
    )
    assert sorted(world.image()["Slot"]) == ['["1000000000000000000000","a\\"b"]', '["7","acme"]']


def test_inserts_of_one_key_collapse_and_count(world: MutationWorld) -> None:
    mutated = world.mutate("""
        insert Person { name: "eve" title: "A" age: 1 }
        insert Person { name: "fox" title: "F" }
        insert Person { name: "eve" title: "B" }""")
    assert mutated.nodes == 3
    assert ids(mutated.change[PERSON].rows["__id"]) == ["eve", "fox"]


def test_every_type_of_value_is_written(world: MutationWorld) -> None:
    world.mutate(
        """query q($age: F64, $u: I64, $h: F64, $w: I64, $d: Date, $days: [Date], $v: Vector(2),
                    $x: F32, $p: Blob, $f: Bool?) {
            insert Person { name: "eve" title: "é☃" age: $age small: $u height: $h weight: $w
                born: $d seen: now() isOk: true or $f mood: "sad" tags: [] days: $days
                times: [datetime("2020-01-01T00:00:00.123Z")] marks: [1, $w] vec: $v photo: $p }
            insert Person { name: "fox" title: "" isOk: $w < 3 vec: [$x, 1] tags: ["x"] }
        }""",
        {
            "age": 3.0,
            "u": 2**32 - 1,
            "h": 0.1,
            "w": 5,
            "d": "-0044-03-15",
            "days": ["1969-12-31"],
            "v": [0.1, -2],
            "x": 0.25,
            "p": "base64:AAEC",
        },
    )
    assert world.image()["Person"]["eve"]["seen"] == NOW
    assert world.image()["Person"]["fox"]["isOk"] is False


# ---- updates ----


def test_an_update_keeps_what_it_does_not_assign(world: MutationWorld) -> None:
    mutated = world.mutate("update Person set { height: 2 isOk: false } where age = 40")
    change = mutated.change[PERSON]
    assert (mutated.nodes, mutated.is_insert_only) == (2, False)
    assert (change.mode, change.batches) == (WriteMode.UPSERT, ())
    assert change.known_copies is not None
    assert ids(change.known_copies["__id"]) == ["ann", "dov"]
    assert world.image()["Person"]["ann"]["photo"] == b"hi"
    assert world.image()["Person"]["dov"]["photo"] == b""


def test_an_update_without_a_match_changes_nothing_but_has_read(world: MutationWorld) -> None:
    mutated = world.mutate("update Person set { age: 1 } where age > 99")
    assert (mutated.nodes, mutated.change, mutated.reads) == (0, {}, {"node:Person": WHOLE})


@pytest.mark.parametrize(
    "name", ["age", "seen", "born", "tags", "days", "vec", "photo", "mood", "isOk", "height"]
)
def test_null_clears_a_property_of_any_type(world: MutationWorld, name: str) -> None:
    kind = world.view.catalog.nodes["Person"].properties[name].type
    declared = "String?" if name == "mood" else str(kind)
    text = f"query q($v: {declared}) {{ update Person set {{ {name}: $v }} where @id = 'ann' }}"
    world.mutate(text.replace("'", '"'), {"v": None})
    assert world.image()["Person"]["ann"][name] is None


def test_an_assigned_blob_is_written_to_every_row(world: MutationWorld) -> None:
    text = 'query q($p: Blob) { update Person set { photo: $p } where name != "cyd" }'
    world.mutate(text, {"p": "base64:AAEC"})
    assert world.image()["Person"]["bob"]["photo"] == b"\0\1\2"


def test_an_update_sees_earlier_statements_only_in_their_new_form(world: MutationWorld) -> None:
    mutated = world.mutate("""
        insert Person { name: "eve" title: "E" age: 40 }
        insert Person { name: "ann" title: "A" age: 1 }
        update Person set { age: 41 } where age = 40
        update Person set { age: 42 } where age = 41 or name = "bob"
        update Person set { title: "last" } where age >= 42""")
    assert mutated.nodes == 2 + 2 + 3 + 3
    change = mutated.change[PERSON]
    assert ids(change.rows["__id"]) == ["ann", "bob", "dov", "eve"]
    # The copies of updated rows were found on the way; that of 'ann' was looked up.
    assert change.known_copies is not None
    assert ids(change.known_copies["__id"]) == ["ann", "bob", "dov"]


def test_an_insert_after_an_update_replaces_its_row(world: MutationWorld) -> None:
    mutated = world.mutate("""
        update Person set { age: 5 } where true
        insert Person { name: "ann" title: "new" }
        insert Person { name: "eve" title: "new" }""")
    assert mutated.nodes == 6
    change = mutated.change[PERSON]
    assert change.known_copies is not None
    assert ids(change.known_copies["__id"]) == ["ann", "bob", "cyd", "dov"]


def test_fresh_rows_beside_updated_ones_are_upserted(world: MutationWorld) -> None:
    mutated = world.mutate('insert Note { n: 7 } update Note set { text: "x" } where n >= 2')
    change = mutated.change[NOTE]
    assert (mutated.nodes, change.mode, change.rows.num_rows) == (3, WriteMode.UPSERT, 2)
    assert change.known_copies is not None
    assert ids(change.known_copies["__id"]) == ["n2"]


def test_a_fresh_row_that_was_updated_is_still_only_inserted(world: MutationWorld) -> None:
    mutated = world.mutate("insert Note { n: 7 } update Note set { n: 8 } where n = 7")
    assert (mutated.nodes, mutated.change[NOTE].mode) == (2, WriteMode.INSERT)


def test_a_batch_that_was_partly_replaced_is_kept_for_validation(world: MutationWorld) -> None:
    mutated = world.mutate("""
        update Person set { age: 7 } where age = 40
        update Person set { age: 8 } where name = "ann" """)
    (batch,) = mutated.change[PERSON].batches
    assert ids(batch["__id"]) == ["ann", "dov"]
    column = world.view.get_shape(PERSON).columns["age"]
    assert batch[column].to_pylist() == [7, 7]
    mutated = world.mutate("""
        update Person set { age: 9 } where age = 8
        update Person set { age: 10 } where age < 8 """)
    assert mutated.change[PERSON].batches == ()


def test_one_statement_may_not_write_a_unique_value_twice_even_for_a_moment(
    world: MutationWorld,
) -> None:
    text = """
        update Person set { email: "z" } where age = 40
        update Person set { email: "y" } where name = "ann" """
    assert "@unique violation on Person.email" in refused(world, text)
    world.mutate("""
        update Person set { email: "z" } where name = "ann"
        update Person set { email: "y" } where name = "ann"
        update Person set { email: "z" } where name = "bob" """)


def test_long_columns_of_one_value_take_the_memory_of_one_chunk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    column = computed_values.repeat_cell("x" * 100, pa.utf8(), 1_000_000)
    assert (len(column), column.unique().to_pylist()) == (1_000_000, ["x" * 100])
    assert len({chunk.buffers()[2].address for chunk in column.chunks}) == 1
    monkeypatch.setattr(computed_values, "_CHUNK_BYTES", 1000)
    column = computed_values.repeat_cell(b"y" * 400, pa.large_binary(), 5)
    assert column.to_pylist() == [b"y" * 400] * 5
    assert column.num_chunks == 3


# ---- deletes ----


def test_deleting_a_node_deletes_its_edges_of_all_types(world: MutationWorld) -> None:
    mutated = world.mutate('delete Person where name = "ann"')
    assert (mutated.nodes, mutated.edges) == (1, 5)
    assert {key.name: ids(change.deleted) for key, change in mutated.change.items()} == {
        "Person": ["ann"],
        "Knows": ["k1", "k4"],
        "Mentors": ['["ann","bob"]'],
        "About": ["a1"],
        "Lives": ["l1"],
    }
    for change in mutated.change.values():
        assert change.known_copies is not None
        assert ids(change.known_copies["__id"]) == ids(change.deleted)
        assert change.rows.num_rows == 0


def test_overlapping_deletes_count_each_entity_once(world: MutationWorld) -> None:
    mutated = world.mutate("""
        delete Person where age = 40
        delete Person where name < "c"
        delete Knows where from = "bob"
        delete Knows where @dst = "ann"
        delete Person where name = "cyd" """)
    assert (mutated.nodes, mutated.edges) == (4, 8)


def test_deleting_edges_leaves_their_ends(world: MutationWorld) -> None:
    mutated = world.mutate('delete Knows where from = "ann" and to = "bob"')
    assert (mutated.nodes, mutated.edges, list(mutated.change)) == (0, 1, [KNOWS])
    assert mutated.reads == {"edge:Knows": WHOLE}


def test_deleting_nobody_changes_nothing(world: MutationWorld) -> None:
    mutated = world.mutate('delete Person where name = "zed"')
    assert (mutated.nodes, mutated.edges, mutated.change) == (0, 0, {})


# ---- what is read ----


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ('name = "ann"', ["ann"]),
        ('name = "zed"', ["zed"]),
        ('@id in ["zed", "bob"]', ["bob", "zed"]),
        ('name = "ann" and age > 99', ["ann"]),
    ],
)
def test_a_condition_on_ids_depends_on_these_alone(
    world: MutationWorld, where: str, expected: list[str]
) -> None:
    reads = world.run(f"update Person set {{ age: 1 }} where {where}").reads
    assert reads == {"node:Person": ReadSet(ids=IdSet(expected))}
    reads = world.run(f"delete Person where {where}").reads
    assert reads["node:Person"] == ReadSet(ids=IdSet(expected))


def test_an_open_condition_depends_on_the_whole_type(world: MutationWorld) -> None:
    text = 'update Person set { age: 1 } where name = "ann" or age = 1'
    assert world.run(text).reads == {"node:Person": WHOLE}
    text = 'update Person set { age: 1 } where age = 1 update Note set { n: 1 } where @id = "n1"'
    assert world.run(text).reads == {"node:Person": WHOLE, "node:Note": ReadSet(ids=IdSet(["n1"]))}


def test_a_cascade_depends_on_every_edge_at_the_deleted_nodes(world: MutationWorld) -> None:
    reads = world.run('delete City where @id = "Bern"').reads
    source, target = make_mark("src", "Bern"), make_mark("dst", "Bern")
    assert reads == {
        "node:City": ReadSet(ids=IdSet(["Bern"])),
        "edge:Lives": ReadSet(marks=IdSet([target])),
        "edge:Twin": ReadSet(marks=IdSet([source, target])),
    }


def test_a_cascade_of_many_nodes_depends_on_whole_edge_types(
    world: MutationWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unique_groups, "MARKS_MAX", 1)
    reads = world.run('delete City where @id in ["Bern", "Genf"]').reads
    assert reads["edge:Lives"] == reads["edge:Twin"] == WHOLE


# ---- refusals ----


@pytest.mark.parametrize(
    ("name", "declared", "value", "fragment"),
    [
        ("age", "I64", 2**31, "Person.age: 2147483648 exceeds Int32 range"),
        ("small", "I64", -1, "Person.small: -1 exceeds UInt32 range"),
        ("age", "F64", 2.5, "Person.age: 2.5 is not a whole number"),
        ("age", "F64", 1e300, "exceeds Int32 range"),
        ("height", "F64", 1e39, "Person.height: 1e+39 exceeds F32 range"),
        ("marks", "[F64]", [1.5], "Person.marks: 1.5 is not a whole number"),
        ("photo", "String", "http://x", "an external URI is not allowed"),
        ("photo", "Blob", "base64:!", "Person.photo: invalid base64"),
        ("photo", "Blob", "base64:aGk", "Person.photo: invalid base64"),
        ("title", "String?", None, "cannot assign null to non-nullable property 'title' of Person"),
    ],
)
def test_a_parameter_that_does_not_fit_is_refused(
    world: MutationWorld, name: str, declared: str, value: Any, fragment: str
) -> None:
    # The address of a blob is a mistake only where there is an entity to have it.
    where = 'name != ""' if "URI" in fragment else "false"
    update = f"update Person set {{ {name}: $v }} where {where}"
    assert fragment in refused(world, f"query q($v: {declared}) {{ {update} }}", v=value)
    title = "" if name == "title" else 'title: "x"'
    insert = f'insert Person {{ name: "x" {title} {name}: $v }}'
    assert fragment in refused(world, f"query q($v: {declared}) {{ {insert} }}", v=value)


def test_the_address_of_a_blob_is_no_mistake_where_nothing_matches(world: MutationWorld) -> None:
    update = 'query q($v: String) { update Person set { photo: $v } where name = "nobody" }'
    mutated = world.run(update, {"v": "https://example.com/a.png"})
    assert (mutated.nodes, mutated.change) == (0, {})


@pytest.mark.parametrize(
    ("name", "value"), [("vec", "[1, $x]"), ("marks", "[$x]"), ("tags", '["a", $t]')]
)
def test_a_null_inside_a_list_is_refused(world: MutationWorld, name: str, value: str) -> None:
    text = (
        f"query q($x: I64?, $t: String?) {{ update Person set {{ {name}: {value} }} where true }}"
    )
    assert f"Person.{name}: null is not allowed as an element" in refused(world, text)


def test_a_vector_item_beyond_32_bits_is_refused(world: MutationWorld) -> None:
    text = "query q($x: F64) { update Person set { vec: [1, $x] } where true }"
    assert "Person.vec: 1e+39 exceeds F32 range" in refused(world, text, x=1e39)


@pytest.mark.parametrize("end", ["from", "to"])
def test_an_edge_needs_both_ends(world: MutationWorld, end: str) -> None:
    ends = {"from": '"ann"', "to": '"bob"', end: "$x"}
    text = f"insert Knows {{ from: {ends['from']}, to: {ends['to']} }}"
    message = refused(world, f"query q($x: String?) {{ {text} }}", x=None)
    assert message == "cannot assign null to an end of Knows"


def test_a_vector_that_could_be_embedded_is_still_required() -> None:
    world = MutationWorld("node N { t: String  v: Vector(2) @embed(t) }")
    assert refused(world, 'insert N { t: "x" }') == "missing required property 'v' of N"


@pytest.mark.parametrize(
    "text",
    [
        'query q($t: String) { insert Person { name: $t title: "x" } }',
        'query q($t: String) { insert Person { name: "x" title: "x" tags: [$t] } }',
        'query q($t: String) { insert Knows { from: "ann" to: $t } }',
    ],
)
def test_a_text_with_half_a_character_is_refused(world: MutationWorld, text: str) -> None:
    with pytest.raises(ExecutionError, match="half of a surrogate pair"):
        world.run(text, {"t": "a\ud800"})


def test_a_refusal_names_type_and_property(world: MutationWorld) -> None:
    text = "query q($v: I64) { update Person set { age: $v } where true }"
    with pytest.raises(WriteRefusedError) as refusal:
        world.run(text, {"v": 2**40})
    (violation,) = refusal.value.violations
    assert (violation.rule, violation.type_name, violation.property) == ("value", "Person", "age")
