"""The change feed of a graph as a source: what tasks read between two commits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import omnigraph
from omnigraph import Branch, Graph
from omnigraph.errors import CommitNotFoundError
from omnigraph.pipelines.config.definition import FeedSource
from omnigraph.pipelines.run.pipeline_run import run_pipeline
from omnigraph.pipelines.sources import open_source, read_source_state
from spark.pipeline_world import SIMPLE, company, defined

pytestmark = pytest.mark.usefixtures("spark")

PERSON = "node Person {\n  handle: String @key\n  name: String\n  age: I32?\n}\n"
TEAM = "node Team {\n  slug: String @key\n  name: F64?\n}\n"
MEMBER = "edge MemberOf: Person -> Team {\n  since: Date?\n  @key(@src, @dst)\n}\n"


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Graph]:
    with omnigraph.create(tmp_path / "other.omni", schema=PERSON) as graph:
        yield graph


def _person(main: Branch, handle: str, **others: object) -> None:
    row = {"type": "Person", "data": {"handle": handle, "name": handle, **others}}
    main.load([row], mode="merge")


def _records(graph: Graph, spark: SparkSession, **given: Any) -> list[dict[str, Any]]:
    source = FeedSource(graph.uri, **given)
    with open_source(source, read_source_state(source), spark) as found:
        rows: list[dict[str, Any]] = found.toArrow().to_pylist()
    return sorted(rows, key=lambda row: (row["type"], row["id"], row["commit"]))


def test_an_entity_that_several_commits_changed_is_one_record(
    other: Graph, spark: SparkSession
) -> None:
    main = other.branch()
    for handle, age in (("ada", 1), ("bo", 1), ("cy", 1), ("ada", 2)):
        _person(main, handle, age=age)
    main.mutate('query d() { delete Person where handle = "bo" }')
    rows = _records(other, spark)
    told = [(row["op"], row["id"], row["properties"]["age"]) for row in rows]
    assert told == [("insert", "ada", 2), ("insert", "cy", 1)]
    every = _records(other, spark, per="change", ops=("insert", "update", "delete"))
    assert [(row["op"], row["id"], row["properties"]["age"]) for row in every] == [
        ("insert", "ada", 1),
        ("update", "ada", 2),
        ("insert", "bo", 1),
        ("delete", "bo", 1),
        ("insert", "cy", 1),
    ]
    assert len({row["commit"] for row in every}) == 5


def test_what_was_there_before_is_updated_or_deleted(other: Graph, spark: SparkSession) -> None:
    main = other.branch()
    _person(main, "ada", age=1)
    _person(main, "bo", age=1)
    source = FeedSource(other.uri, ops=("insert", "update", "delete"))
    first = read_source_state(source)
    main.mutate('query d() { delete Person where handle = "ada" }')
    _person(main, "ada", age=3)
    main.mutate('query d() { delete Person where handle = "bo" }')
    with open_source(source, read_source_state(source, after=first.position), spark) as found:
        rows = {row["id"]: row for row in found.toArrow().to_pylist()}
    assert {name: row["op"] for name, row in rows.items()} == {"ada": "update", "bo": "delete"}
    assert (rows["ada"]["properties"]["age"], rows["bo"]["properties"]["age"]) == (3, 1)


def test_a_type_that_is_renamed_meanwhile_stays_the_same_type(
    other: Graph, spark: SparkSession
) -> None:
    main = other.branch()
    for handle in ("ada", "bo", "cy"):
        _person(main, handle, age=1)
    main.apply_schema(PERSON.replace("Person {", 'Human @rename_from("Person") {'))
    main.mutate('query d() { delete Human where handle = "bo" }')
    main.mutate('query u() { update Human set { age: 2 } where handle = "cy" }')
    rows = _records(other, spark, ops=("insert", "update", "delete"))
    told = [(row["op"], row["type"], row["id"], row["properties"]["age"]) for row in rows]
    assert told == [("insert", "Human", "ada", 1), ("insert", "Human", "cy", 2)]
    assert _records(other, spark, types=("Human",)) == [
        row for row in rows if row["op"] == "insert"
    ]
    every = _records(other, spark, per="change", ops=("insert", "update", "delete"))
    assert [(row["op"], row["type"], row["id"]) for row in every] == [
        ("insert", "Human", "ada"),
        ("insert", "Human", "bo"),
        ("delete", "Human", "bo"),
        ("insert", "Human", "cy"),
        ("update", "Human", "cy"),
    ]


def test_two_types_that_had_one_name_in_turn_are_two(other: Graph, spark: SparkSession) -> None:
    main = other.branch()
    _person(main, "ada", age=1)
    first = read_source_state(FeedSource(other.uri))
    human = PERSON.replace("Person {", 'Human @rename_from("Person") {')
    main.apply_schema(human)
    main.mutate('query d() { delete Human where handle = "ada" }')
    main.apply_schema(human.replace(' @rename_from("Person")', "") + PERSON)
    _person(main, "ada", age=2)
    source = FeedSource(other.uri, ops=("insert", "update", "delete"))
    with open_source(source, read_source_state(source, after=first.position), spark) as found:
        rows = found.toArrow().to_pylist()
    assert sorted((row["op"], row["type"], row["id"]) for row in rows) == [
        ("delete", "Human", "ada"),
        ("insert", "Person", "ada"),
    ]


def test_a_run_takes_several_changes_of_one_entity(tmp_path: Path, other: Graph) -> None:
    text = SIMPLE.replace('{kind: files, paths: "in/*.jsonl"}', "{kind: graph, uri: other.omni}")
    text = text.replace("login, name: login", "id, name: properties.name").replace(
        "level: {value: junior}", "level: {value: junior}, age: int(properties.age)"
    )
    main = other.branch()
    with company(tmp_path) as graph:
        for age in (1, 2, 3):
            _person(main, "ada", age=age)
        ended = run_pipeline(defined(tmp_path, text.replace("append", "merge")))
        assert ended.status == "succeeded", ended
        found = graph.branch().query("query q() { match { $p: Person } return { $p.age } }")
        assert found.to_pylist() == [{"p.age": 3}]


def test_types_may_come_later_and_a_property_of_two_types_is_a_text(
    other: Graph, spark: SparkSession
) -> None:
    main = other.branch()
    _person(main, "ada")
    main.apply_schema(PERSON + TEAM + MEMBER)
    rows = [
        {"type": "Team", "data": {"slug": "core", "name": 1.5}},
        {"edge": "MemberOf", "from": "ada", "to": "core", "data": {"since": "2024-01-02"}},
    ]
    main.load(rows, mode="append")
    found = _records(other, spark, types=("Team", "MemberOf"))
    assert [(row["type"], row["from"], row["to"]) for row in found] == [
        ("MemberOf", "ada", "core"),
        ("Team", None, None),
    ]
    assert [row["properties"]["since"] for row in found] == ["2024-01-02", None]
    everything = _records(other, spark)
    assert {row["type"]: row["properties"]["name"] for row in everything} == {
        "MemberOf": None,
        "Person": "ada",
        "Team": "1.5",
    }


def test_a_position_is_between_commits_and_cut_by_what_they_wrote(
    tmp_path: Path, other: Graph
) -> None:
    main = other.branch()
    for name in ("ada", "bo", "cy"):
        _person(main, name)
    commits = [commit.id for commit in main.commits()][::-1]
    source = FeedSource(other.uri, changes_max=2)
    first = read_source_state(source).position
    assert first["to"] == commits[-2]
    second = read_source_state(source, after=first).position
    assert (second["from"], second["to"]) == (commits[-2], commits[-1])
    assert read_source_state(source, after=second).is_empty
    assert read_source_state(FeedSource(other.uri, start="now")).is_empty
    with omnigraph.create(tmp_path / "third.omni", schema=PERSON) as third:
        elsewhere = FeedSource(third.uri)
        with pytest.raises(CommitNotFoundError, match="has no commit"):
            read_source_state(elsewhere, after=first)


def test_a_large_commit_is_read_by_tasks_and_not_by_the_driver(
    other: Graph, spark: SparkSession
) -> None:
    names = pa.array([f"person-{number:07d}" for number in range(_MANY)])
    rows = pa.table({"handle": names, "name": names})
    other.branch().load(rows, mode="append", type="Person")
    del rows, names
    source = FeedSource(other.uri)
    # From here on the peak is counted anew.
    Path("/proc/self/clear_refs").write_text("5")
    before = _memory("VmRSS")
    with open_source(source, read_source_state(source), spark) as found:
        assert found.where("op = 'insert' AND properties.name = id").count() == _MANY
    assert _memory("VmHWM") - before < _GROWTH_KB_MAX


_MANY = 150_000
_GROWTH_KB_MAX = 32 * 1024


def _memory(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))
