"""Which edges a traversal means whose ends may be of several types."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from omnigraph.query.typed_reads import EdgeStep
from omnigraph.schema.catalog import EdgeType
from omnigraph.schema.type_sets import list_member_types, name_type_set


@dataclass(frozen=True, slots=True)
class JoiningEdges:
    """Edges with a direction each, and the types or sets that they join."""

    steps: tuple[EdgeStep, ...]
    source_type: str
    target_type: str


def select_joining(
    edges: Iterable[EdgeType], source_type: str | None, target_type: str | None
) -> JoiningEdges:
    """Those of some edges that fit; an end without a type is of all types that they lead to.

    An edge that fits both ways is walked as it is stored, like one between two types.
    """
    sources, targets = _members_of(source_type), _members_of(target_type)
    steps: dict[str, EdgeStep] = {}
    reached: tuple[set[str], set[str]] = set(), set()
    for edge in edges:
        for is_reversed in (False, True):
            ends = (edge.target, edge.source) if is_reversed else (edge.source, edge.target)
            if edge.name not in steps and _fits(ends[0], sources) and _fits(ends[1], targets):
                steps[edge.name] = EdgeStep(edge.name, is_reversed)
                for known, name in zip(reached, ends, strict=True):
                    known.add(name)
    if not steps:
        return JoiningEdges((), source_type or "", target_type or "")
    source, target = map(name_type_set, reached)
    return JoiningEdges(tuple(steps.values()), source_type or source, target_type or target)


def _members_of(type_name: str | None) -> Collection[str] | None:
    return None if type_name is None else list_member_types(type_name)


def _fits(type_name: str, members: Collection[str] | None) -> bool:
    return members is None or type_name in members
