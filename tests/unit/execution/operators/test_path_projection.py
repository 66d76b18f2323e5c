"""Paths as results: properties that types on the way have as different types."""

from __future__ import annotations

import omnigraph
from omnigraph.writers.inputs import Text

_SCHEMA = """
node Author {
  name: String @key
  size: I32?
  rate: F32?
  since: Date?
  seen: DateTime?
  tags: [String]?
  image: Vector(2)?
}
node Book {
  name: String @key
  size: I64?
  rate: U64?
  since: I64?
  seen: String?
  tags: Bool?
  image: String?
}
edge Wrote: Author -> Book { at: I64? }
edge Cites: Book -> Book { at: Date? }
"""

_DATA = """
{"type": "Author", "data": {"name": "ann", "size": 2, "rate": 0.5, "since": "2020-01-02",
 "seen": "2020-01-02T03:04:05Z", "tags": ["a", "b"], "image": [1, 0]}}
{"type": "Book", "data": {"name": "b1", "size": 9007199254740993, "rate": 3, "since": 4,
 "seen": "now", "tags": true, "image": "x.png"}}
{"type": "Book", "data": {"name": "b2"}}
{"edge": "Wrote", "from": "ann", "to": "b1", "data": {"at": 5}}
{"edge": "Cites", "from": "b1", "to": "b2", "data": {"at": "2021-03-04"}}
"""


def test_properties_of_different_types_on_the_way_are_numbers_or_texts() -> None:
    graph = omnigraph.create("memory://mixed", schema=_SCHEMA)
    graph.branch("main").load(Text(_DATA.replace("\n ", " ").strip()), mode="append")
    text = """query q() {
      match {
        $a: Author  $b: Book { name: "b2" }
        path $p = $a <*>{1,} $b
      }
      return { $p }
    }"""
    [row] = graph.branch("main").query(text).to_json_rows()
    author, first, second = row["p"]["nodes"]
    shown = {"size": 2, "rate": 0.5, "since": "2020-01-02", "tags": '["a","b"]', "image": None}
    assert author == author | shown | {"seen": "2020-01-02T03:04:05.000Z"}
    shown = {"size": 2**53 + 1, "rate": 3.0, "since": "4", "tags": "true", "image": "x.png"}
    assert first == first | shown | {"seen": "now"}
    assert set(second.values()) == {"Book", "b2", None}
    assert [edge["at"] for edge in row["p"]["edges"]] == ["5", "2021-03-04"]
