"""Names of branches and tags: one name means one thing wherever it is read."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any, TypeAlias

import pytest

from omnigraph.errors import (
    BranchNotFoundError,
    BranchRefusedError,
    InvalidArgumentError,
    TagExistsError,
)
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.object_store import Objects
from omnigraph.versioning.graph_format import GraphFormat, encode_format
from omnigraph.versioning.ref_events import put_event
from omnigraph.versioning.tag_events import Tag, build_tag_event
from unit.versioning.small_graph import SmallGraph

# Its lease, its announcement and its event.
_PUTS_OF_A_TAG = 3
Create: TypeAlias = Callable[[SmallGraph, str], object]


def _tag(graph: SmallGraph, name: str) -> object:
    return graph.branches.tags.create(name, at=graph.head())


def _branch(graph: SmallGraph, name: str) -> object:
    return graph.branches.create(name, at=graph.head())


@pytest.fixture(params=[_tag, _branch])
def create(request: pytest.FixtureRequest) -> Create:
    return request.param  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("main", "the name of the first branch"),
        ("01M7H4BFFZ2QBTZH2MSVAZA12T", "the id of a commit"),
        ("2026-01-31T12:00:00Z", "a time"),
        ("2026-01-31 12:00+01:00", "a time"),
        ("", "empty"),
        (" x", "space"),
        ("a//b", "slashes"),
        ("a/../b", "slashes"),
        ("a\\b", "backslash"),
        ("x" * 201, "200 characters"),
    ],
)
def test_a_new_name_means_nothing_else(
    fast_graph: SmallGraph, create: Create, name: str, reason: str
) -> None:
    with pytest.raises((BranchRefusedError, InvalidArgumentError), match=reason):
        create(fast_graph, name)
    assert fast_graph.branches.list() == ["main"]
    assert fast_graph.branches.tags.list() == []


@pytest.mark.parametrize("name", ["2026-01-31", "2026-01-31T12:00", "mainly", "x" * 200])
def test_a_name_that_only_resembles_something_else_is_free(
    fast_graph: SmallGraph, create: Create, name: str
) -> None:
    create(fast_graph, name)


def test_a_tag_and_a_branch_do_not_share_a_name_while_both_are_there(
    fast_graph: SmallGraph,
) -> None:
    branches = fast_graph.branches
    _branch(fast_graph, "both")
    with pytest.raises(InvalidArgumentError, match="it is the name of a branch"):
        _tag(fast_graph, "both")
    branches.delete("both")
    _tag(fast_graph, "both")
    with pytest.raises(BranchRefusedError, match="it is the name of a tag"):
        _branch(fast_graph, "both")
    branches.tags.delete("both")
    _branch(fast_graph, "both")
    assert (branches.list(), branches.tags.list()) == (["main", "both"], [])


def _put_apart(graph: SmallGraph, tag: Tag) -> None:
    """Put a tag as earlier programs did: with events that branches do not share."""
    event = build_tag_event(tag)
    graph.objects.put(layout.FORMAT, encode_format(GraphFormat(1)))
    assert put_event(graph.objects, layout.build_tag_event_path(tag.name, 1), event, what="a tag")


def test_a_tag_that_is_there_under_such_a_name_can_be_read_and_deleted(
    fast_graph: SmallGraph,
) -> None:
    tags, tag = fast_graph.branches.tags, Tag("main", fast_graph.head(), 1)
    _put_apart(fast_graph, tag)
    assert tags.get("main") == tag
    tags.delete("main")
    assert tags.list() == []


def test_tags_whose_events_are_apart_hold_their_names_until_they_are_deleted(
    fast_graph: SmallGraph,
) -> None:
    branches, tag = fast_graph.branches, Tag("old", fast_graph.head(), 1)
    _put_apart(fast_graph, tag)
    assert branches.tags.list() == [tag] == [branches.tags.get("old")]
    with pytest.raises(TagExistsError):
        _tag(fast_graph, "old")
    with pytest.raises(BranchRefusedError, match="it is the name of a tag"):
        _branch(fast_graph, "old")
    branches.tags.delete("old")
    assert branches.tags.list(deleted_since=0) == [tag]
    _tag(fast_graph, "old")
    assert [each.name for each in branches.tags.list()] == ["old"]
    branches.tags.delete("old")
    _branch(fast_graph, "old")
    assert branches.list() == ["main", "old"]


class Interrupted:
    """A store on which something else happens right before one of the writes."""

    def __init__(self, inner: Objects, number: int, happen: Callable[[], object]) -> None:
        self.uri = inner.uri
        self._inner, self._left, self._happen = inner, number, happen

    @property
    def is_over(self) -> bool:
        return self._left < 0

    def put_new(self, path: str, data: bytes) -> bool:
        self._left -= 1
        if self._left == -1:
            self._happen()
        return self._inner.put_new(path, data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


@pytest.mark.parametrize(("first", "second"), [(_tag, _branch), (_branch, _tag)])
def test_a_name_is_given_once_whenever_the_other_one_comes(
    graph: SmallGraph, first: Create, second: Create
) -> None:
    for number in count():
        name = f"race-{number}"
        objects = Interrupted(graph.objects, number, partial(second, graph, name))
        slow = SmallGraph(objects, graph.tables, graph.settings)
        # The one that came later is told what has the name.
        with suppress(BranchRefusedError, InvalidArgumentError):
            first(slow, name)
        if not objects.is_over:
            break
        found = graph.reopened().branches
        tags = [tag.name for tag in found.tags.list()]
        assert (name in found.list()) != (name in tags), f"before write {number}"
    assert number >= 1


def test_of_two_creations_of_a_tag_at_one_instant_one_is_told_so(graph: SmallGraph) -> None:
    settings = replace(graph.settings, now_us=lambda: 1_700_000_000_000_000)
    other = SmallGraph(graph.objects, graph.tables, settings)
    for number in range(_PUTS_OF_A_TAG):
        name = f"race-{number}"
        objects = Interrupted(graph.objects, number, partial(_tag, other, name))
        with pytest.raises(TagExistsError):
            _tag(SmallGraph(objects, graph.tables, settings), name)
        assert objects.is_over


def test_a_creation_that_ended_after_its_announcement_leaves_the_name_free(
    fast_graph: SmallGraph, create: Create
) -> None:
    path = layout.build_tag_announcement_path("x", 1)
    assert fast_graph.objects.put_new(path, b"")
    assert (fast_graph.branches.list(), fast_graph.branches.tags.list()) == (["main"], [])
    create(fast_graph, "x")
    found = fast_graph.reopened().branches
    tags = [tag.name for tag in found.tags.list()]
    assert (found.list(), tags) in ((["main", "x"], []), (["main"], ["x"]))
    (found.delete if "x" in found.list() else found.tags.delete)("x")
    assert (found.list(), found.tags.list()) == (["main"], [])


def test_a_name_that_was_a_tag_and_a_branch_shows_what_was_deleted_lately(
    fast_graph: SmallGraph,
) -> None:
    branches = fast_graph.branches
    _tag(fast_graph, "x")
    branches.tags.delete("x")
    stream = branches.create("x", at=fast_graph.head())
    branches.delete("x")
    _tag(fast_graph, "x")
    assert [tag.name for tag in branches.tags.list(deleted_since=0)] == ["x", "x"]
    assert branches.list_streams(deleted_since=0)[1:] == ((stream, False),)
    assert branches.stream_of("x", stream.id) == stream
    with pytest.raises(BranchNotFoundError):
        branches.resolve("x")
