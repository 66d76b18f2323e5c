"""Names of branches and tags: one name means one thing wherever it is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest

from omnigraph.errors import BranchRefused, InvalidArgument
from omnigraph.storage import layout
from omnigraph.versioning.tags import Tag, event_of
from unit.versioning.small_graph import SmallGraph

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
    with pytest.raises((BranchRefused, InvalidArgument), match=reason):
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
    with pytest.raises(InvalidArgument, match="it is the name of a branch"):
        _tag(fast_graph, "both")
    branches.delete("both")
    _tag(fast_graph, "both")
    with pytest.raises(BranchRefused, match="it is the name of a tag"):
        _branch(fast_graph, "both")
    branches.tags.delete("both")
    _branch(fast_graph, "both")
    assert (branches.list(), branches.tags.list()) == (["main", "both"], [])


def test_a_tag_that_is_there_under_such_a_name_can_be_read_and_deleted(
    fast_graph: SmallGraph,
) -> None:
    tags, tag = fast_graph.branches.tags, Tag("main", fast_graph.head(), 1)
    assert tags._put(tag.name, 1, event_of(tag))
    assert fast_graph.objects.get(layout.tag_event("main", 1)) is not None
    assert tags.get("main") == tag
    tags.delete("main")
    assert tags.list() == []
