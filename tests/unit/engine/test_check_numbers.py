"""A number that means different things on two branches is found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from omnigraph.engine.check.graph_check import check_graph
from omnigraph.engine.check.schema_check import SchemaIds
from omnigraph.schema import load_catalog, plan_migration
from omnigraph.schema.accepted_schema import AcceptedSchema
from omnigraph.schema.merging import WrittenSchema, merge_written_schemas
from omnigraph.versioning import Transaction
from omnigraph.writers.schema_migration import build_schema_effects
from unit.schema.merges import first, migrated
from unit.writers.plain_graph import PEOPLE, created

CITY = "node City { name: String @key  size: I32?  mood: enum(sad)? }"
BASE = first(CITY)


def later(added: str, *, numbers_from: int, old: WrittenSchema = BASE) -> WrittenSchema:
    text = old.source.replace("size: I32?", f"size: I32?  {added}")
    return migrated(old, text, numbers_from=numbers_from)


def found(*schemas: AcceptedSchema) -> list[str]:
    numbers = SchemaIds()
    return [message for each in schemas for message in numbers.find_conflicts(each)]


def test_schemas_of_branches_that_were_merged_mean_the_same_by_their_numbers() -> None:
    ours = later("a: I32?  both: I32?", numbers_from=1_000)
    theirs = later("b: I32?  both: I32?", numbers_from=2_000)
    road = "node Road { name: String @key }"
    one, two = (
        migrated(each, f"{each.source} {road}", numbers_from=number)
        for each, number in ((ours, 3_000), (theirs, 4_000))
    )
    schemas = [BASE, ours, theirs, one, two]
    upwards = merge_written_schemas(BASE, one, two).schema
    downwards = merge_written_schemas(BASE, two, one).schema
    renamed = migrated(
        upwards,
        upwards.source.replace("node City", 'node Town @rename_from("City")').replace(
            "enum(sad)", "enum(sad, glad)"
        ),
        numbers_from=9_000,
    )
    extended = migrated(
        downwards,
        downwards.source.replace("node Road {", "node Road { long: I32?"),
        numbers_from=9_900,
    )
    crossed = merge_written_schemas(upwards, renamed, extended).schema
    schemas += [upwards, downwards, renamed, extended, crossed]
    assert found(*(each.accepted for each in schemas)) == []


def test_one_number_for_two_things_is_told_with_both() -> None:
    ours, theirs = later("a: I32?", numbers_from=100), later("b: [I32]?", numbers_from=100)
    assert found(BASE.accepted, ours.accepted, theirs.accepted) == [
        "number 100 is node:City.b ([I32]), and node:City.a (I32) in another schema"
    ]
    road = migrated(BASE, f"{CITY} node Road {{ a: I32? }}", numbers_from=100)
    assert found(ours.accepted, road.accepted) == [
        "number 100 is node:Road (node type), and node:City.a (I32) in another schema"
    ]


def test_a_schema_of_another_graph_is_told() -> None:
    other = replace(BASE.accepted, domain="other")
    assert found(BASE.accepted, other) == [
        f"its identity domain is other, not {BASE.accepted.domain}"
    ]


def test_a_check_reports_schemas_whose_numbers_disagree(tmp_path: Path) -> None:
    graph = created(tmp_path / "graph", PEOPLE)
    review = graph.branches.create("review", at=graph.head())
    graph.apply(PEOPLE.replace("age: I32?", "age: I32?  email: String?"))
    # A branch that counts on as the main one does, which none of ours would do.
    text = PEOPLE.replace("age: I32?", "age: I32?  scores: [F64]?")
    view = graph.view(stream=review)
    plan = plan_migration(view.accepted, load_catalog(text))
    assert plan.schema is not None
    assert check_graph(graph.objects, graph.tables).is_healthy
    digest = graph.schemas.put(text, plan.schema).digest
    effects = tuple(build_schema_effects(view.accepted, plan.schema, graph.tables))
    graph.committer.publish(Transaction(view.snapshot, effects, {}, schema=digest))
    (problem,) = check_graph(graph.objects, graph.tables).problems
    assert problem.kind == "schema"
    assert "node:Person.email (String)" in problem.message
    assert "node:Person.scores ([F64])" in problem.message
