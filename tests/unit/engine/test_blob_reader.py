"""Blobs: found by entity and property, read in ranges, pinned to their snapshot."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import places
from omnigraph import Graph, errors
from omnigraph.engine.blob_reader import RANGE_BYTES_MAX
from unit.engine.company import company, person


@pytest.fixture(params=places.kinds())
def graph(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Graph]:
    """A graph with two people and a team, wherever a graph may live."""
    uri = places.uri_of(request.param, tmp_path)
    with company(uri) as graph:
        yield graph


def _give_badge(graph: Graph, content: bytes, *, name: str = "Ada") -> None:
    text = "base64:" + base64.b64encode(content).decode()
    record = {"type": "Person", "data": {"name": name, "badge": text}}
    graph.branch().load([record], mode="merge")


def test_a_blob_is_read_in_ranges(graph: Graph) -> None:
    _give_badge(graph, b"0123456789")
    blob = graph.branch().blob("node", "Person", "Ada", "badge")
    assert blob.size == 10
    assert blob.read() == b"0123456789"
    assert blob.read(3) == b"3456789"
    assert blob.read(3, 5) == b"34"
    assert blob.read(10) == blob.read(4, 4) == b""
    for start, end in ((-1, 2), (5, 3), (0, 11), (11, None)):
        with pytest.raises(errors.RangeNotSatisfiableError) as caught:
            blob.read(start, end)
        assert caught.value.length == 10


def test_a_large_blob_is_read_whole_as_a_file_and_into_a_file(graph: Graph, tmp_path: Path) -> None:
    content = bytes(range(256)) * (RANGE_BYTES_MAX // 256) + b"tail"
    _give_badge(graph, content)
    blob = graph.branch().blob("node", "Person", "Ada", "badge")
    assert blob.size == len(content)
    assert blob.read() == content
    assert blob.read(0, RANGE_BYTES_MAX) + blob.read(RANGE_BYTES_MAX) == content
    target = tmp_path / "saved" / "badge"
    target.parent.mkdir()
    blob.save(target)
    assert target.read_bytes() == content
    assert list(target.parent.iterdir()) == [target]


def test_a_blob_is_a_file_object_that_seeks(graph: Graph) -> None:
    _give_badge(graph, b"0123456789")
    with graph.branch().blob("node", "Person", "Ada", "badge").open() as file:
        assert file.read(3) == b"012"
        assert (file.seek(-2, os.SEEK_END), file.read(), file.read()) == (8, b"89", b"")
        assert (file.seek(4), file.tell(), file.readline()) == (4, 4, b"456789")
        with pytest.raises(ValueError, match="before the start"):
            file.seek(-20, os.SEEK_CUR)


def test_a_blob_that_cannot_be_saved_leaves_nothing(graph: Graph, tmp_path: Path) -> None:
    _give_badge(graph, b"0123456789")
    folder = tmp_path / "saved" / "folder"
    folder.mkdir(parents=True)
    with pytest.raises(OSError, match="folder"):
        graph.branch().blob("node", "Person", "Ada", "badge").save(folder)
    assert list(folder.parent.iterdir()) == [folder]


def test_an_empty_blob_is_not_a_missing_one(graph: Graph) -> None:
    _give_badge(graph, b"")
    blob = graph.branch().blob("node", "Person", "Ada", "badge")
    assert (blob.size, blob.read()) == (0, b"")


def test_what_is_not_there_is_not_found(graph: Graph) -> None:
    main = graph.branch()
    with pytest.raises(errors.BlobNotFoundError, match="null"):
        main.blob("node", "Person", "Ada", "badge")
    with pytest.raises(
        errors.BlobNotFoundError, match=r"^Person 'Nobody' has no .* no Person has this id"
    ):
        main.blob("node", "Person", "Nobody", "badge")


def test_what_is_no_blob_is_refused(graph: Graph) -> None:
    main = graph.branch()
    for name in ("age", "nothing"):
        with pytest.raises(errors.InvalidArgumentError, match="not a Blob property"):
            main.blob("node", "Person", "Ada", name)
    with pytest.raises(errors.TypeNotFoundError):
        main.blob("node", "Persn", "Ada", "badge")
    with pytest.raises(errors.TypeNotFoundError):
        main.blob("edge", "Person", "Ada", "badge")


def test_a_blob_stays_what_it_was(graph: Graph) -> None:
    _give_badge(graph, b"old")
    old, before = graph.branch().blob("node", "Person", "Ada", "badge"), graph.branch().snapshot()
    _give_badge(graph, b"newer")
    new = graph.branch().blob("node", "Person", "Ada", "badge")
    again = before.blob("node", "Person", "Ada", "badge")
    assert (old.read(), again.read(), new.read()) == (b"old", b"old", b"newer")
    assert old.etag == again.etag != new.etag
    assert len(old.etag) == 34
    assert old.etag[0] == old.etag[-1] == '"'


def test_tags_of_different_cells_differ(graph: Graph) -> None:
    _give_badge(graph, b"one")
    _give_badge(graph, b"two", name="Bob")
    main = graph.branch()
    tags = {main.blob("node", "Person", name, "badge").etag for name in ("Ada", "Bob")}
    # Two branches give the same place in a table to different rows.
    review = graph.create_branch("review")
    for branch, content in ((main, b"x"), (review, b"y")):
        text = "base64:" + base64.b64encode(content).decode()
        branch.load([{"type": "Person", "data": {"name": "Cyd", "badge": text}}], mode="append")
        tags.add(branch.blob("node", "Person", "Cyd", "badge").etag)
    assert len(tags) == 4


def test_other_commits_leave_the_tag_of_an_untouched_table(graph: Graph) -> None:
    _give_badge(graph, b"one")
    main = graph.branch()
    before = main.blob("node", "Person", "Ada", "badge").etag
    main.load([{"type": "Team", "data": {"name": "Ops"}}], mode="append")
    assert main.blob("node", "Person", "Ada", "badge").etag == before


def test_a_blob_is_written_by_a_parameter_of_bytes(graph: Graph) -> None:
    main = graph.branch()
    text = "query hire($b: Blob) { insert Person { name: 'Cyd', badge: $b } }".replace("'", '"')
    main.mutate(text, params={"b": b"\x00\xff"})
    assert main.blob("node", "Person", "Cyd", "badge").read() == b"\x00\xff"
    main.load([person("Dov")], mode="append")
    assert main.blob("node", "Person", "Cyd", "badge").read() == b"\x00\xff"
