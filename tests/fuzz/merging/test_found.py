"""What random lives found, each as short as it can be."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fuzz.merging.both import Both
from fuzz.merging.edits import AddProperty, edited

SIZE = AddProperty("Team", "size: I64?")
NICK = AddProperty("Person", "nick: String?")


@pytest.fixture
def both() -> Iterator[Both]:
    made = Both()
    yield made
    made.close()


def migrate(both: Both, branch: str, edit: AddProperty) -> int:
    """Change the schema of a branch; the number of the commit."""
    schema = edited(both.model.graph(branch).catalog, edit)
    assert schema is not None
    both.migrate(branch, schema)
    return both.model.head(branch)


def test_a_picked_commit_that_knows_only_an_older_schema_changes_nothing(both: Both) -> None:
    before = both.model.head("main")
    migrate(both, "main", SIZE)
    both.cherry_pick("main", before)


def test_a_schema_change_picked_again_leaves_the_text_as_it_is_written(both: Both) -> None:
    first = migrate(both, "main", SIZE)
    migrate(both, "main", NICK)
    text = both.branch("main").schema
    # The text spells out a bound that bounds nothing.
    assert "@card(0..)" in text
    both.cherry_pick("main", first)
    assert both.branch("main").schema == text
