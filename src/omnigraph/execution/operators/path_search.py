"""How far nodes are apart: breadth-first from one side, or from both until they meet."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from omnigraph.execution.operators.path_walks import PathWalks, States
from omnigraph.execution.sorted_arrays import is_among
from omnigraph.execution.sources.graph_source import RowIndices

Depths = npt.NDArray[np.int64]

# A state that was seen, its depth, and a copy of both while they are sorted.
_STATE_BYTES: Final = 32


@dataclass(slots=True)
class Sphere:
    """The states around some, each with its depth.

    `owners` says at which place of the sphere each place of the caller is; None if they are alike.
    """

    walks: PathWalks
    states: States
    depths: Depths
    owners: RowIndices | None = None

    def select_owners(self, first: int, last: int) -> Sphere:
        """The same for some of the places of the caller, numbered from zero."""
        assert self.owners is not None, "places of a sphere of its own are not shared"
        return replace(self, owners=self.owners[first:last])

    def find_depths(self, states: States) -> Depths:
        """The depth of each state, -1 if it was not reached."""
        if self.owners is not None:
            places = self.owners.take(self.walks.places_of(states))
            states = self.walks.move_states(states, places)
        if not len(self.states):
            return np.full(len(states), -1, np.int64)
        at = np.searchsorted(self.states, states)
        at[at == len(self.states)] = 0
        return np.where(self.states.take(at) == states, self.depths.take(at), -1)


@dataclass(slots=True)
class _GrowingSphere:
    """A sphere of which one shell after the other is found."""

    walks: PathWalks
    seen: States
    is_backwards: bool
    shells: list[tuple[States, Depths]] = field(default_factory=list)

    def expand(self, states: States, depths: Depths) -> States:
        """The states next to some that were not seen before; `depths` are those of places."""
        fresh = self.walks.expand_unseen(states, self.seen, is_backwards=self.is_backwards)
        self.walks.budget.require_memory(_STATE_BYTES * (len(self.seen) + len(fresh)))
        self.seen = _merge(self.seen, fresh)
        self.shells.append((fresh, depths.take(self.walks.places_of(fresh))))
        return fresh

    def finish(self) -> Sphere:
        """All states with their depths."""
        states, depths = (np.concatenate(each) for each in zip(*self.shells, strict=True))
        order = np.argsort(states, kind="stable")
        return Sphere(self.walks, states.take(order), depths.take(order))


def search_around(
    walks: PathWalks,
    starts: States,
    maximum: int,
    *,
    is_backwards: bool = False,
    wanted: States | None = None,
) -> Sphere:
    """The states around starts, of which there is one at each place.

    With wanted states, which are ascending, no further than they are.
    """
    sphere = _GrowingSphere(walks, starts, is_backwards)
    depth = np.zeros(len(starts), np.int64)
    sphere.shells.append((starts, depth))
    frontier = starts
    for hop in range(1, maximum + 1):
        if wanted is not None:
            wanted = wanted[~is_among(wanted, frontier)]
            is_open = np.bincount(walks.places_of(wanted), minlength=len(starts)) > 0
            frontier = frontier[is_open.take(walks.places_of(frontier))]
        if not len(frontier):
            break
        frontier = sphere.expand(frontier, depth + hop)
    return sphere.finish()


@dataclass(frozen=True, slots=True)
class Meeting:
    """How far the ends of pairs are apart, -1 without a path, and where searches of them met.

    `states` are nodes on shortest paths, `layers` how far each is from the source of its pair:
    each shortest path has exactly one of them. A side is None where it was not searched from.
    """

    distances: Depths
    states: States
    layers: Depths
    ahead: Sphere | None
    back: Sphere | None

    def select_pairs(self, walks: PathWalks, first: int, last: int) -> Meeting:
        """Some of the pairs, numbered from zero."""
        if first == 0 and last >= len(self.distances):
            return self
        places = walks.places_of(self.states)
        at = np.flatnonzero((places >= first) & (places < last))
        states = self.states.take(at)
        return Meeting(
            self.distances[first:last],
            walks.move_states(states, walks.places_of(states) - first),
            self.layers.take(at),
            None if self.ahead is None else self.ahead.select_owners(first, last),
            None if self.back is None else self.back.select_owners(first, last),
        )


def search_between(walks: PathWalks, ends: tuple[States, States], maximum: int) -> Meeting:
    """Search from both ends of pairs, of each pair from where fewer states are at the edge."""
    count = len(ends[0])
    spheres = [_GrowingSphere(walks, each, bool(side)) for side, each in enumerate(ends)]
    fronts = list(ends)
    depths = np.zeros((2, count), np.int64)
    distances = np.full(count, -1, np.int64)
    met: list[States] = [np.zeros(0, np.int64)]
    for sphere, start in zip(spheres, ends, strict=True):
        sphere.shells.append((start, np.zeros(count, np.int64)))
    while True:
        sizes = np.stack([np.bincount(walks.places_of(each), minlength=count) for each in fronts])
        is_open = (distances < 0) & (sizes > 0).all(axis=0) & (depths.sum(axis=0) < maximum)
        if not is_open.any():
            break
        smaller = (sizes[1] < sizes[0]).astype(np.int64)
        for side in (0, 1):
            is_chosen = is_open & (smaller == side)
            places = walks.places_of(fronts[side])
            depths[side] += is_chosen
            fresh = spheres[side].expand(fronts[side][is_chosen.take(places)], depths[side])
            fronts[side] = _merge(fronts[side][(is_open & ~is_chosen).take(places)], fresh)
            found = fresh[is_among(fresh, fronts[1 - side])]
            met.append(found)
            distances[walks.places_of(found)] = depths.sum(axis=0).take(walks.places_of(found))
    states = np.concatenate(met)
    layers = depths[0].take(walks.places_of(states))
    return Meeting(distances, states, layers, spheres[0].finish(), spheres[1].finish())


def search_from_one_side(
    walks: PathWalks, ends: tuple[States, States], maximum: int, *, is_backwards: bool
) -> Meeting:
    """Search from the distinct ends on one side of pairs for those on the other."""
    near, far = ends[::-1] if is_backwards else ends
    starts, owners = np.unique(walks.nodes_of(near), return_inverse=True)
    owners = owners.astype(np.int64)
    places = np.arange(len(starts))
    wanted = walks.move_states(far, owners)
    sphere = search_around(
        walks,
        walks.move_states(starts, places),
        maximum,
        is_backwards=is_backwards,
        wanted=np.unique(wanted),
    )
    sphere.owners = owners
    distances = sphere.find_depths(far)
    found = np.flatnonzero(distances >= 0)
    if is_backwards:
        nowhere = np.zeros(len(found), np.int64)
        return Meeting(distances, ends[0].take(found), nowhere, None, sphere)
    return Meeting(distances, far.take(found), distances.take(found), sphere, None)


def _merge(one: States, other: States) -> States:
    """Ascending states of two arrays that are ascending."""
    together = np.concatenate([one, other])
    together.sort(kind="stable")
    return together
