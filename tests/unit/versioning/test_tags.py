"""Tags: names for commits."""

from __future__ import annotations

import pytest

from omnigraph.errors import TagExistsError, TagNotFoundError
from unit.versioning.small_graph import SmallGraph


def test_a_tag_holds_the_snapshot_of_its_commit(fast_graph: SmallGraph) -> None:
    fast_graph.insert({"ada": "1"})
    at = fast_graph.head()
    made = fast_graph.branches.tags.create("v1", at=at, actor="ada")
    fast_graph.insert({"bob": "1"})
    found = fast_graph.reopened().branches.tags.get("v1")
    assert found == made
    assert (found.snapshot, found.actor) == (at, "ada")
    assert fast_graph.reopened().branches.tags.find_by_commit(at.commit) == (made,)


def test_a_name_is_free_again_after_its_tag_is_deleted(fast_graph: SmallGraph) -> None:
    tags = fast_graph.branches.tags
    first = tags.create("v/1", at=fast_graph.head())
    with pytest.raises(TagExistsError):
        tags.create("v/1", at=fast_graph.head())
    tags.delete("v/1")
    for missing in (tags.get, tags.delete):
        with pytest.raises(TagNotFoundError):
            missing("v/1")
    fast_graph.insert({"ada": "1"})
    second = tags.create("v/1", at=fast_graph.head())
    assert [tag.name for tag in tags.list()] == ["v/1"]
    assert second.snapshot.commit != first.snapshot.commit


def test_a_deleted_tag_can_be_listed_for_a_while(fast_graph: SmallGraph) -> None:
    tags = fast_graph.branches.tags
    tags.create("v1", at=fast_graph.head())
    tags.delete("v1")
    assert tags.list() == []
    assert [tag.name for tag in tags.list(deleted_since=0)] == ["v1"]
    assert tags.list(deleted_since=2**62) == []
