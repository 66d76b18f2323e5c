"""Definitions that tests of pipelines share."""

from __future__ import annotations

import textwrap
from pathlib import Path

from omnigraph.pipelines.config.definition import Pipeline
from omnigraph.pipelines.config.definition_reader import read_pipeline
from omnigraph.schema import load_catalog
from omnigraph.schema.catalog import Catalog

SCHEMA = """
node Person {
  handle: String @key
  name: String
  level: enum(junior, senior)
  age: I32?
  embedding: Vector(4)?
}
node Customer {
  region: String
  account: U32
  name: String
  @key(region, account)
}
node Note {
  text: String
}
edge Knows: Person -> Person {
  since: Date?
  @key(@src, @dst)
}
edge Serves: Person -> Customer
"""

PEOPLE = """
graphs:
  company: company.omni
source: {kind: files, paths: people.jsonl}
into:
  - graph: company
    map:
      nodes:
        - type: Person
          set: {handle: login, name: full_name, level: {value: senior}}
"""


def catalog() -> Catalog:
    """The schema of the tests."""
    return load_catalog(SCHEMA)


def written(folder: Path, text: str, *, name: str = "people.yaml") -> Path:
    """A definition in a file."""
    path = folder / name
    path.write_text(textwrap.dedent(text).lstrip("\n"))
    return path


def read(folder: Path, text: str, *, name: str = "people.yaml") -> Pipeline:
    """A definition that is read from a file."""
    return read_pipeline(written(folder, text, name=name))


def with_map(rules: str) -> str:
    """A definition with this mapping."""
    indented = textwrap.indent(textwrap.dedent(rules).strip("\n"), " " * 6)
    return PEOPLE[: PEOPLE.index("      nodes:")] + indented + "\n"
