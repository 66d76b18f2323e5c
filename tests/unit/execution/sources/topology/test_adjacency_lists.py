"""Neighbours in arrays: as plain sets of pairs say, before and after changes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.execution.sources.graph_source import DenseIds
from omnigraph.execution.sources.topology import adjacency_lists as module
from omnigraph.execution.sources.topology.adjacency_lists import (
    Adjacency,
    Pairs,
    build_adjacency,
    build_edge_lists,
    pack_pairs,
)
from omnigraph.execution.sources.topology.changed_adjacency import (
    change_adjacency,
    change_edge_lists,
)

SIZE = 6
pair = st.tuples(st.integers(0, SIZE - 1), st.integers(0, 8))
pairs = st.lists(pair, max_size=30)


def arrays(found: list[tuple[int, int]]) -> tuple[DenseIds, DenseIds]:
    starts, ends = zip(*found, strict=True) if found else ((), ())
    return np.array(starts, np.int32), np.array(ends, np.int32)


def keys(found: list[tuple[int, int]]) -> Pairs:
    return pack_pairs(*arrays(found))


def check(found: Adjacency, expected: set[tuple[int, int]], asked: list[int]) -> None:
    nodes = np.array(asked, np.int32)
    places, ends = found.expand_neighbours(nodes)
    assert list(zip(places.tolist(), ends.tolist(), strict=True)) == [
        (place, end)
        for place, node in enumerate(asked)
        for start, end in sorted(expected)
        if start == node
    ]
    degrees = Counter(start for start, _ in expected)
    assert found.degrees.tolist() == [degrees[node] for node in range(found.size)]
    assert found.is_functional == all(degrees[node] == 1 for node in range(found.size))
    starts = np.repeat(np.arange(found.size), np.diff(found.offsets))
    listed = list(zip(starts.tolist(), found.ends.tolist(), strict=True))
    assert listed == sorted(expected)


@given(pairs, st.lists(st.integers(0, SIZE - 1), max_size=9))
def test_neighbours_are_the_distinct_ends_of_edges(
    edges: list[tuple[int, int]], asked: list[int]
) -> None:
    found = build_adjacency(*arrays(edges), SIZE)
    check(found, set(edges), asked)
    every = [(start, end) for start in range(SIZE) for end in range(9)]
    assert found.count_copies(keys(every)).tolist() == [edges.count(each) for each in every]


def test_a_functional_adjacency_takes_one_end_per_node() -> None:
    edges = [(node, SIZE - node) for node in range(SIZE)]
    check(build_adjacency(*arrays(edges), SIZE), set(edges), [3, 0, 3])


def test_no_nodes_are_not_functional() -> None:
    assert not build_adjacency(*arrays([]), 0).is_functional


@given(pairs, pairs, st.data())
def test_changes_leave_the_neighbours_of_the_edges_that_are_left(
    before: list[tuple[int, int]], added: list[tuple[int, int]], data: st.DataObject
) -> None:
    is_removed = [data.draw(st.booleans()) for _ in before]
    removed = [each for each, gone in zip(before, is_removed, strict=True) if gone]
    left = [each for each, gone in zip(before, is_removed, strict=True) if not gone]
    expected = set(left) | set(added)
    base = build_adjacency(*arrays(before), SIZE)
    asked = data.draw(st.lists(st.integers(0, SIZE - 1), max_size=9))
    cut = data.draw(st.integers(0, len(removed)))
    added_cut = data.draw(st.integers(0, len(added)))
    # In two steps, as by two commits.
    first = change_adjacency(base, keys(removed[:cut]), keys(added[:added_cut]), size=SIZE)
    for share in (0, 100):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                "omnigraph.execution.sources.topology.changed_adjacency._WALK_SHARE_MAX", share
            )
            found = change_adjacency(first, keys(removed[cut:]), keys(added[added_cut:]), size=SIZE)
            check(found, expected, asked)
    assert found.edge_count == len(expected)
    assert found.count_neighbours(np.array(asked, np.int32)).tolist() == [
        len({each for each in expected if each[0] == node}) for node in asked
    ]
    joined = found.merge_changes()
    check(joined, expected, asked)
    every = [(start, end) for start in range(SIZE) for end in range(9)]
    counts = [(left + added).count(each) for each in every]
    assert joined.count_copies(keys(every)).tolist() == counts


@given(pairs, st.lists(st.integers(0, SIZE - 1), max_size=9), st.booleans())
def test_every_edge_is_listed_with_its_number(
    edges: list[tuple[int, int]], asked: list[int], is_wide: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if is_wide:
            # As if three numbers did not fit into one integer.
            patch.setattr(module, "_WORD_BITS", 1)
        numbers = np.arange(len(edges), dtype=np.int32) * 2
        found = build_edge_lists(*arrays(edges), numbers, size=SIZE)
    matched = found.expand_edges(np.array(asked, np.int32))
    assert list(zip(*(each.tolist() for each in matched), strict=True)) == _edges(
        [(start, end, 2 * number) for number, (start, end) in enumerate(edges)], asked
    )


@given(pairs, pairs, st.data())
def test_changes_leave_the_edges_that_are_left(
    before: list[tuple[int, int]], added: list[tuple[int, int]], data: st.DataObject
) -> None:
    everything = [*before, *added]
    is_alive = np.array([data.draw(st.booleans()) for _ in everything], np.bool_)
    asked = data.draw(st.lists(st.integers(0, SIZE - 1), max_size=9))
    base = build_edge_lists(*arrays(before), np.arange(len(before), dtype=np.int32), size=SIZE)
    new = np.arange(len(before), len(everything), dtype=np.int32)
    cut = data.draw(st.integers(0, len(added)))
    is_alive[len(before) + cut :] = True
    removed = np.flatnonzero(~is_alive).astype(np.int32)
    is_first = (removed < len(before)) & np.array(
        [data.draw(st.booleans()) for _ in removed], np.bool_
    )
    # In two steps, as by two commits; the second one may remove what the first one added.
    first = change_edge_lists(base, removed[is_first], keys(added[:cut]), new[:cut], size=SIZE)
    found = change_edge_lists(first, removed[~is_first], keys(added[cut:]), new[cut:], size=SIZE)
    left = [(*each, number) for number, each in enumerate(everything) if is_alive[number]]
    for lists in (found, found.merge_changes()):
        matched = lists.expand_edges(np.array(asked, np.int32))
        assert list(zip(*(each.tolist() for each in matched), strict=True)) == _edges(left, asked)


@pytest.mark.parametrize("size", [SIZE, SIZE + 3])
def test_more_nodes_have_no_neighbours(size: int) -> None:
    edges = [(0, 1), (5, 2), (5, 2)]
    base = build_adjacency(*arrays(edges), SIZE).with_size(size)
    check(base, set(edges), list(range(size)))
    changed = change_adjacency(base, keys([(5, 2)]), keys([(1, 1)]), size=size + 2)
    check(changed, {*edges, (1, 1)}, list(range(size + 2)))
    check(changed.with_size(SIZE), {*edges, (1, 1)}, list(range(SIZE)))
    lists = build_edge_lists(*arrays(edges), np.arange(3, dtype=np.int32), size=SIZE)
    assert lists.with_size(size).expand_edges(np.array([size - 1], np.int32)).edges.tolist() == (
        [1, 2] if size == SIZE else []
    )


def _edges(edges: list[tuple[int, int, int]], asked: list[int]) -> list[tuple[int, int, int]]:
    return [
        (place, end, edge)
        for place, node in enumerate(asked)
        for start, end, edge in sorted(edges)
        if start == node
    ]
