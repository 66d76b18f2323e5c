"""Snapshots: time travel by commit, version and time, and what a snapshot knows about itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import omnigraph
import places
from omnigraph import Commit, Graph, Snapshot, errors
from omnigraph.format_version import IR_VERSION
from unit.engine.company import CHANGES, SCHEMA, ages, company, person


@pytest.fixture(params=places.kinds())
def graph(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Graph]:
    """A graph with two people and a team, wherever a graph may live."""
    uri = places.uri_of(request.param, tmp_path)
    with company(uri) as graph:
        yield graph


def _history(graph: Graph) -> list[Commit]:
    """Four commits: created, two people, a third one, one gone."""
    main = graph.branch()
    main.load([person("Cyd", 29)], mode="append")
    main.mutate(CHANGES, name="leave", params={"who": "Bob"})
    return list(main.commits())[::-1]


def test_a_snapshot_stays_what_it_was_when_the_branch_moves(graph: Graph) -> None:
    before = graph.branch().snapshot()
    _history(graph)
    assert ages(before) == {"Ada": 36, "Bob": 41}
    assert ages(graph.branch()) == {"Ada": 36, "Cyd": 29}


def test_every_commit_can_be_read_by_id_version_time_and_itself(graph: Graph) -> None:
    commits = _history(graph)
    names = [set(), {"Ada", "Bob"}, {"Ada", "Bob", "Cyd"}, {"Ada", "Cyd"}]
    for commit, expected in zip(commits, names, strict=True):
        for at in (commit, commit.id, commit.version, commit.created_at):
            snapshot = graph.snapshot(at)
            assert set(ages(snapshot)) == expected
            assert snapshot.commit == commit
            assert (snapshot.version, snapshot.branch) == (commit.version, "main")


def test_the_state_before_a_commit_is_that_of_its_parent(graph: Graph) -> None:
    last = _history(graph)[-1]
    assert set(ages(graph.snapshot(last.parents[0]))) == {"Ada", "Bob", "Cyd"}


def test_a_time_between_commits_means_the_one_before(graph: Graph) -> None:
    commits = _history(graph)
    just_before = commits[2].created_at - timedelta(microseconds=1)
    assert graph.snapshot(just_before).commit == commits[1]
    assert graph.snapshot(datetime.now(UTC) + timedelta(days=1)).commit == commits[-1]
    with pytest.raises(errors.CommitNotFoundError):
        graph.snapshot(commits[0].created_at - timedelta(microseconds=1))


def test_versions_and_times_belong_to_a_branch(graph: Graph) -> None:
    commits = _history(graph)
    review = graph.create_branch("review", source=commits[1])
    made = review.load([person("Dov")], mode="append").commit
    assert set(ages(graph.snapshot(2, branch="review"))) == {"Ada", "Bob", "Dov"}
    assert set(ages(graph.snapshot(2))) == {"Ada", "Bob", "Cyd"}
    assert graph.snapshot(made.created_at, branch="review").commit == made
    assert graph.snapshot(made.id).commit == made
    assert graph.snapshot(made.id).branch == "review"


@pytest.mark.parametrize(
    ("at", "error"),
    [
        ("01ARZ3NDEKTSV4RRFFQ69G5FAV", errors.CommitNotFoundError),
        ("no commit", errors.CommitNotFoundError),
        (99, errors.CommitNotFoundError),
        (-1, errors.CommitNotFoundError),
        (True, errors.InvalidArgumentError),
        (1.5, errors.InvalidArgumentError),
        (datetime(2024, 1, 1), errors.InvalidArgumentError),
    ],
)
def test_what_names_no_commit_is_refused(graph: Graph, at: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        graph.snapshot(at)  # type: ignore[arg-type]  # some of these are wrong on purpose


def test_an_unknown_branch_is_refused(graph: Graph) -> None:
    with pytest.raises(errors.BranchNotFoundError):
        graph.snapshot(0, branch="nowhere")


def test_history_keeps_its_schema(graph: Graph) -> None:
    main = graph.branch()
    before = main.head
    wider = SCHEMA.replace("  age: I32?\n", "")
    main.apply_schema(wider)
    old = graph.snapshot(before)
    assert (old.schema, main.schema) == (SCHEMA, wider)
    assert ages(old) == {"Ada": 36, "Bob": 41}
    with pytest.raises(errors.CompileError):
        ages(main)


def test_history_survives_reopening(tmp_path: Path) -> None:
    graph = company(places.fresh_uri(tmp_path / "org.omni"), actor="ada")
    commits = _history(graph)
    graph.close()
    with omnigraph.open(graph.uri) as again:
        assert list(again.branch().commits())[::-1] == commits
        assert set(ages(again.snapshot(commits[1]))) == {"Ada", "Bob"}


def test_tables_are_named_edges_first(graph: Graph) -> None:
    snapshot = graph.branch().snapshot()
    tables = snapshot.tables()
    assert [(table.kind, table.type_name, table.rows) for table in tables] == [
        ("edge", "Knows", 0),
        ("edge", "MemberOf", 1),
        ("node", "Note", 0),
        ("node", "Person", 2),
        ("node", "Team", 1),
    ]
    assert all(len(table.version) == 16 and table.path.endswith(".lance") for table in tables)
    document = snapshot.to_json()
    assert document["graph_branch"] == "main"
    assert document["graph_manifest_version"] == snapshot.version == 1
    assert document["datasets"][1] == {
        "entity_kind": "edge",
        "type_name": "MemberOf",
        "dataset_path": tables[1].path,
        "published_dataset_version": int(tables[1].version, 16),
        "native_dataset_branch": None,
        "entity_count": 1,
    }


def test_entities_are_counted_by_type(graph: Graph) -> None:
    snapshot = graph.branch().snapshot()
    assert (snapshot.count("Person"), snapshot.count("MemberOf")) == (2, 1)
    assert snapshot.count("MemberOf", "edge") == 1
    with pytest.raises(errors.TypeNotFoundError):
        snapshot.count("MemberOf", "node")
    with pytest.raises(errors.TypeNotFoundError) as caught:
        snapshot.count("Persn")
    assert "Person" in str(caught.value.hint)
    with pytest.raises(errors.InvalidArgumentError):
        snapshot.count("Person", "vertex")  # type: ignore[arg-type]  # wrong on purpose


def test_a_snapshot_shows_what_it_is(graph: Graph) -> None:
    snapshot = graph.branch().snapshot()
    assert repr(snapshot) == f"Snapshot('main', version=1, commit='{snapshot.commit.id}')"
    assert repr(graph.branch()) == "Branch('main')"
    assert repr(graph) == f"Graph('{graph.uri}')"


def test_a_snapshot_of_a_closed_graph_answers_nothing_read_before_or_not(graph: Graph) -> None:
    snapshots = [graph.branch().snapshot() for _ in range(2)]
    assert snapshots[0].count("Person") == 2
    graph.close()
    uses: list[Callable[[Snapshot], object]] = [
        lambda at: at.count("Person"),
        lambda at: at.tables(),
        lambda at: at.to_json(),
        lambda at: at.schema,
        lambda at: at.commit,
        lambda at: at.export(),
        lambda at: at.blob("node", "Person", "Ada", "badge"),
        lambda at: at.query(CHANGES, name="hire"),
    ]
    for snapshot in snapshots:
        for use in uses:
            with pytest.raises(errors.GraphClosedError):
                use(snapshot)


def test_the_document_of_a_snapshot_names_the_version_of_schemas(graph: Graph) -> None:
    assert graph.branch().snapshot().to_json()["internal_schema_version"] == IR_VERSION
