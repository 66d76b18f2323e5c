"""Polls of a branch: positions, cuts, pages and cursors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from omnigraph import Branch, Graph, errors
from omnigraph.engine.feed import FeedPage
from unit.engine.company import company, person

BIG = "x" * 3000


@pytest.fixture
def graph() -> Iterator[Graph]:
    """A graph with two people and a team."""
    with company() as graph:
        yield graph


@pytest.fixture
def main(graph: Graph) -> Branch:
    """Its main branch."""
    return graph.branch()


def hire(branch: Branch, *names: str) -> str:
    """A commit of some people."""
    return branch.load([person(name) for name in names], mode="append").commit.id


def commits(page: FeedPage) -> list[str]:
    """The commits that a page tells of."""
    return [block.cause.commit_id for block in page.blocks]


def ids(page: FeedPage) -> list[list[str]]:
    """The entities that changed, block by block."""
    return [[change.id for change in block.changes] for block in page.blocks]


def pages(branch: Branch, **options: object) -> list[FeedPage]:
    """Every page of a poll."""
    found = [branch.changes(**options)]  # type: ignore[arg-type]
    kept = {name: options[name] for name in options if name not in ("start", "cursor")}
    while (token := found[-1].next_page_token) is not None:
        found.append(branch.changes(page_token=token, **kept))  # type: ignore[arg-type]
    return found


def test_now_is_the_default_and_tells_what_comes_next(main: Branch) -> None:
    page = main.changes()
    assert (page.blocks, page.caught_up, page.next_page_token) == ((), True, None)
    assert main.changes(start="now").cursor == page.cursor
    commit = hire(main, "Cleo")
    later = main.changes(cursor=page.cursor)
    assert (commits(later), ids(later)) == ([commit], [["Cleo"]])
    assert main.changes(cursor=later.cursor).blocks == ()
    assert main.changes(cursor=page.cursor) == later, "a cursor may be used again"


def test_the_beginning_is_behind_the_first_commit(main: Branch) -> None:
    hire(main, "Cleo")
    loaded, hired = list(main.commits())[1::-1]
    page = main.changes(start="beginning")
    assert commits(page) == [loaded.id, hired.id]
    assert commits(main.changes(start=f"after:{loaded.id}")) == [hired.id]
    assert commits(main.changes(start=f"after:{hired.id}")) == []


def test_the_commit_to_start_after_has_many_names(graph: Graph, main: Branch) -> None:
    start = main.head
    graph.tag("release")
    hired = hire(main, "Cleo")
    time = start.created_at.isoformat(timespec="microseconds")
    for name in (start.id, "release", str(start.version), time):
        assert commits(main.changes(start=f"after:{name}")) == [hired]
    assert commits(main.changes(start="after:main")) == []


def test_a_commit_of_another_branch_is_no_place_to_start_after(graph: Graph, main: Branch) -> None:
    review = graph.create_branch("review")
    theirs = hire(review, "Cleo")
    ours = hire(main, "Dan")
    assert commits(review.changes(start="beginning"))[-1] == theirs
    for branch, commit in ((main, theirs), (review, ours), (main, "01M7H2K9ZZA63CWQ5FJFV5YAC2")):
        with pytest.raises(errors.CommitNotFoundError):
            branch.changes(start=f"after:{commit}")
    with pytest.raises(errors.InvalidArgumentError):
        main.changes(start="yesterday")


def test_a_branch_tells_the_commits_it_started_from_too(graph: Graph, main: Branch) -> None:
    inherited = hire(main, "Cleo")
    review = graph.create_branch("review")
    start = review.changes()
    own = hire(review, "Dan")
    nested = graph.create_branch("review/more", source=review)
    last = hire(nested, "Eve")
    hire(main, "Fay")
    assert commits(nested.changes(start="beginning"))[1:] == [inherited, own, last]
    assert commits(review.changes(cursor=start.cursor)) == [own]
    block = nested.changes(start=f"after:{inherited}").blocks[0]
    assert block.cause.branch == "review"


def test_only_one_position_may_be_given(main: Branch) -> None:
    cursor = main.changes().cursor
    with pytest.raises(errors.InvalidArgumentError, match="start and cursor exclude"):
        main.changes(start="now", cursor=cursor)
    with pytest.raises(errors.InvalidArgumentError, match="exclude"):
        main.changes(page_token=cursor, cursor=cursor)


def test_a_poll_has_a_cursor_on_its_last_page_only(main: Branch) -> None:
    expected = [hire(main, f"a{n}", f"b{n}", f"c{n}") for n in range(3)]
    start = f"after:{list(main.commits())[3].id}"
    whole = main.changes(start=start)
    assert commits(whole) == expected
    for limit in range(1, 11):
        found = pages(main, start=start, limit=limit)
        told: dict[str, list[object]] = {}
        for page in found:
            assert (page.next_page_token is None) == (page.cursor is not None)
            assert (page.cursor is None) == (page.caught_up is None)
            assert sum(len(block.changes) for block in page.blocks) <= limit
            for block in page.blocks:
                told.setdefault(block.cause.commit_id, []).extend(block.changes)
        assert found[-1].cursor == whole.cursor
        assert list(told) == expected
        assert told == {b.cause.commit_id: list(b.changes) for b in whole.blocks}


def test_a_document_has_either_a_token_or_a_cursor(main: Branch) -> None:
    hire(main, "Cleo", "Dan")
    part = main.changes(start="beginning", limit=1).to_json()
    assert set(part) == {"blocks", "next_page_token"}
    assert set(main.changes(start="beginning").to_json()) == {"blocks", "cursor", "caught_up"}


def test_a_commit_during_a_poll_is_told_by_the_next_one(main: Branch) -> None:
    start = main.changes()
    first = hire(main, "Cleo", "Dan")
    page = main.changes(cursor=start.cursor, limit=1)
    second = hire(main, "Eve")
    rest = main.changes(page_token=page.next_page_token, limit=1)
    assert commits(page) == commits(rest) == [first]
    assert rest.caught_up is True
    assert commits(main.changes(cursor=rest.cursor)) == [second]


def test_a_poll_looks_at_so_many_commits_and_says_that_there_are_more(main: Branch) -> None:
    cursor = main.changes().cursor
    expected = [hire(main, f"p{number}") for number in range(5)]
    told = []
    for _ in range(5):
        page = main.changes(cursor=cursor, commits_max=1)
        told += commits(page)
        assert page.caught_up == (len(told) == 5)
        cursor = page.cursor
    assert told == expected
    assert commits(main.changes(start="beginning", commits_max=2))[1:] == expected[:1]
    with pytest.raises(errors.ResourceLimitError):
        main.changes(commits_max=513)
    with pytest.raises(errors.ResourceLimitError):
        main.changes(bytes_max=33 * 1024 * 1024)


def test_blocks_without_changes_advance_too(main: Branch) -> None:
    cursor = main.changes(types=["Team"]).cursor
    expected = [hire(main, f"p{number}") for number in range(10)]
    result = main.ensure_indices()
    assert result.commit is not None
    page = main.changes(cursor=cursor, types=["Team"], limit=1)
    assert commits(page) == [*expected, result.commit.id]
    assert ids(page) == [[]] * 11
    assert page.caught_up is True


def test_a_change_that_is_larger_than_a_page_comes_alone(main: Branch) -> None:
    cursor = main.changes().cursor
    small, big = "a", BIG
    expected = [small, big, big + "1", "y"]
    hire(main, *expected)
    found = pages(main, cursor=cursor, bytes_max=4000)
    assert [ids(page) for page in found] == [[["a"]], [[big]], [[big + "1"]], [["y"]]]
    # Images and ids both count: a page of 8 kilobytes holds one of them and a small one.
    found = pages(main, cursor=cursor, bytes_max=8000)
    assert [len(page.blocks[0].changes) for page in found] == [2, 2]


def test_a_full_page_does_not_begin_the_next_commit(main: Branch) -> None:
    cursor = main.changes().cursor
    first, second = hire(main, "Cleo"), hire(main, BIG)
    found = pages(main, cursor=cursor, bytes_max=2000)
    assert [commits(page) for page in found] == [[first], [second]]
    assert [block.is_complete for page in found for block in page.blocks] == [True, True]


def test_a_commit_in_parts_ends_with_a_cursor_though_its_last_entities_are_the_same(
    main: Branch,
) -> None:
    hire(main, "a", "b", "c")
    cursor = main.changes().cursor
    parted = main.load([person("a", 5), person("b"), person("c")], mode="merge").commit.id
    following = hire(main, "z")
    blocks = [block for page in pages(main, cursor=cursor, limit=1) for block in page.blocks]
    assert [(block.cause.commit_id, len(block.changes)) for block in blocks] == [
        (parted, 1),
        (parted, 0),
        (following, 1),
    ]
    assert [block.is_complete for block in blocks] == [False, True, True]
    assert ids(main.changes(cursor=blocks[1].cursor)) == [["z"]]


def test_tokens_belong_to_one_life_of_one_branch_and_to_filters(graph: Graph, main: Branch) -> None:
    review = graph.create_branch("review")
    cursor = review.changes().cursor
    hire(review, "Cleo", "Dan")
    token = review.changes(cursor=cursor, limit=1).next_page_token
    for options in (
        {"cursor": token},
        {"page_token": cursor},
        {"cursor": cursor, "kinds": ["node"]},
    ):
        with pytest.raises(errors.ChangeCursorRejectedError, match=r"^change cursor rejected: "):
            review.changes(**options)
    with pytest.raises(errors.ChangeCursorRejectedError, match="another branch"):
        main.changes(cursor=cursor)
    graph.delete_branch("review")
    with pytest.raises(errors.BranchGoneError):
        review.changes(cursor=cursor)
    again = graph.create_branch("review")
    for options in ({"cursor": cursor}, {"page_token": token}):
        with pytest.raises(errors.ChangeCursorRejectedError, match="created again"):
            again.changes(**options)  # type: ignore[arg-type]


def test_a_type_that_was_renamed_is_followed_under_its_new_name(main: Branch) -> None:
    hire(main, "Cleo")
    schema = main.schema
    renamed = schema.replace("node Team {", 'node Crew @rename_from("Team") {').replace(
        "-> Team", "-> Crew"
    )
    main.apply_schema(renamed)
    page = main.changes(start="beginning", types=["Crew"])
    assert [each for each in ids(page) if each] == [["Engines"]]
    assert page.blocks[0].changes[0].type_name == "Team"
    with pytest.raises(errors.TypeNotFoundError):
        main.changes(types=["Team"])


def test_a_schema_boundary_stops_a_feed_that_sees_it_and_no_other(main: Branch) -> None:
    cursor, narrow = main.changes().cursor, main.changes(types=["Person"]).cursor
    dropped = "edge MemberOf: Person -> Team {\n  since: Date?\n}\n"
    boundary = main.apply_schema(main.schema.replace(dropped, "")).commit
    assert boundary is not None
    commit = hire(main, "Cleo")
    with pytest.raises(errors.ChangeSchemaBoundaryError) as refused:
        main.changes(cursor=cursor)
    assert refused.value.commit == boundary.id
    assert commits(main.changes(cursor=narrow, types=["Person"])) == [boundary.id, commit]
    assert commits(main.changes(start=f"after:{boundary.id}")) == [commit]
