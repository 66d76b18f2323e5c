"""Feeds of a type that gets another name, is dropped, or is another one under the same name."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import pytest

from omnigraph import Branch, Graph, errors
from omnigraph.engine.feed import FeedPage
from unit.engine.company import company, person

TEAM = "node Team {"
CREW = 'node Crew @rename_from("Team") {'


@pytest.fixture
def graph() -> Iterator[Graph]:
    """A graph with two people and a team."""
    with company() as graph:
        yield graph


@pytest.fixture
def main(graph: Graph) -> Branch:
    """Its main branch."""
    return graph.branch()


def found(branch: Branch, type_name: str, name: str) -> None:
    """A commit of one team."""
    branch.load([{"type": type_name, "data": {"name": name}}], mode="append")


def rename(branch: Branch) -> None:
    """Call teams crews."""
    branch.apply_schema(branch.schema.replace(TEAM, CREW).replace("-> Team", "-> Crew"))


def ids(page: FeedPage) -> list[str]:
    """The entities that changed."""
    return [change.id for block in page.blocks for change in block.changes]


@pytest.fixture
def cursor(main: Branch) -> str:
    """A cursor of the teams from before they got another name, with a commit on either side."""
    cursor = main.changes(types=["Team"]).cursor
    assert cursor is not None
    found(main, "Team", "old")
    rename(main)
    found(main, "Crew", "new")
    main.load([person("Cleo")], mode="append")
    return cursor


@pytest.mark.parametrize("name", ["Team", "Crew"])
def test_a_cursor_from_before_a_renaming_takes_the_old_name_and_the_new(
    main: Branch, cursor: str, name: str
) -> None:
    page = main.changes(cursor=cursor, types=[name])
    assert ids(page) == ["old", "new"]
    found(main, "Crew", "later")
    assert ids(main.changes(cursor=page.cursor, types=["Crew"])) == ["later"]
    with pytest.raises(errors.TypeNotFoundError):
        main.changes(cursor=page.cursor, types=["Team"])


@pytest.mark.parametrize("name", ["Team", "Crew"])
def test_all_pages_of_a_poll_take_the_name_that_the_first_one_took(
    main: Branch, cursor: str, name: str
) -> None:
    page = main.changes(cursor=cursor, types=[name], limit=1)
    told = ids(page)
    while page.next_page_token is not None:
        page = main.changes(page_token=page.next_page_token, types=[name], limit=1)
        told += ids(page)
    assert told == ["old", "new"]


def test_the_cursor_of_any_block_goes_on_under_the_new_name(main: Branch, cursor: str) -> None:
    first, *_, last = main.changes(cursor=cursor, types=["Team"]).blocks
    assert ids(main.changes(cursor=first.cursor, types=["Team"])) == ["new"]
    assert ids(main.changes(cursor=first.cursor, types=["Crew"])) == ["new"]
    assert ids(main.changes(cursor=last.cursor, types=["Crew"])) == []


def test_another_type_is_another_filter_whatever_it_is_called(main: Branch, cursor: str) -> None:
    for types in (["Person"], ["Crew", "Person"], ["Team", "Person"], []):
        with pytest.raises(errors.ChangeCursorRejectedError, match="other filters"):
            main.changes(cursor=cursor, types=types)


def test_a_baseline_goes_on_after_a_renaming(main: Branch) -> None:
    baseline = main.baseline(types=["Team"])
    assert [record["id"] for record in baseline] == ["Engines"]
    rename(main)
    found(main, "Crew", "new")
    assert ids(main.changes(cursor=baseline.resume_cursor, types=["Crew"])) == ["new"]


@pytest.mark.usefixtures("cursor")
def test_a_feed_from_the_beginning_takes_a_name_of_that_time(main: Branch) -> None:
    for name in ("Team", "Crew"):
        page = main.changes(start="beginning", types=[name])
        assert ids(page) == ["Engines", "old", "new"]
    assert ids(main.changes(cursor=page.cursor, types=["Crew"])) == []


def test_who_follows_a_type_while_it_is_renamed_goes_on(main: Branch) -> None:
    followed = main.follow(start="now", types=["Team"], poll_s=0)
    found(main, "Team", "old")
    first = next(followed)
    rename(main)
    found(main, "Crew", "new")
    main.load([person("Cleo")], mode="append")
    found(main, "Crew", "newer")
    blocks = [first, *islice(followed, 4)]
    assert [each.id for block in blocks for each in block.changes] == ["old", "new", "newer"]


def test_a_type_that_was_dropped_ends_its_feed_at_the_boundary(main: Branch) -> None:
    main.load([{"type": "Note", "id": "n", "data": {"text": "x"}}], mode="append")
    cursor = main.changes(types=["Note"]).cursor
    text = "node Note {\n  text: String\n}\n"
    main.apply_schema(main.schema.replace(text, ""))
    with pytest.raises(errors.ChangeSchemaBoundaryError):
        main.changes(cursor=cursor, types=["Note"])
    main.apply_schema(main.schema + text)
    with pytest.raises(errors.ChangeSchemaBoundaryError):
        main.changes(cursor=cursor, types=["Note"])


def test_a_new_type_of_an_old_name_is_not_taken_for_the_old_one(main: Branch, cursor: str) -> None:
    page = main.changes(cursor=cursor, types=["Crew"])
    main.apply_schema(main.schema + "node Team {\n  name: String @key\n}\n")
    found(main, "Team", "other")
    assert ids(main.changes(cursor=cursor, types=["Team"])) == ["old", "new"]
    with pytest.raises(errors.ChangeCursorRejectedError, match="other filters"):
        main.changes(cursor=page.cursor, types=["Team"])
