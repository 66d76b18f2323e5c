"""Following a branch, and baselines to begin with."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from pathlib import Path

import pytest

import omnigraph
import places
from omnigraph import Branch, Graph, errors
from omnigraph.engine.entity_changes import Filters
from omnigraph.engine.feed import Feed, Limits, follow, parse_origin
from omnigraph.engine.graph import create_on
from omnigraph.engine.resources import Environment, open_storage
from omnigraph.versioning.transaction import Settings
from places import fresh_uri
from unit.engine.company import SCHEMA, company, person


@pytest.fixture
def graph() -> Iterator[Graph]:
    """A graph with two people and a team."""
    with company() as graph:
        yield graph


@pytest.fixture
def main(graph: Graph) -> Branch:
    """Its main branch."""
    return graph.branch()


def test_a_follower_sees_what_is_committed_after_it_began(main: Branch) -> None:
    followed = main.follow(poll_s=0)
    commits = [main.load([person(f"p{n}")], mode="append").commit.id for n in range(3)]
    blocks = list(islice(followed, 3))
    assert [block.cause.commit_id for block in blocks] == commits
    again = main.follow(cursor=blocks[0].cursor, poll_s=0)
    assert list(islice(again, 2)) == blocks[1:]


def test_a_follower_waits_for_a_commit_of_another_thread(main: Branch) -> None:
    followed = main.follow(poll_s=0.01)
    seen: list[str] = []
    reader = threading.Thread(target=lambda: seen.append(next(followed).cause.commit_id))
    reader.start()
    commit = main.load([person("Cleo")], mode="append").commit
    reader.join(timeout=30)
    assert seen == [commit.id]


def test_a_follower_pauses_only_where_it_has_seen_everything(main: Branch) -> None:
    pauses: list[float] = []

    def wait(seconds: float) -> None:
        pauses.append(seconds)
        main.load([person(f"late{len(pauses)}")], mode="append")

    for number in range(6):
        main.load([person(f"p{number}")], mode="append")
    feed = Feed(main._session, main._stream, Filters())
    origin = parse_origin("beginning", None, None)
    blocks = follow(feed, origin, limits=Limits(commits=2), poll_s=7, wait=wait)
    assert len(list(islice(blocks, 9))) == 9
    assert pauses == [7, 7]


def test_a_large_commit_comes_in_parts_and_the_last_one_has_the_cursor(main: Branch) -> None:
    followed = main.follow(poll_s=0)
    main.load([person(f"p{number:04}") for number in range(2500)], mode="append")
    parts = list(islice(followed, 3))
    assert [len(part.changes) for part in parts] == [1000, 1000, 500]
    assert [part.is_complete for part in parts] == [False, False, True]
    assert len({part.cause.commit_id for part in parts}) == 1
    assert len({change.id for part in parts for change in part.changes}) == 2500


def test_what_is_wrong_with_a_follower_is_told_at_once(main: Branch) -> None:
    for wrong in ({"poll_s": -1}, {"poll_s": "1"}, {"poll_s": float("nan")}, {"start": "x"}):
        with pytest.raises(errors.InvalidArgumentError):
            main.follow(**wrong)
    with pytest.raises(errors.ChangeCursorRejectedError):
        main.follow(cursor="x")


# ---- baselines ----


def test_a_baseline_loads_as_the_graph_and_its_cursor_goes_on_from_there(main: Branch) -> None:
    baseline = main.baseline()
    exported = b"".join(main.export())
    commit = main.load([person("Cleo")], mode="append").commit
    with omnigraph.create(fresh_uri(), schema=main.schema) as copy:
        copy.branch().load(list(baseline), mode="append")
        found = b"".join(copy.branch().export())
        assert found == exported, "it is as of the moment it was taken"
    [block] = main.changes(cursor=baseline.resume_cursor).blocks
    assert block.cause.commit_id == commit.id
    assert baseline.to_json() == {
        "snapshot_commit_id": commit.to_json()["parent_commit_id"],
        "resume_cursor": baseline.resume_cursor,
    }
    assert [record["id"] for record in baseline if "type" in record] == ["Ada", "Bob", "Engines"]


def test_an_interrupted_baseline_has_no_cursor(main: Branch) -> None:
    baseline = main.baseline()
    with pytest.raises(errors.InvalidArgumentError, match="not read to its end"):
        _ = baseline.resume_cursor
    next(iter(baseline))
    with pytest.raises(errors.InvalidArgumentError, match="not read to its end"):
        baseline.to_json()


def test_filters_of_a_baseline_choose_entities_but_operations_only_bind_the_cursor(
    main: Branch,
) -> None:
    baseline = main.baseline(kinds=["node"], types=["Person"], ops=["delete"])
    assert [record["id"] for record in baseline] == ["Ada", "Bob"]
    page = main.changes(
        cursor=baseline.resume_cursor, kinds=["node"], types=["Person"], ops=["delete"]
    )
    assert page.caught_up
    with pytest.raises(errors.ChangeCursorRejectedError, match="other filters"):
        main.changes(cursor=baseline.resume_cursor)
    with pytest.raises(errors.TypeNotFoundError):
        main.baseline(types=["Persn"])


# ---- history that was cleaned up ----


def test_after_a_cleanup_a_consumer_that_is_behind_is_told_of_the_gap() -> None:
    storage = open_storage(fresh_uri(), is_durable=False, options=None)
    environment = Environment(settings=Settings(grace_s=0))
    graph = create_on(storage, schema=SCHEMA, environment=environment)
    main = graph.branch()
    stale = main.changes().cursor
    commits = [main.load([person(f"p{n}")], mode="append").commit.id for n in range(6)]
    fresh = main.changes(start=f"after:{commits[4]}")
    current = main.changes().cursor
    graph.cleanup(keep=2, dry_run=False, grace=timedelta())
    for options in ({"cursor": stale}, {"start": "beginning"}):
        with pytest.raises(errors.ChangeFeedGapError) as gap:
            main.changes(**options)
        assert gap.value.cursor == options.get("cursor")
    assert gap.value.first_unreadable_commit not in commits[-1:]
    assert main.changes(cursor=current).blocks == ()
    [block] = main.changes(start=f"after:{commits[4]}").blocks
    assert block == fresh.blocks[0]
    baseline = main.baseline()
    known = {record["id"] for record in baseline}
    main.load([person("late")], mode="append")
    [block] = main.changes(cursor=baseline.resume_cursor).blocks
    assert known >= {f"p{n}" for n in range(6)}
    assert [change.id for change in block.changes] == ["late"]
    with pytest.raises(errors.CommitNotFoundError):
        graph.commit_changes(commits[0])


def test_a_restored_copy_does_not_take_cursors_of_commits_it_does_not_have(tmp_path: Path) -> None:
    uri = places.fresh_uri(tmp_path / "graph")
    with company(uri) as graph:
        kept = graph.branch().changes().cursor
        copy = places.copy_of(uri, tmp_path)
        graph.branch().load([person("Cleo")], mode="append")
        lost = graph.branch().changes().cursor
    with omnigraph.open(copy) as graph:
        main = graph.branch()
        assert main.changes(cursor=kept).caught_up
        for _ in range(2):
            with pytest.raises(errors.ChangeCursorRejectedError, match="does not have"):
                main.changes(cursor=lost)
            main.load([person(f"p{main.head.version}")], mode="append")
