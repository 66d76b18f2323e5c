"""Branches: loads, mutations, schema changes, conflicts, and what a branch shares with others."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph
import places
from omnigraph import Branch, Commit, Graph, Snapshot, errors
from omnigraph.engine.graph import create_on
from omnigraph.engine.resources import Environment, open_storage
from omnigraph.lang.lexer import Mode
from unit.engine.company import CHANGES, QUERIES, SCHEMA, ages, company, person


@pytest.fixture(params=places.kinds())
def graph(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Graph]:
    """A graph with two people and a team, wherever a graph may live."""
    uri = places.uri_of(request.param, tmp_path)
    with company(uri, actor="ada") as graph:
        yield graph


@pytest.fixture
def main() -> Iterator[Branch]:
    """The main branch of a graph."""
    with company() as graph:
        yield graph.branch()


# ---- the life of a graph ----


def test_work_on_a_branch_is_not_seen_on_the_other(graph: Graph) -> None:
    main = graph.branch("main")
    review = graph.create_branch("review/new-hires", source=main)
    review.load([person("Cyd", 29)], mode="merge")
    review.mutate(CHANGES, name="join", params={"who": "Cyd", "team": "Engines"})
    assert ages(review) == {"Ada": 36, "Bob": 41, "Cyd": 29}
    assert review.count("MemberOf") == 2
    assert ages(main) == {"Ada": 36, "Bob": 41}
    assert graph.branches() == ["main", "review/new-hires"]


def test_a_write_answers_with_its_commit(graph: Graph) -> None:
    main = graph.branch()
    before = main.head
    result = main.load([person("Cyd"), person("Dov")], mode="append", message="hires")
    assert result.nodes == {"Person": 2}
    assert result.edges == {}
    assert result.total_entities == 2
    assert (result.branch, result.mode, result.uri) == ("main", "append", graph.uri)
    commit = result.commit
    assert commit == main.head == graph.commit(commit.id)
    assert (commit.parents, commit.version) == ((before.id,), before.version + 1)
    assert (commit.actor, commit.message, commit.branch) == ("ada", "hires", "main")
    assert commit.created_at > before.created_at
    assert not commit.is_maintenance


def test_commits_are_listed_newest_first_with_those_before_the_branch(graph: Graph) -> None:
    main = graph.branch()
    review = graph.create_branch("review")
    made = review.load([person("Cyd")], mode="append").commit
    assert review.head == made
    assert [commit.version for commit in review.commits()] == [2, 1, 0]
    assert [commit.branch for commit in review.commits()] == ["review", "main", "main"]
    assert list(review.commits(limit=1)) == [made]
    assert list(main.commits()) == list(review.commits())[1:]
    with pytest.raises(errors.InvalidArgumentError):
        review.commits(limit=-1)


def test_a_fresh_branch_is_at_the_commit_it_started_from(graph: Graph) -> None:
    assert graph.create_branch("review").head == graph.branch().head


# ---- loads ----


def test_a_load_takes_a_path_and_a_table_of_one_type(graph: Graph, tmp_path: Path) -> None:
    path = tmp_path / "people.jsonl"
    path.write_text('{"type": "Person", "data": {"name": "Cyd", "age": 29}}\n')
    main = graph.branch()
    main.load(path, mode="append")
    main.load(pa.table({"name": ["Dov", "Eve"], "age": [1, 2]}), type="Person", mode="append")
    assert ages(main) == {"Ada": 36, "Bob": 41, "Cyd": 29, "Dov": 1, "Eve": 2}


def test_an_export_loads_back_byte_for_byte(graph: Graph, tmp_path: Path) -> None:
    path = tmp_path / "export.jsonl"
    path.write_bytes(b"".join(graph.branch().export()))
    copy = omnigraph.create(places.fresh_uri(), schema=SCHEMA)
    copy.branch().load(path, mode="append")
    assert b"".join(copy.branch().export()) == path.read_bytes()
    assert b"".join(graph.branch().export(types=["Team"])).count(b"\n") == 1


def test_modes_append_merge_and_overwrite(main: Branch) -> None:
    with pytest.raises(errors.KeyConflictError, match="Person 'Ada' already exists"):
        main.load([person("Ada", 1)], mode="append")
    main.load([person("Ada", 37), person("Cyd", 1)], mode="merge")
    assert ages(main) == {"Ada": 37, "Bob": 41, "Cyd": 1}
    result = main.load([{"type": "Note", "data": {"text": "x"}}], mode="overwrite")
    assert result.nodes == {"Note": 1}
    assert (main.count("Person"), main.count("Note")) == (3, 1)


def test_an_unknown_mode_is_refused(main: Branch) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="'upsert' is not one of"):
        main.load([person("Cyd")], mode="upsert")  # type: ignore[arg-type]


def test_an_empty_load_is_a_commit_that_changes_nothing(main: Branch) -> None:
    before = main.head
    result = main.load([], mode="append", message="nothing new")
    assert result.commit.parents == (before.id,)
    assert result.total_entities == 0
    assert not result.commit.is_maintenance
    assert ages(main) == {"Ada": 36, "Bob": 41}


def test_a_refused_load_writes_nothing(main: Branch) -> None:
    before = main.head
    with pytest.raises(errors.WriteRefusedError):
        main.load([person("Cyd"), {"edge": "Knows", "from": "Cyd", "to": "Nobody"}], mode="append")
    assert main.head == before


def test_a_load_repeated_with_its_key_returns_its_first_commit(main: Branch) -> None:
    records = [person("Cyd"), person("Dov"), {"edge": "Knows", "from": "Cyd", "to": "Dov"}]
    first = main.load(records, mode="append", key="job-7")
    main.load([person("Eve")], mode="append")
    again = main.load(records, mode="append", key="job-7")
    assert again == first
    assert again.nodes == {"Person": 2}
    assert again.edges == {"Knows": 1}
    assert len(ages(main)) == 5


def test_a_large_load_goes_through(graph: Graph) -> None:
    rows = pa.table({"name": [f"p{number}" for number in range(5_000)]})
    result = graph.branch().load(rows, type="Person", mode="append")
    assert result.nodes == {"Person": 5_000}
    assert graph.branch().count("Person") == 5_002


# ---- mutations and reads ----


def test_a_mutation_answers_what_it_did(graph: Graph) -> None:
    main = graph.branch()
    hired = main.mutate(CHANGES, name="hire", params={"name": "Cyd", "age": 29})
    assert (hired.query_name, hired.affected_nodes, hired.affected_edges) == ("hire", 1, 0)
    assert hired.commit == main.head
    left = main.mutate(CHANGES, name="leave", params={"who": "Ada"}, message="bye")
    assert (left.affected_nodes, left.affected_edges) == (1, 1)
    assert left.commit is not None
    assert left.commit.message == "bye"
    assert ages(main) == {"Bob": 41, "Cyd": 29}


def test_a_mutation_that_changes_nothing_makes_no_commit(main: Branch) -> None:
    before = main.head
    result = main.mutate(CHANGES, name="birthday", params={"who": "Nobody", "age": 1})
    assert (result.commit, result.affected_nodes) == (None, 0)
    assert main.head == before


def test_a_query_sees_the_newest_commit_and_binds_its_parameters(main: Branch) -> None:
    main.load([person("Cyd", 90)], mode="append")
    found = main.query(QUERIES, name="aged", params={"at_least": 40})
    assert found.to_pylist() == [{"p.name": "Bob"}, {"p.name": "Cyd"}]
    with pytest.raises(errors.ParameterError, match="at_least"):
        main.query(QUERIES, name="aged")
    with pytest.raises(errors.QueryNotFoundError):
        main.query(QUERIES)


def test_queries_and_mutations_are_told_apart(main: Branch) -> None:
    with pytest.raises(errors.WrongQueryKindError, match="'everybody' is a read"):
        main.mutate(QUERIES, name="everybody")
    with pytest.raises(errors.WrongQueryKindError, match="'leave' is a mutation"):
        main.query(CHANGES, name="leave", params={"who": "Ada"})
    assert len(ages(main)) == 2


def test_now_is_one_instant_of_the_request(main: Branch) -> None:
    text = "query q() { match { $t: Team } return { now() as at } }"
    (row,) = main.query(text).to_pylist()
    assert abs((row["at"] - main.head.created_at.replace(tzinfo=row["at"].tzinfo)).days) <= 1


# ---- preconditions and conflicts ----


def test_a_write_on_an_expected_head_fails_when_the_head_moved(main: Branch) -> None:
    seen = main.head
    main.load([person("Cyd")], mode="append", if_commit=seen)
    for write in (
        lambda: main.load([person("Dov")], mode="append", if_commit=seen),
        lambda: main.mutate(CHANGES, name="leave", params={"who": "Ada"}, if_commit=seen.id),
        lambda: main.mutate(CHANGES, name="leave", params={"who": "Nobody"}, if_commit=seen),
    ):
        with pytest.raises(errors.PreconditionFailedError) as caught:
            write()
        assert (caught.value.expected, caught.value.actual) == (seen.id, main.head.id)
    assert set(ages(main)) == {"Ada", "Bob", "Cyd"}


def test_compaction_does_not_break_an_expected_head(tmp_path: Path) -> None:
    graph = company(places.fresh_uri(tmp_path / "org.omni"), durable=False)
    main, last = graph.branch(), None
    for number in range(80):
        last = main.load([person(f"p{number}")], mode="append").commit
    graph.close()
    main = omnigraph.open(graph.uri, durable=False).branch()
    assert last is not None
    while not main.head.is_maintenance:
        last = main.load([person(f"q{main.head.version}")], mode="append").commit
        main.graph._session.resources.background.submit(lambda: None).result(timeout=60)
    main.load([person("Cyd")], mode="append", if_commit=last)


def test_threads_that_insert_at_once_all_succeed(graph: Graph) -> None:
    main = graph.branch()
    barrier = threading.Barrier(8)

    def hire(number: int) -> list[str]:
        barrier.wait()
        names = [f"p{number}-{each}" for each in range(5)]
        results = [main.mutate(CHANGES, name="hire", params={"name": name}) for name in names]
        return [result.commit.id for result in results if result.commit is not None]

    with ThreadPoolExecutor(8) as pool:
        commits = [commit for made in pool.map(hire, range(8)) for commit in made]
    assert len(commits) == 40
    assert len(ages(main)) == 42
    assert {commit.id for commit in main.commits()} >= set(commits)


def test_of_threads_that_append_one_key_one_succeeds(graph: Graph) -> None:
    main = graph.branch()
    barrier = threading.Barrier(8)

    def append(number: int) -> bool:
        barrier.wait()
        try:
            main.load([person("Zoe", number)], mode="append")
        except errors.KeyConflictError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(append, range(8))) == [False] * 7 + [True]
    assert len(ages(main)) == 3


def test_no_update_is_lost_between_threads(main: Branch) -> None:
    barrier = threading.Barrier(4)

    def grow_older(_: int) -> int:
        barrier.wait()
        done = 0
        while done < 5:
            head = main.snapshot()
            age = (ages(head)["Ada"] or 0) + 1
            params = {"who": "Ada", "age": age}
            try:
                main.mutate(CHANGES, name="birthday", params=params, if_commit=head.commit)
            except (errors.ConflictError, errors.PreconditionFailedError):
                continue
            done += 1
        return done

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(grow_older, range(4))) == 20
    assert ages(main)["Ada"] == 36 + 20


# ---- schema ----

WIDER = SCHEMA.replace("  age: I32?\n", "  age: I32?\n  email: String?\n")


def test_a_schema_change_is_a_commit_of_one_branch(graph: Graph) -> None:
    main = graph.branch()
    other = graph.create_branch("other")
    plan = main.plan_schema(WIDER)
    assert (plan.supported, [str(step) for step in plan.steps]) == (
        True,
        ["add node:Person.email: String?"],
    )
    result = main.apply_schema(WIDER, message="emails")
    assert result.commit == main.head
    assert (result.version, result.plan.steps) == (main.head.version, plan.steps)
    assert (main.schema, other.schema) == (WIDER, SCHEMA)
    main.load([{"type": "Person", "data": {"name": "Cyd", "email": "c@x"}}], mode="append")
    with pytest.raises(errors.LoadError):
        other.load([{"type": "Person", "data": {"name": "Cyd", "email": "c@x"}}], mode="append")
    other.load([person("Dov")], mode="append")
    text = "query q() { match { $p: Person } return { $p.email } order { $p.name } }"
    assert [row["p.email"] for row in main.query(text).to_pylist()] == [None, None, "c@x"]
    with pytest.raises(errors.CompileError):
        other.query(text)


def test_the_schema_in_force_is_no_commit(main: Branch) -> None:
    before = main.head
    result = main.apply_schema(SCHEMA)
    assert (result.commit, result.version) == (None, before.version)
    assert main.head == before


def test_an_unsupported_schema_is_planned_and_not_applied(main: Branch) -> None:
    narrower = SCHEMA.replace("age: I32?", "age: String?")
    assert not main.plan_schema(narrower).supported
    with pytest.raises(errors.MigrationUnsupportedError):
        main.apply_schema(narrower)
    assert main.schema == SCHEMA


def test_a_query_is_compiled_anew_for_another_schema(main: Branch) -> None:
    text = "query q() { match { $p: Person } return { $p } }"
    assert {"email" in row["p"] for row in main.query(text).to_json_rows()} == {False}
    main.apply_schema(WIDER)
    assert {"email" in row["p"] for row in main.query(text).to_json_rows()} == {True}


def test_a_schema_is_applied_while_others_insert(main: Branch) -> None:
    stop = threading.Event()

    def insert() -> int:
        done = 0
        while not stop.is_set():
            main.load([person(f"p{done}")], mode="append")
            done += 1
        return done

    with ThreadPoolExecutor(1) as pool:
        inserted = pool.submit(insert)
        try:
            applied = [main.apply_schema(text).commit for text in (WIDER, SCHEMA) * 5]
        finally:
            stop.set()
        assert None not in applied
        done = inserted.result(timeout=60)
    assert main.count("Person") == 2 + done
    assert main.graph.check().problems == ()


# ---- branches ----


def test_a_branch_starts_anywhere(graph: Graph) -> None:
    main = graph.branch()
    first = main.head
    main.load([person("Cyd")], mode="append")
    sources: list[Commit | Snapshot | str | Branch] = [first, graph.snapshot(first), "main", main]
    for number, source in enumerate(sources):
        branch = graph.create_branch(f"b{number}", source=source)
        assert len(ages(branch)) == (2 if number < 2 else 3)


def test_a_branch_cannot_start_in_another_graph(graph: Graph) -> None:
    other = company()
    for source in (other.branch(), other.branch().snapshot()):
        with pytest.raises(errors.InvalidArgumentError, match="source"):
            graph.create_branch("review", source=source)
    with pytest.raises(errors.CommitNotFoundError):
        graph.create_branch("review", source=other.branch().head)
    assert graph.branches() == ["main"]


def test_a_branch_name_is_given_once(graph: Graph) -> None:
    graph.create_branch("review")
    with pytest.raises(errors.BranchExistsError):
        graph.create_branch("review")
    for name in ("main", ""):
        with pytest.raises(errors.BranchRefusedError):
            graph.create_branch(name)
    with pytest.raises(errors.BranchNotFoundError):
        graph.create_branch("x", source="nowhere")
    with pytest.raises(errors.BranchNotFoundError):
        graph.branch("nowhere")
    with pytest.raises(errors.BranchRefusedError):
        graph.delete_branch("main")


def test_a_recreated_branch_is_another_one(graph: Graph) -> None:
    old = graph.create_branch("review")
    made = old.load([person("Cyd")], mode="append").commit
    kept = old.snapshot()
    graph.delete_branch("review")
    new = graph.create_branch("review")
    assert set(ages(new)) == {"Ada", "Bob"}
    for use in (lambda: ages(old), lambda: old.load([person("Dov")], mode="append")):
        with pytest.raises(errors.BranchGoneError):
            use()
    with pytest.raises(errors.CommitNotFoundError):
        graph.commit(made.id)
    assert set(ages(kept)) == {"Ada", "Bob", "Cyd"}


def test_another_process_sees_a_write_without_asking_for_it(tmp_path: Path) -> None:
    uri = places.fresh_uri(tmp_path / "org.omni")
    graph = company(uri)
    # Another durability shares nothing with the first handle, as if it were in another process.
    other = omnigraph.open(uri, durable=False)
    assert other._session.resources is not graph._session.resources
    assert len(ages(other.branch())) == 2
    graph.branch().load([person("Cyd")], mode="append")
    assert len(ages(other.branch())) == 3
    other.branch().load([person("Dov")], mode="append")
    assert len(ages(graph.branch())) == 4


# ---- documents ----


def test_results_have_the_documents_of_the_commands(main: Branch) -> None:
    loaded = main.load([person("Cyd")], mode="append", message="m")
    commit = loaded.commit.to_json()
    assert loaded.to_json() == {
        "uri": main.graph.uri,
        "branch": "main",
        "branch_created": False,
        "mode": "append",
        "nodes": [{"name": "Person", "entities_loaded": 1}],
        "edges": [],
        "total_entities": 1,
        "actor_id": None,
        "commit": commit,
    }
    assert commit == {
        "graph_commit_id": loaded.commit.id,
        "graph_branch": None,
        "graph_manifest_version": 2,
        "parent_commit_id": loaded.commit.parents[0],
        "merged_parent_commit_id": None,
        "actor_id": None,
        "created_at": commit["created_at"],
        "message": "m",
    }
    changed = main.mutate(CHANGES, name="leave", params={"who": "Nobody"})
    assert changed.to_json() == {
        "branch": "main",
        "query_name": "leave",
        "affected_nodes": 0,
        "affected_edges": 0,
        "actor_id": None,
        "commit": None,
    }
    applied = main.apply_schema(WIDER).to_json()
    assert {**applied, "steps": len(applied["steps"])} == {
        "uri": main.graph.uri,
        "supported": True,
        "applied": True,
        "step_count": 1,
        "graph_manifest_version": 3,
        "steps": 1,
    }


def test_a_schema_is_planned_and_applied_by_the_same_rules() -> None:
    strict = Environment(mode=Mode.STRICT)
    storage = open_storage(places.fresh_uri(), is_durable=False, options=None)
    graph = create_on(storage, schema="node A { k: String @key }", environment=strict)
    text = "node A { k: String @key }\nedge E: A -> A { @unique(src, dst) }"
    for use in (graph.branch().plan_schema, graph.branch().apply_schema):
        with pytest.raises(errors.CompileError):
            use(text)
