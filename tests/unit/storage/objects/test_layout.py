from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import ResourceLimitError
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.layout import require_path

branch_names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


def test_every_path_is_as_documented() -> None:
    assert [
        layout.FORMAT,
        layout.build_ref_event_path("review/x", 3),
        layout.build_record_path("main.0", 4127),
        layout.build_checkpoint_path("main.0", 4096),
        layout.build_hint_path("main.0"),
        layout.build_change_set_path("5c"),
        layout.build_schema_path("sha256:ab12"),
        layout.build_table_path("node:Person", "1a2b3c4d"),
    ] == [
        "__manifest/format.json",
        "__manifest/branches/review%2Fx/000003.json",
        "__manifest/main.0/00000000000000004127.json",
        "__manifest/main.0/checkpoints/00000000000000004096.json",
        "__manifest/main.0/latest.json",
        "__manifest/changes/5c.arrow",
        "__manifest/schemas/ab12.json",
        "t/Person-1a2b3c4d.lance",
    ]


@given(branch_names, st.integers(0, 999_999))
def test_a_branch_is_read_back_from_its_path(branch: str, generation: int) -> None:
    path = require_path(layout.build_ref_event_path(branch, generation))
    assert layout.parse_ref_event_path(path) == (branch, generation)


@given(branch_names, branch_names)
def test_two_branches_share_no_folder_even_where_case_does_not_count(one: str, two: str) -> None:
    is_same = layout.build_branch_folder(one).lower() == layout.build_branch_folder(two).lower()
    assert is_same is (one == two)


@pytest.mark.parametrize(("one", "two"), [("Review", "review"), ("é", "e\u0301"), ("a/b", "a%2Fb")])
def test_names_that_look_alike_have_folders_of_their_own(one: str, two: str) -> None:
    assert layout.build_branch_folder(one).lower() != layout.build_branch_folder(two).lower()


@pytest.mark.parametrize("branch", [".", "..", ".tmp-1", "a/../b", " ", "con\n"])
def test_a_strange_branch_name_has_a_path_that_every_store_holds(branch: str) -> None:
    assert require_path(layout.build_ref_event_path(branch, 1))
    assert layout.build_branch_folder(branch).count("/") == 2


def test_a_branch_name_that_no_folder_can_hold_is_refused() -> None:
    assert layout.build_branch_folder("b" * 255)
    with pytest.raises(ResourceLimitError, match="branch name") as caught:
        layout.build_branch_folder("é" * 43)
    assert (caught.value.limit, caught.value.actual) == (255, 258)


@given(st.lists(st.integers(0, 10**20 - 1), max_size=5))
def test_records_are_listed_in_the_order_of_their_seq(seqs: list[int]) -> None:
    paths = sorted(layout.build_record_path("main.0", seq) for seq in seqs)
    assert [layout.parse_record_path(path) for path in paths] == sorted(seqs)


@pytest.mark.parametrize("seq", [-1, 10**20])
def test_a_number_that_would_break_the_order_is_refused(seq: int) -> None:
    with pytest.raises(ResourceLimitError):
        layout.build_record_path("main.0", seq)


def test_only_the_right_paths_are_read_back() -> None:
    record, checkpoint = (
        layout.build_record_path("main.0", 7),
        layout.build_checkpoint_path("main.0", 7),
    )
    event = layout.build_ref_event_path("main", 7)
    others = [
        layout.FORMAT,
        layout.build_hint_path("main.0"),
        layout.build_table_path("node:P", "1"),
        "x",
        record + "x",
    ]
    assert layout.parse_record_path(record) == 7
    assert layout.parse_checkpoint_path(checkpoint) == 7
    for path in [*others, checkpoint, event]:
        assert layout.parse_record_path(path) is None
    for path in [*others, record, event]:
        assert layout.parse_checkpoint_path(path) is None
    for path in [*others, record, checkpoint]:
        assert layout.parse_ref_event_path(path) is None


@given(branch_names)
def test_a_stream_is_a_plain_name_that_is_no_other_folder(branch: str) -> None:
    stream = layout.build_stream_name(branch, "5f0c")
    assert require_path(layout.build_record_path(stream, 1)).isascii()
    assert layout.build_stream_folder(stream) not in {
        layout.BRANCHES,
        layout.CHANGES,
        layout.SCHEMAS,
    }
    assert stream.endswith(".5f0c")


def test_a_stream_shows_the_name_of_its_branch() -> None:
    assert layout.build_stream_name("Review/New hires", "5f0c") == "review-new-hires.5f0c"
    assert layout.build_stream_name("日本", "5f0c") == "branch.5f0c"
