"""Every path without a repeated node, an edge at a time."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.execution.operators.path_search import Sphere, search_around
from omnigraph.execution.operators.path_tracing import FoundPaths, WalkedPaths, join_paths
from omnigraph.execution.operators.path_walks import PathWalks, States, Walked
from omnigraph.execution.sources.graph_source import RowIndices


class PathEnds(NamedTuple):
    """Where paths may end: at the state of each pair, or at any node of a type."""

    states: States | None
    type_name: str


class PathsToEnds(NamedTuple):
    """Paths, and the state at the end of each."""

    paths: FoundPaths
    ends: States


def enumerate_paths(
    walks: PathWalks, starts: States, ends: PathEnds, bounds: tuple[int, int]
) -> PathsToEnds:
    """The paths of at least one edge from starts, of which there is one at each place."""
    minimum, maximum = bounds
    back = None if ends.states is None else _search_back(walks, ends.states, maximum)
    rows = WalkedPaths(walks, starts, walks.places_of(starts))
    parts = [PathsToEnds(join_paths([]), starts[:0])]
    for length in range(1, maximum + 1):
        walked = walks.expand_edges(rows.states, partial(_find_open, rows, back, maximum - length))
        rows = rows.extend(walked.parents, walked)
        is_done = _find_ended(walks, rows.states, ends)
        if length >= minimum:
            done = np.flatnonzero(is_done)
            parts.append(PathsToEnds(rows.collect(done), rows.states.take(done)))
        if back is not None:
            # A path that has met its end does not meet it again.
            rows = rows.select(np.flatnonzero(~is_done))
        if not len(rows.states):
            break
    pairs = np.concatenate([each.paths.pairs for each in parts])
    lists = pa.concat_arrays([each.paths.lists for each in parts])
    states = np.concatenate([each.ends for each in parts])
    order = np.argsort(pairs, kind="stable")
    return PathsToEnds(FoundPaths(pairs, lists).take(order), states.take(order))


def _find_open(
    rows: WalkedPaths, back: Sphere | None, hops_left: int, walked: Walked
) -> npt.NDArray[np.bool_]:
    """Which edges lead to a node that their path has not met, from where it can reach its end."""
    is_open = rows.find_unmet(walked)
    if back is not None:
        depths = back.find_depths(walked.states)
        is_open &= (depths >= 0) & (depths <= hops_left)
    return is_open


def _search_back(walks: PathWalks, ends: States, maximum: int) -> Sphere:
    """The nodes around the ends of pairs, from which there is time to reach them."""
    distinct, owners = np.unique(walks.nodes_of(ends), return_inverse=True)
    places = np.arange(len(distinct))
    sphere = search_around(
        walks, walks.move_states(distinct, places), maximum - 1, is_backwards=True
    )
    sphere.owners = owners.astype(np.int64)
    return sphere


def _find_ended(walks: PathWalks, states: States, ends: PathEnds) -> npt.NDArray[np.bool_]:
    if ends.states is None:
        return walks.are_of_type(states, ends.type_name)
    is_end: npt.NDArray[np.bool_] = states == ends.states.take(walks.places_of(states))
    return is_end


def rank_paths(walks: PathWalks, paths: FoundPaths, groups: RowIndices) -> RowIndices:
    """The place of each path among those of its group, by the edges on the way."""
    edges, lengths = walks.list_edge_ranks(paths.lists)
    width = int(lengths.max(initial=0))
    firsts = np.cumsum(lengths) - lengths
    columns = []
    for at in range(width):
        # A path that ends comes before those that go on.
        is_there = lengths > at
        column = np.full(len(lengths), -1, np.int64)
        column[is_there] = edges[firsts[is_there] + at]
        columns.append(column)
    order = np.lexsort((*reversed(columns), groups))
    sorted_groups = groups.take(order)
    starts = np.flatnonzero(np.append(True, sorted_groups[1:] != sorted_groups[:-1])[: len(order)])
    sizes = np.diff(np.append(starts, len(order)))
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order)) - np.repeat(starts, sizes)
    return ranks
