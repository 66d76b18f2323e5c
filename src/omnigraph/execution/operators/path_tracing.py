"""The shortest paths themselves: which nodes they pass, and which edges come first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.execution.operators.path_search import Depths, Meeting, Sphere
from omnigraph.execution.operators.path_walks import PathWalks, States, Walked
from omnigraph.execution.sorted_arrays import expand_runs, sort_distinct_pairs
from omnigraph.execution.sources.graph_source import RowIndices

# A path while it is found: a state, an edge and where it came from, for each edge on the way.
_STEP_BYTES: Final = 40
_EDGE_BITS: Final = 32


@dataclass(frozen=True, slots=True)
class FoundPaths:
    """Paths in the order of their pairs, those of one pair by the edges on the way.

    A path is a list of integers: a node, an edge, a node and so on, each with its type in the upper
    half. `pairs` says whose paths they are.
    """

    pairs: RowIndices
    lists: pa.ListArray

    def take(self, at: RowIndices) -> FoundPaths:
        """Some of the paths."""
        return FoundPaths(self.pairs.take(at), self.lists.take(pa.array(at)))


def trace_paths(walks: PathWalks, sources: States, meeting: Meeting, *, is_all: bool) -> FoundPaths:
    """The first shortest path of each pair that has one, or all of them."""
    layers = _find_layers(walks, meeting)
    pairs = np.flatnonzero(meeting.distances >= 0)
    rows = WalkedPaths(walks, sources.take(pairs), pairs)
    parts: list[FoundPaths] = []
    distances = meeting.distances.take(pairs)
    depth = 0
    while len(rows.states):
        is_done = distances == depth
        if is_done.any():
            parts.append(rows.collect(np.flatnonzero(is_done)))
        going = np.flatnonzero(~is_done)
        keep = partial(_find_near, layers, depth + 1)
        walked = walks.choose_edges(
            walks.expand_edges(rows.states.take(going), keep), is_all=is_all
        )
        at = going.take(walked.parents)
        rows = rows.extend(at, walked)
        distances = distances.take(at)
        depth += 1
    return join_paths(parts)


def _find_near(layers: Sphere, depth: int, walked: Walked) -> npt.NDArray[np.bool_]:
    """Which edges lead to a node at a depth on a shortest path."""
    is_near: npt.NDArray[np.bool_] = layers.find_depths(walked.states) == depth
    return is_near


def make_single_paths(walks: PathWalks, states: States, walked: Walked | None) -> FoundPaths:
    """Paths that stay where they start: without an edge, or over the loops that were walked."""
    rows = WalkedPaths(walks, states, walks.places_of(states))
    if walked is not None:
        rows = rows.extend(walked.parents, walked)
    return rows.collect(np.arange(len(rows.states)))


def _find_layers(walks: PathWalks, meeting: Meeting) -> Sphere:
    """The nodes on shortest paths, each with its distance from the source of its pair."""
    found = [(meeting.states, meeting.layers)]
    for sphere, step in ((meeting.ahead, -1), (meeting.back, 1)):
        states, layers = meeting.states, meeting.layers
        while sphere is not None and len(states):
            states, layers = _follow_shell(walks, (states, layers), meeting, step)
            found.append((states, layers))
    states, layers = (np.concatenate(each) for each in zip(*found, strict=True))
    order = np.argsort(states, kind="stable")
    return Sphere(walks, states.take(order), layers.take(order))


def _follow_shell(
    walks: PathWalks, shell: tuple[States, Depths], meeting: Meeting, step: int
) -> tuple[States, Depths]:
    """The nodes one step nearer to the source, or to the target, that lie on shortest paths."""
    states, layers = shell
    lengths = meeting.distances.take(walks.places_of(states))
    is_inner = layers > 0 if step < 0 else layers < lengths
    states, layers = states[is_inner], layers[is_inner]
    by_pair = np.zeros(len(meeting.distances), np.int64)
    by_pair[walks.places_of(states)] = layers + step
    found = walks.expand_states(states, is_backwards=step < 0)
    found = sort_distinct_pairs(found)
    wanted = by_pair.take(walks.places_of(found))
    if step < 0:
        assert meeting.ahead is not None
        is_near = (meeting.ahead.find_depths(found) == wanted) & (wanted >= 0)
    else:
        assert meeting.back is not None
        rest = meeting.distances.take(walks.places_of(found)) - wanted
        is_near = (meeting.back.find_depths(found) == rest) & (rest >= 0)
    return found[is_near], wanted[is_near]


class WalkedPaths:
    """Paths that are being walked, all of one length."""

    def __init__(self, walks: PathWalks, states: States, pairs: RowIndices) -> None:
        self.walks = walks
        self.states = states
        self.pairs = pairs
        # The nodes and edges on the way, a column each.
        self.columns = [walks.nodes_of(states)]

    def extend(self, at: RowIndices, walked: Walked) -> WalkedPaths:
        """Some of the paths with one more edge."""
        columns = len(self.columns) + 2
        self.walks.budget.require_memory(len(at) * (_STEP_BYTES + 8 * columns))
        rows = WalkedPaths(self.walks, walked.states, self.pairs.take(at))
        edges = (walked.types.astype(np.int64) << _EDGE_BITS) | walked.edges
        rows.columns = [*self._take_columns(at), edges, rows.columns[0]]
        return rows

    def find_unmet(self, walked: Walked) -> npt.NDArray[np.bool_]:
        """Which edges lead to a node that their path has not met."""
        ahead = self.walks.nodes_of(walked.states)
        is_unmet = np.ones(len(ahead), np.bool_)
        for nodes in self.columns[::2]:
            is_unmet &= nodes.take(walked.parents) != ahead
        return is_unmet

    def select(self, at: RowIndices) -> WalkedPaths:
        """Some of the paths."""
        rows = WalkedPaths(self.walks, self.states.take(at), self.pairs.take(at))
        rows.columns = list(self._take_columns(at))
        return rows

    def _take_columns(self, at: RowIndices) -> Iterator[RowIndices]:
        for each in self.columns:
            self.walks.budget.check_interrupts()
            yield each.take(at)

    def collect(self, at: RowIndices) -> FoundPaths:
        """Some of the paths as lists."""
        width = len(self.columns)
        values = np.stack(list(self._take_columns(at)), axis=1).reshape(-1)
        offsets = np.arange(len(at) + 1, dtype=np.int32) * np.int32(width)
        lists = pa.ListArray.from_arrays(pa.array(offsets), pa.array(values))
        return FoundPaths(self.pairs.take(at), lists)


def join_paths(parts: list[FoundPaths]) -> FoundPaths:
    """Paths of several lengths, in the order of their pairs."""
    if not parts:
        return FoundPaths(np.zeros(0, np.int64), pa.array([], pa.list_(pa.int64())))
    pairs = np.concatenate([each.pairs for each in parts])
    lists = pa.concat_arrays([each.lists for each in parts])
    order = np.argsort(pairs, kind="stable")
    return FoundPaths(pairs, lists).take(order)


def rank_within(places: RowIndices, count: int) -> RowIndices:
    """The position of each item among those of its place; equal places follow each other."""
    return expand_runs(np.bincount(places, minlength=count))[1]
