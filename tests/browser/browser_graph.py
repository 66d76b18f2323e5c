"""The graph that the pages show: a team with notes, and a branch that conflicts with main."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

import omnigraph
from omnigraph.ids import generate_ulid
from omnigraph.pipelines.ledger.run_ledger import SUCCEEDED, Ledger, TargetRun, encode_target

ACTORS: Final = ("ada", "cyd", "dan", "eve", "bot", "ines")
SCHEMA: Final = """\
node Person @description("Who works here") {
  handle: String @key
  name: String @index
  title: String?
  level: enum(junior, senior)
  age: I64?
}
node Note {
  slug: String @key
  body: String @index
  vec: Vector(2)?
}
edge Knows: Person -> Person { since: Date? }
edge Wrote: Person -> Note
"""
# Cyd reads people and who knows whom, eve people and who wrote, but not what, and dan nothing. The
# bot drafts and proposes; Ines reviews and merges what it proposed.
POLICY: Final = """\
version: 1
groups: {all: [ada], some: [cyd], others: [eve], agents: [bot], stewards: [ines]}
protected_branches: [main]
rules:
  - id: everything
    allow: {actors: {group: all}, actions: [read, change, export, branch_create, branch_delete,
      branch_merge, schema_apply]}
  - id: people
    allow: {actors: {group: some}, actions: [read], types: [Person, Knows]}
  - id: writers
    allow: {actors: {group: others}, actions: [read], types: [Person, Wrote]}
  - id: agents-propose
    allow: {actors: {group: agents}, actions: [read, branch_create, propose]}
  - id: agents-write-drafts
    allow: {actors: {group: agents}, actions: [change], branch_scope: unprotected}
  - id: stewards-review
    allow: {actors: {group: stewards}, actions: [read, review, branch_delete]}
  - id: stewards-merge
    allow:
      actors: {group: stewards}
      actions: [branch_merge]
      target_branch_scope: protected
      requires: {approvals: 1, from: stewards, threads_resolved: true}
"""
PEOPLE: Final = 60
RETITLE: Final = """\
query retitle($handle: String, $title: String) {
  update Person set { title: $title } where handle = $handle
}
"""


def create_graph(path: Path) -> str:
    with omnigraph.create(path, schema=SCHEMA, actor="ada", durable=False) as graph:
        main = graph.branch()
        main.load(list(_iter_records()), mode="append", message="everybody who is here")
        graph.tag("start")
        review = graph.create_branch("review")
        hire = {"handle": "zoe", "name": "Zoe Lang", "level": "junior", "age": 29}
        review.load([{"type": "Person", "data": hire}], mode="append", message="Zoe joins")
        knows = {"edge": "Knows", "from": "zoe", "to": "p000"}
        review.load([knows], mode="append", message="Zoe knows the founder")
        review.mutate(RETITLE, params={"handle": "p001", "title": "Lead"}, message="a new lead")
        main.mutate(RETITLE, params={"handle": "p001", "title": "Head"}, message="a new head")
    record_run(path)
    return str(path)


def record_run(path: Path) -> None:
    """A run of a pipeline that left a record out, as such a run writes it."""
    rejects = path.parent / f"rejects-{generate_ulid()}.parquet"
    row = {"place": "people.csv line 3", "file": "people.csv", "number": 3, "type": "Person"}
    row |= {"id": "p9", "property": "level", "rule": "enum", "reason": "'boss' is not a level"}
    pq.write_table(pa.Table.from_pylist([row | {"raw": '{"level": "boss"}'}]), rejects)
    ledger = Ledger.open(str(path), "crm")
    target = TargetRun("team/main", "team", "main", "k", SUCCEEDED, rows_read=61, rejected=1)
    target = replace(target, entities={"Person": PEOPLE}, rejects=str(rejects))
    log = ledger.start_run(
        {
            "slot": "2026-11-19",
            "digest": "d",
            "trigger": "manual",
            "targets": [encode_target(target)],
        }
    )
    log.record_target(target)
    log.add_event("finished", {"status": SUCCEEDED})


def _iter_records() -> list[dict[str, object]]:
    people: list[dict[str, object]] = [
        {
            "type": "Person",
            "data": {
                "handle": f"p{at:03}",
                "name": f"Person {at}",
                "title": "Engineer" if at % 2 else None,
                "level": "senior" if at % 3 else "junior",
                # More digits than a number of JavaScript holds.
                "age": 2**53 + 1 if at == 0 else 20 + at,
            },
        }
        for at in range(PEOPLE)
    ]
    notes: list[dict[str, object]] = [
        {"type": "Note", "data": {"slug": f"n{at}", "body": text, "vec": [at, 1]}}
        for at, text in enumerate(("storms at sea", "a harbour in the sun", "<b>quiet</b> hills"))
    ]
    chain: list[dict[str, object]] = [
        {"edge": "Knows", "from": f"p{at:03}", "to": f"p{at + 1:03}"} for at in range(PEOPLE - 1)
    ]
    wrote: list[dict[str, object]] = [
        {"edge": "Wrote", "from": "p000", "to": f"n{at}"} for at in range(3)
    ]
    return [*people, *notes, *chain, *wrote]
