"""A small company that pipelines load: its schema, its sources and its definitions."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import omnigraph
from omnigraph import Graph
from omnigraph.pipelines.config.definition import Pipeline
from omnigraph.pipelines.config.definition_reader import read_pipeline

SCHEMA = """
node Person {
  handle: String @key
  name: String
  level: enum(junior, senior)
  age: I32?
  startedOn: Date?
  seenAt: DateTime?
}
node Team {
  slug: String @key
  name: String
}
node Document {
  slug: String @key
  title: String
  embedding: Vector(4)?
}
node Piece {
  slug: String @key
  text: String
  number: I32
}
node Customer {
  region: String
  account: U32
  @key(region, account)
}
edge MemberOf: Person -> Team {
  @key(@src, @dst)
}
edge Wrote: Person -> Document {
  @key(@src, @dst)
}
edge PartOf: Piece -> Document {
  @key(@src, @dst)
}
edge Serves: Person -> Customer {
  @key(@src, @dst)
}
"""

PEOPLE = """\
login,first,last,years,team,team_name,start
ada,Ada,"Love, lace",36,core,Core,2020-01-02
bo,Bo,Lee,,core,Core,2021-05-06
cy,Cy,Ray,50,infra,Infra,
"""

DOCUMENTS = [
    {
        "id": "d1",
        "title": "One",
        "body": "a b c d e",
        "authors": [{"login": "ada"}, {"login": "bo"}],
        "customer": {"region": "emea", "account": 5},
    },
    {"id": "d2", "title": "Two", "body": None, "authors": [], "customer": None},
]

EVERYTHING = """
graphs: {company: company.omni}
sources:
  people: {kind: files, paths: people.csv}
  documents: {kind: files, paths: documents.jsonl}
into:
  - graph: company
    map:
      nodes:
        - type: Person
          source: people
          set:
            handle: login
            name: {template: "{first} {last}"}
            level: {value: senior}
            age: int(years)
            startedOn: start
            seenAt: to_timestamp(start)
        - {type: Team, source: people, distinct: true, set: {slug: team, name: team_name}}
        - type: Document
          source: documents
          set: {slug: id, title: title, embedding: {embed: title}}
        - type: Piece
          source: documents
          chunk: {text: body, words: 3, overlap: 1}
          set: {slug: {template: "{id}/{chunk.number}"}, text: chunk.text, number: chunk.number}
        - type: Customer
          source: documents
          where: customer IS NOT NULL
          set: {region: customer.region, account: customer.account}
      edges:
        - {type: MemberOf, source: people, from: login, to: team}
        - {type: Wrote, source: documents, explode: authors as author, from: author.login, to: id}
        - type: PartOf
          source: documents
          chunk: {text: body, words: 3, overlap: 1}
          from: {template: "{id}/{chunk.number}"}
          to: id
        - type: Serves
          source: documents
          where: customer IS NOT NULL
          from: {value: ada}
          to: {region: customer.region, account: customer.account}
"""

SIMPLE = """
graphs: {company: company.omni}
source: {kind: files, paths: "in/*.jsonl"}
into:
  - graph: company
    mode: append
    map:
      nodes:
        - type: Person
          set: {handle: login, name: login, level: {value: junior}}
"""


def company(folder: Path, name: str = "company.omni") -> Graph:
    """A graph without entities."""
    return omnigraph.create(folder / name, schema=SCHEMA)


def defined(folder: Path, text: str, *, name: str = "people") -> Pipeline:
    """A definition, read from a file."""
    path = folder / f"{name}.yaml"
    path.write_text(textwrap.dedent(text))
    return read_pipeline(path)


def logins(folder: Path, file: str, *names: str) -> None:
    """A file of records with logins."""
    (folder / "in").mkdir(exist_ok=True)
    lines = (json.dumps({"login": name}) + "\n" for name in names)
    (folder / "in" / file).write_text("".join(lines))


def entities(graph: Graph, branch: str = "main") -> dict[str, list[Any]]:
    """The ids of a branch, by type."""
    found: dict[str, list[Any]] = {}
    for line in _lines(graph, branch):
        found.setdefault(line.get("type") or line["edge"], []).append(line["id"])
    return found


def _lines(graph: Graph, branch: str) -> Iterator[dict[str, Any]]:
    for chunk in graph.branch(branch).export():
        yield from map(json.loads, chunk.splitlines())


def loads(graph: Graph, branch: str = "main") -> list[str | None]:
    """The messages of the commits of pipelines, newest first."""
    found = (commit.message for commit in graph.branch(branch).commits())
    return [message for message in found if message and message.startswith("pipeline ")]
