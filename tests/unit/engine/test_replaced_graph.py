"""Graphs whose directory is put back, removed or damaged behind the back of the process."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph, errors
from omnigraph.storage.objects.local_store import LocalObjects
from unit.engine.company import SCHEMA, ages, company, person


class Place:
    """A directory with a graph of three commits, and a copy of it."""

    def __init__(self, folder: Path) -> None:
        self.graph = folder / "org.omni"
        self._copy = folder / "copy.omni"
        company(str(self.graph), durable=False).close()
        shutil.copytree(self.graph, self._copy)

    def open(self) -> Graph:
        return omnigraph.open(self.graph, durable=False)

    def put_back(self) -> None:
        shutil.rmtree(self.graph)
        shutil.copytree(self._copy, self.graph)

    def record(self, seq: int, stream: str = "main.0") -> Path:
        return self.graph / "__manifest" / stream / f"{seq:020}.json"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def _hire(graph: Graph, name: str, branch: str = "main") -> int:
    return graph.branch(branch).load([person(name)], mode="append").commit.version


def _anew(place: Place) -> tuple[set[str], int]:
    """What another process would see: who is there, and how many problems."""
    copy = place.graph.with_name("seen.omni")
    shutil.copytree(place.graph, copy)
    with omnigraph.open(copy) as graph:
        return set(ages(graph.branch())), len(graph.check().problems)


def test_a_graph_that_is_put_back_between_uses_is_written_on_top_of_what_is_there(
    place: Place,
) -> None:
    for _ in range(2):
        with place.open() as graph:
            assert [_hire(graph, name) for name in ("Cyd", "Dov", "Eva")] == [2, 3, 4]
        place.put_back()
    with place.open() as graph:
        assert set(ages(graph.branch())) == {"Ada", "Bob"}
        assert _hire(graph, "Fay") == 2
        # What was known of the removed commits is not known any more.
        assert _hire(graph, "Cyd") == 3
        with pytest.raises(errors.KeyConflictError):
            _hire(graph, "Fay")
    assert _anew(place) == ({"Ada", "Bob", "Cyd", "Fay"}, 0)


def test_an_open_graph_that_is_put_back_never_commits_above_a_gap(place: Place) -> None:
    with place.open() as graph:
        assert _hire(graph, "Cyd") == 2
        place.put_back()
        with pytest.raises(errors.CorruptObjectError, match="it is gone") as caught:
            _hire(graph, "Dov")
        assert "open it again" in str(caught.value.hint)
    assert not place.record(3).exists()
    with place.open() as graph:
        assert _hire(graph, "Dov") == 2
    assert _anew(place) == ({"Ada", "Bob", "Dov"}, 0)


def test_an_open_graph_never_commits_on_top_of_another_history(place: Place) -> None:
    with place.open() as graph:
        assert _hire(graph, "Cyd") == 2
        place.put_back()
        shutil.move(place.graph, moved := place.graph.with_name("moved.omni"))
        with omnigraph.open(moved, durable=False) as other:
            assert _hire(other, "Dov") == 2
        shutil.move(moved, place.graph)
        with pytest.raises(errors.CorruptObjectError, match="was there before"):
            _hire(graph, "Eva")
    assert _anew(place) == ({"Ada", "Bob", "Dov"}, 0)


def test_a_branch_that_is_gone_with_an_older_copy_takes_no_commit(place: Place) -> None:
    with place.open() as graph:
        review = graph.create_branch("review")
        place.put_back()
        with pytest.raises(errors.CorruptObjectError):
            review.load([person("Cyd")], mode="append")


def test_a_handle_opened_after_a_copy_was_put_back_shares_nothing_with_older_ones(
    place: Place,
) -> None:
    with place.open() as old:
        assert _hire(old, "Cyd") == 2
        place.put_back()
        with place.open() as new:
            assert set(ages(new.branch())) == {"Ada", "Bob"}
            assert _hire(new, "Dov") == 2
            with place.open() as third:
                assert third._session.resources is new._session.resources
    assert _anew(place) == ({"Ada", "Bob", "Dov"}, 0)


def test_a_graph_that_is_created_again_at_its_address_starts_anew(place: Place) -> None:
    for count in (3, 1):
        shutil.rmtree(place.graph)
        # Not closed: as in a notebook whose cell is run again.
        graph = omnigraph.create(place.graph, schema=SCHEMA, durable=False)
        assert [_hire(graph, f"p{number}") for number in range(count)] == list(range(1, count + 1))
        assert (graph.branch().count("Person"), graph.check().problems) == (count, ())


def test_a_snapshot_of_a_graph_that_was_at_the_address_starts_no_branch(place: Place) -> None:
    with place.open() as old:
        snapshot = old.branch().snapshot()
    shutil.rmtree(place.graph)
    with company(str(place.graph), durable=False) as graph:
        with pytest.raises(errors.CommitNotFoundError, match=snapshot.at.commit):
            graph.create_branch("ghost", source=snapshot)
        assert graph.branches() == ["main"]
        assert graph.check().problems == ()


def test_a_missing_record_in_the_middle_is_named_by_a_listing(place: Place) -> None:
    with place.open() as graph:
        for name in ("Cyd", "Dov", "Eva"):
            _hire(graph, name)
    place.record(2).unlink()
    with place.open() as graph, pytest.raises(errors.CorruptObjectError, match=r"0002\.json"):
        list(graph.branch().commits())


def test_a_damaged_newest_record_of_main_leaves_everything_else_readable(place: Place) -> None:
    with place.open() as graph:
        commit = graph.branch().head
        graph.create_branch("review")
        _hire(graph, "Cyd", "review")
        _hire(graph, "Dov")
    place.record(2).write_bytes(b"garbage")
    with place.open() as graph:
        assert set(ages(graph.branch("review"))) == {"Ada", "Bob", "Cyd"}
        assert _hire(graph, "Eva", "review") == 3
        assert graph.snapshot(1, branch="review").commit == commit
        assert [found.kind for found in graph.check().problems] != []
        with pytest.raises(errors.CorruptObjectError, match=r"0002\.json"):
            _ = graph.branch().head


def test_a_damaged_first_record_leaves_the_newest_ones_usable(place: Place) -> None:
    place.record(0).write_bytes(b"garbage")
    with place.open() as graph, place.open() as other:
        assert _hire(graph, "Cyd") == 2
        assert set(ages(other.branch())) == {"Ada", "Bob", "Cyd"}


@pytest.mark.parametrize("path", ["__manifest/schemas/", "__manifest/format", "main.0/0000"])
def test_a_creation_that_failed_half_way_can_be_repeated(tmp_path: Path, path: str) -> None:
    uri, put_new = tmp_path / "org.omni", LocalObjects.put_new

    def fail(objects: LocalObjects, at: str, data: bytes) -> bool:
        if path in at:
            raise errors.StorageError("put_new", at, "No space left on device")
        return put_new(objects, at, data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalObjects, "put_new", fail)
        with pytest.raises(errors.StorageError, match="No space"):
            omnigraph.create(uri, schema=SCHEMA)
    with pytest.raises(errors.GraphNotFoundError):
        omnigraph.open(uri)
    with omnigraph.create(uri, schema=SCHEMA) as graph:
        assert _hire(graph, "Ada") == 1
        assert graph.check().problems == ()
