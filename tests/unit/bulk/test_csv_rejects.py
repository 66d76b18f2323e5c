from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from omnigraph.bulk.splits import plan_file_ranges
from unit.bulk.bulk_world import Twins, exported

PEOPLE = """name,age,email

ada,36,a@x
"bo,b",old,b@x
cleo
"d ""dan""
dan",200,
"eve",7,e@x,more,and more
fay,1,f@x
,2,g@x
"""


def csv_file(two: Twins, text: str) -> Path:
    path = two.folder / "people.csv"
    path.write_bytes(text.encode())
    return path


def told(rows: list[dict[str, Any]]) -> list[tuple[int, str, str]]:
    return [(row["number"], row["rule"], row["raw"]) for row in rows]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_records_that_are_no_rows_are_left_out_like_other_bad_ones(
    two: Twins, line_end: str
) -> None:
    text = PEOPLE.replace("\n", line_end)
    path = csv_file(two, text)
    result = two.bulk(path, type="Person", on_error="quarantine")
    assert (result.nodes, result.rejected) == ({"Person": 2}, 5)
    two.at_once.load([{"type": "Person", "data": data} for data in GOOD], mode="append")
    assert exported(two.in_units) == exported(two.at_once)
    rows = two.rejected()
    assert told(rows) == [
        (4, "value", '"bo,b",old,b@x'),
        (5, "csv", "cleo"),
        (6, "range", f'"d ""dan""{line_end}dan",200,'),
        (8, "csv", '"eve",7,e@x,more,and more'),
        (10, "required", ",2,g@x"),
    ]
    assert [row["place"] for row in rows] == [f"{path} line {row['number']}" for row in rows]
    assert rows[1]["reason"] == "has 1 value, the header names 3 columns: cleo"
    assert [row["id"] for row in rows] == ["bo,b", None, f'd "dan"{line_end}dan', None, None]
    assert {row["type"] for row in rows} == {"Person"}


GOOD = [{"name": "ada", "age": 36, "email": "a@x"}, {"name": "fay", "age": 1, "email": "f@x"}]


def test_the_whole_file_is_told_when_nothing_is_left_out(two: Twins) -> None:
    text = PEOPLE.replace("200", "20")
    failure = two.refused(csv_file(two, text), type="Person")
    places = [str(each.place).rpartition(" ")[2] for each in failure.violations]
    assert places == ["4", "5", "8", "10"]


def test_a_quote_that_is_never_closed_takes_only_what_follows_it(two: Twins) -> None:
    path = csv_file(two, 'name,age\nada,36\nbob,x\ncleo,"4\ndan,5\n')
    result = two.bulk(path, type="Person", on_error="quarantine")
    assert (result.nodes, result.rejected) == ({"Person": 1}, 2)
    assert told(two.rejected()) == [
        (3, "value", "bob,x"),
        (4, "csv", 'cleo,"4\ndan,5\n'),
    ]


def many_people(count: int, note: str) -> str:
    rows = [f'"p{n}",{n % 90},"{note}{n}"\n' for n in range(count)]
    rows[count // 2] = "short\n"
    rows[-1] = '"last",old,x\n'
    return "name,age,email\n" + "".join(rows)


@pytest.mark.parametrize(
    ("note", "are_many"), [("x", True), ('a ""b"",\n', True), ("c\r\nd", True), ("\r", False)]
)
def test_a_file_in_many_ranges_is_read_like_one(two: Twins, note: str, are_many: bool) -> None:
    path = csv_file(two, many_people(600, note))
    assert (len(plan_file_ranges(str(path), {}, type_name="Person")) > 4) == are_many
    failure = two.refused(path, type="Person")
    lines = path.read_text().split("\n")
    places = [int(str(each.place).rpartition(" ")[2]) for each in failure.violations]
    assert places == [lines.index("short") + 1, len(lines) - 1]
    path.write_bytes(path.read_bytes().replace(b"short\n", b"").replace(b"old", b"30"))
    two.load(path, type="Person")
    two.refused(path, type="Person")


def test_ranges_leave_out_what_is_wrong_with_the_lines_of_the_file(two: Twins) -> None:
    path = csv_file(two, many_people(600, "a\nb"))
    result = two.bulk(path, type="Person", on_error="quarantine")
    assert (result.nodes, result.rejected) == ({"Person": 598}, 2)
    assert told(two.rejected()) == [(602, "csv", "short"), (1199, "value", '"last",old,x')]


def test_texts_that_are_no_utf8_are_left_out_with_their_lines(two: Twins) -> None:
    path = two.folder / "people.csv"
    path.write_bytes(b"name,age\nada,1\nJ\xf6rg,2\neve,3\n\xff\n")
    result = two.bulk(path, type="Person", on_error="quarantine")
    assert (result.nodes, result.rejected) == ({"Person": 2}, 2)
    assert told(two.rejected()) == [(3, "value", "J\ufffdrg,2"), (5, "csv", "\ufffd")]


def test_a_key_of_numbers_is_told_as_an_id(two: Twins) -> None:
    path = two.folder / "place.csv"
    path.write_bytes(b"x,y,title\n1,2,a,b\n3,4,J\xf6rg\n5,no,d\n6,7,e\n")
    result = two.bulk(path, type="Place", on_error="quarantine")
    assert (result.nodes, result.rejected) == ({"Place": 1}, 3)
    assert [row["id"] for row in two.rejected()] == [None, '["3","4"]', None]
