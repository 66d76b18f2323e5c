from __future__ import annotations

import gzip
import json
from typing import Any

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from omnigraph.bulk import constraint_checks
from omnigraph.errors import InvalidArgumentError, KeyConflictError, LoadError
from omnigraph.writers.inputs import Text
from unit.bulk.bulk_world import (
    Twins,
    crowd,
    knows,
    note,
    person,
    wrote,
)

PEOPLE = pa.table(
    {
        "name": [f"p{n}" for n in range(1_000)],
        "email": [f"{n}@example.com" for n in range(1_000)],
        "age": pa.array([n % 90 for n in range(1_000)], pa.int32()),
    }
)


def test_units_give_what_one_load_gives(two: Twins) -> None:
    two.load(two.lines(crowd(300)))
    assert two.leftovers() == []


def test_a_merge_replaces_and_adds(two: Twins) -> None:
    two.load(two.lines(crowd(200)))
    more = [person(f"p{n}", age=1, team="red") for n in range(100, 300)]
    moved = [knows(f"p{n}", "p0", id=f"k{n}") for n in range(50)]
    two.load(two.lines([*more, *moved]), "merge")


def test_an_overwrite_keeps_only_what_is_loaded(two: Twins) -> None:
    two.load(two.lines(crowd(200)))
    two.load(two.lines([person("p1"), person("p2"), knows("p1", "p2", id="k")]), "overwrite")


def test_edges_find_committed_nodes(two: Twins) -> None:
    two.load(two.lines(crowd(100)))
    two.load(two.lines([knows(f"p{n}", f"p{n + 1}", id=f"l{n}") for n in range(99)]))


def test_entities_without_a_key_replace_those_of_their_id(two: Twins) -> None:
    two.load(two.lines([note(f"n{n}", "old") for n in range(100)]))
    changed = [note(f"n{n % 60}", f"new {n}") for n in range(120)]
    two.load(two.lines(changed), "merge")


@pytest.mark.parametrize("kind", ["parquet", "orc", "csv", "table"])
def test_tables_are_read_in_every_format(two: Twins, kind: str) -> None:
    path = two.folder / f"people.{kind}"
    if kind == "parquet":
        pq.write_table(PEOPLE, path, row_group_size=70)
    elif kind == "orc":
        orc.write_table(PEOPLE, str(path))
    elif kind == "csv":
        pcsv.write_csv(PEOPLE, path)
    two.load(PEOPLE if kind == "table" else path, type="Person")


def test_a_folder_of_files_and_compressed_lines_are_read(two: Twins) -> None:
    folder = two.folder / "parts"
    folder.mkdir()
    (folder / "_SUCCESS").touch()
    lines = [json.dumps(each) for each in crowd(60)]
    (folder / "a.jsonl").write_text("\n".join(lines[:60]) + "\n")
    (folder / "b.jsonl.gz").write_bytes(gzip.compress("\n".join(lines[60:]).encode()))
    two.load(folder)


def test_texts_and_blank_lines_are_read(two: Twins) -> None:
    text = "\n\n".join(json.dumps(each) for each in crowd(100))
    two.load(Text(text, "inline"))


def test_an_empty_table_empties_its_type(two: Twins) -> None:
    two.load(two.lines([person("ada")]))
    two.load(PEOPLE.slice(0, 0), "overwrite", type="Person")


BAD: list[tuple[str, list[Any]]] = [
    ("broken", [*crowd(80)[:80], '{"type": "Person", "data": {', person("x", agee=1)]),
    ("a wrong value", [*crowd(80)[:80], person("x", age="old"), person("y", age=1.5)]),
    ("a missing value", [{"type": "Person", "data": {"age": 1}}, *crowd(80)]),
    ("a range", [*crowd(90), person("x", age=151)]),
    ("an enum", [*crowd(90), person("x", team="pink")]),
    ("a key twice", [*crowd(90), person("p3"), person("p80")]),
    ("an email twice", [*crowd(90), person("x", email="3@example.com")]),
    ("an end nowhere", [*crowd(90), knows("p1", "nobody", id="a"), knows("no", "p2", id="b")]),
    ("an id that is not its key", [*crowd(90), {**person("x"), "id": "y"}]),
    ("an id twice", [note("a"), *crowd(90), note("a")]),
    (
        "too many edges",
        [*crowd(90), note("a"), note("b"), note("c"), *(wrote("p1", n, id=n) for n in "abc")],
    ),
]


@pytest.mark.parametrize(("what", "records"), BAD, ids=[what for what, _ in BAD])
def test_what_is_wrong_is_told_in_the_words_of_every_load(
    two: Twins, what: str, records: list[Any]
) -> None:
    assert two.refused(two.lines(records)).count, what


def test_a_row_of_a_csv_file_is_told_by_its_line(two: Twins) -> None:
    path = two.folder / "people.csv"
    path.write_text('name,age\n"two\nlines",1\nada,999\n')
    assert "people.csv line 4" in two.refused(path, type="Person").message


def test_an_append_refuses_what_exists(two: Twins) -> None:
    two.load(two.lines(crowd(100)))
    error = two.refused(two.lines([person("new"), person("p70"), person("p7")]))
    assert isinstance(error, KeyConflictError)


def test_an_append_refuses_edges_that_exist_where_edges_are_counted(two: Twins) -> None:
    two.load(two.lines([person("ada"), note("a"), wrote("ada", "a", id="1")]))
    error = two.refused(two.lines([wrote("ada", "a", id="1")]))
    assert isinstance(error, KeyConflictError)


def test_edges_at_very_many_committed_nodes_are_checked(
    two: Twins, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constraint_checks, "PRESENT_MAX", 10)
    two.load(two.lines(crowd(100)))
    edges = [knows(f"p{n}", f"p{n + 1}", id=f"l{n}") for n in range(99)]
    two.load(two.lines(edges))
    more = [knows(f"p{n}", f"p{n + 1}", id=f"m{n}") for n in range(80)]
    two.refused(two.lines([*more, knows("no", "p1", id="x"), knows("p1", "nobody", id="y")]))


def test_a_merge_refuses_what_another_entity_keeps(two: Twins) -> None:
    two.load(two.lines(crowd(100)))
    two.refused(two.lines([person("p1", email="2@example.com")]), "merge")
    # Freed by the same load, it may be used.
    freed = [person("p1", email="2@example.com"), person("p2", email="1@example.com")]
    two.load(two.lines(freed), "merge")


def test_a_merge_counts_the_edges_that_stay(two: Twins) -> None:
    notes = [note(each) for each in "abcd"]
    two.load(
        two.lines([person("ada"), *notes, wrote("ada", "a", id="1"), wrote("ada", "b", id="2")])
    )
    two.refused(two.lines([wrote("ada", "c", id="3")]), "merge")
    two.load(two.lines([wrote("ada", "c", id="1")]), "merge")


def test_an_overwrite_refuses_to_leave_edges_behind(two: Twins) -> None:
    two.load(two.lines(crowd(50)))
    two.refused(two.lines([person("p1"), person("p2")]), "overwrite")


def test_everything_that_is_wrong_is_told_at_once(two: Twins) -> None:
    records: list[Any] = crowd(200)
    records[5] = '{"type": "Person"'
    records += [person("p7"), knows("p1", "nobody")]
    with pytest.raises(LoadError) as refused:
        two.bulk(two.lines(records))
    places = [str(each.place).rpartition(" ")[2] for each in refused.value.violations]
    assert places[:2] == ["6", "401"]
    assert "402" in places
    assert [row["rule"] for row in two.rejected()] == [
        each.rule for each in sorted(refused.value.violations, key=_line)
    ]


def _line(violation: Any) -> int:
    return int(str(violation.place).rpartition(" ")[2])


def test_a_single_record_is_no_source_of_units(two: Twins) -> None:
    with pytest.raises(InvalidArgumentError, match="not single records"):
        two.bulk([person("ada")])
