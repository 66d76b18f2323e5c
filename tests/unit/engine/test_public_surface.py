"""The public surface: choices as literals, dry runs, retries, and reads of a branch."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

import omnigraph
from omnigraph import Branch, Graph, MergePlan, Snapshot
from omnigraph.engine.load_dispatch import LoadEngine, OnError
from omnigraph.errors import (
    ConflictError,
    GraphExistsError,
    InvalidArgumentError,
    KeyConflictError,
    LoadError,
)
from omnigraph.ids import generate_ulid
from omnigraph.writers.inputs import Dialect
from omnigraph.writers.load_records import LoadMode

SCHEMA = "node Person { name: String @key  age: I32? }"
WIDER = "node Person { name: String @key  age: I32?  nick: String? }"
AGE = "query older($name: String) { update Person set { age: 40 } where name = $name }"
ALL = "query all() { match { $p: Person } return { $p.name as name, $p.age as age } }"
# What a snapshot offers to the layers above, and what says which state it is.
_LAYERS = {
    "answer",
    "answer_named",
    "answer_in_turn",
    "describe",
    "list_readable_types",
    "type_key",
    "open_for",
    "view",
    "catalog",
}
_OWN = {"at", "branch", "to_json", *_LAYERS}


@pytest.fixture
def graph() -> Iterator[Graph]:
    with omnigraph.create(f"memory://{generate_ulid()}", schema=SCHEMA) as graph:
        graph.branch().load([{"name": "ada", "age": 1}], type="Person", mode="append")
        yield graph


def test_the_literals_are_the_choices_of_the_engine() -> None:
    for literal, choices in (
        (omnigraph.LoadModeName, LoadMode),
        (omnigraph.LoadEngineName, LoadEngine),
        (omnigraph.OnErrorName, OnError),
        (omnigraph.DialectName, Dialect),
    ):
        assert set(get_args(literal)) == {each.value for each in choices}


def test_a_branch_offers_what_a_snapshot_offers(graph: Graph) -> None:
    offered = {name for name in dir(Snapshot) if not name.startswith("_")} - _OWN
    assert offered <= set(dir(Branch))
    main, now = graph.branch(), graph.branch().snapshot()
    assert main.to_arrow("Person").equals(now.to_arrow("Person"))
    assert main.dataset("Person").count_rows() == main.count("Person") == 1
    assert main.entity("Person", "ada") == now.entity("Person", "ada") is not None
    assert main.tables() == now.tables()
    assert (main.uri, main.version, main.commit) == (now.uri, now.version, now.commit)
    assert list(main.to_networkx().nodes) == [("Person", "ada")]


def test_a_graph_that_is_there_may_be_opened_instead(graph: Graph) -> None:
    with pytest.raises(GraphExistsError):
        omnigraph.create(graph.uri, schema=SCHEMA)
    with omnigraph.create(graph.uri, schema=SCHEMA, exist_ok=True, actor="bob") as again:
        assert again.branch().count("Person") == 1
        assert again.actor == "bob"


def test_queries_and_mutations_may_be_in_files(graph: Graph, tmp_path: Path) -> None:
    path = tmp_path / "all.gq"
    path.write_text(f"{ALL}\n{AGE}")
    main = graph.branch()
    main.mutate(path, name="older", params={"name": "ada"})
    assert main.query(path, name="all").to_pylist() == [{"name": "ada", "age": 40}]
    assert "Person" in repr(main.explain(path, name="all"))
    with pytest.raises(InvalidArgumentError, match=r"none\.gq: No such file"):
        main.query(tmp_path / "none.gq")


def test_what_a_shell_prints_of_a_report_is_one_short_line(graph: Graph) -> None:
    tag = graph.tag("first")
    made = graph.branch().load(
        [{"name": "bob"}], type="Person", mode="append", message="a long message " * 20
    )
    for report in (tag, made.commit, made, *graph.index_status()):
        assert len(repr(report)) < 160, repr(report)
        assert "\n" not in repr(report)


@pytest.mark.parametrize("on_error", ["fail", "quarantine"])
def test_a_dry_load_checks_everything_and_writes_nothing(
    graph: Graph, on_error: omnigraph.OnErrorName
) -> None:
    main, before = graph.branch(), graph.branch().head
    people = [{"name": "bob"}, {"name": "cyd"}]
    tried = main.load(people, type="Person", mode="append", on_error=on_error, dry_run=True)
    assert (tried.nodes, tried.is_dry, tried.commit) == ({"Person": 2}, True, before)
    assert tried.to_json()["dry_run"] is True
    assert "dry_run=True" in repr(tried)
    assert (main.head, main.count("Person")) == (before, 1)
    with pytest.raises(LoadError):
        main.load([{"age": 1}], type="Person", mode="append", dry_run=True)
    if on_error == "fail":
        with pytest.raises(KeyConflictError):
            main.load([{"name": "ada"}], type="Person", mode="append", dry_run=True)


def test_a_dry_mutation_counts_what_it_would_change(graph: Graph) -> None:
    main, before = graph.branch(), graph.branch().head
    tried = main.mutate(AGE, params={"name": "ada"}, dry_run=True)
    assert (tried.affected_nodes, tried.commit, tried.is_dry) == (1, None, True)
    assert main.head == before


def test_a_dry_schema_change_answers_with_its_plan(graph: Graph) -> None:
    main, before = graph.branch(), graph.branch().head
    tried = main.apply_schema(WIDER, dry_run=True)
    assert (len(tried.plan.steps), tried.plan.supported, tried.commit) == (1, True, None)
    assert not main.apply_schema("node Person { name: I32 @key }", dry_run=True).plan.supported
    assert main.head == before


def test_a_dry_merge_is_a_plan(graph: Graph) -> None:
    main = graph.branch()
    review = graph.create_branch("review")
    review.mutate(AGE, params={"name": "ada"})
    plan = main.merge(review, dry_run=True)
    assert isinstance(plan, MergePlan)
    assert (plan.outcome, plan.conflict_count) == ("fast_forward", 0)
    assert main.revert(main.head, dry_run=True).outcome == "reverted"
    assert main.cherry_pick(review.head, dry_run=True).outcome == "cherry_picked"
    assert main.head.version == 1
    with pytest.raises(InvalidArgumentError, match="makes no commit"):
        main.merge(review, dry_run=True, message="x")  # type: ignore[call-overload]


def test_updates_of_one_entity_from_many_threads_all_succeed(graph: Graph) -> None:
    main = graph.branch()
    failures: list[ConflictError] = []

    def update() -> None:
        try:
            for _ in range(5):
                main.mutate(AGE, params={"name": "ada"}, retries=40)
        except ConflictError as failure:
            failures.append(failure)

    threads = [threading.Thread(target=update) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert main.head.version == 41


def test_work_that_conflicts_is_done_again_within_its_bound(graph: Graph) -> None:
    main = graph.branch()
    calls: list[Branch] = []

    def work(branch: Branch) -> int:
        calls.append(branch)
        if len(calls) % 3:
            raise ConflictError("overtaken")
        return len(calls)

    assert main.retrying(work) == 3
    assert calls == [main] * 3
    with pytest.raises(ConflictError):
        main.retrying(work, retries=1)
    assert len(calls) == 5
    with pytest.raises(InvalidArgumentError, match="retries"):
        main.retrying(work, retries=-1)


@pytest.mark.parametrize("form", get_args(omnigraph.ExportFormatName))
def test_files_are_exported_without_spark(tmp_path: Path, form: omnigraph.ExportFormatName) -> None:
    with omnigraph.create(tmp_path / "g.omni", schema=SCHEMA) as graph:
        main = graph.branch()
        main.load([{"name": "ada", "age": 1}, {"name": "bob"}], type="Person", mode="append")
        written = main.export_files(tmp_path / "out", format=form, types=["Person"])
        assert (written.nodes, written.format, written.files) == ({"Person": 2}, form, 1)
        is_document = form in ("graphml", "gexf")
        assert (tmp_path / "out").is_file() == is_document
        assert (tmp_path / "out" / "_SUCCESS").exists() != is_document
        if form == "parquet":
            main.load(tmp_path / "out" / "nodes" / "Person", type="Person", mode="merge")
            assert main.count("Person") == 2
        with pytest.raises(InvalidArgumentError, match=r"not empty|is there$"):
            main.export_files(tmp_path / "out", format=form)
        with pytest.raises(InvalidArgumentError, match="'xlsx' is not one of"):
            main.export_files(tmp_path / "other", format="xlsx")  # type: ignore[arg-type]
