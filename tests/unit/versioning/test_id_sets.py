"""Sets of ids, small and large, answer alike."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.versioning import id_sets
from omnigraph.versioning.id_sets import EMPTY, DeferredIds, IdSet

IDS = st.sets(st.text("abc", min_size=1, max_size=3), max_size=8)


@pytest.fixture(params=["few", "many"], autouse=True)
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test runs on both representations."""
    if request.param == "many":
        monkeypatch.setattr(id_sets, "FEW_MAX", 2)


def test_ids_are_read_in_order_and_once() -> None:
    assert list(IdSet(["b", "a", "b", "c"])) == ["a", "b", "c"]
    assert list(IdSet(pa.array(["b", "a", "b", "c"]))) == ["a", "b", "c"]
    assert len(IdSet(pa.chunked_array([["b"], ["a", "b", "c"]]))) == 3


def test_the_source_of_a_set_does_not_matter() -> None:
    assert IdSet(["a", "b", "c"]) == IdSet(pa.array(["c", "b", "a"], pa.large_string()))
    assert IdSet(["a"]) != IdSet(["b"])
    assert IdSet(["a"]) != {"a"}
    assert len({IdSet(["a", "b"]), IdSet(["b", "a"])}) == 1


def test_nothing_is_common_with_an_empty_set() -> None:
    assert IdSet("abcd").find_first_common(EMPTY) is None
    assert EMPTY.find_first_common(IdSet("abcd")) is None


def test_a_set_prints_its_first_ids() -> None:
    assert repr(IdSet("ab")) == "IdSet(['a', 'b'])"
    assert repr(IdSet("abcdef")) == "IdSet(['a', 'b', 'c', 'd', 'e'] …)"


@given(IDS, IDS)
def test_first_common_and_union_agree_with_python_sets(left: set[str], right: set[str]) -> None:
    assert IdSet(left).find_first_common(IdSet(right)) == min(left & right, default=None)
    assert list(IdSet(left).union(IdSet(right))) == sorted(left | right)
    assert IdSet(left).to_array().type == pa.large_string()


def test_a_deferred_set_is_made_once_and_only_when_it_is_needed() -> None:
    made: list[int] = []

    def make() -> IdSet:
        made.append(1)
        return IdSet(["a", "b"])

    deferred = DeferredIds(2, make)
    together = deferred.union(IdSet(["c"]))
    assert (len(deferred), len(together), made) == (2, 3, [])
    assert together.find_first_common(IdSet(["b", "z"])) == "b"
    assert together.find_first_common(IdSet(["c"])) == "c"
    assert deferred.find_first_common(IdSet(["z"])) is None
    assert (list(deferred), made) == (["a", "b"], [1])
