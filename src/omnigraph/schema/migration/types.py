"""Changes of a type itself: its name, interfaces, ends and cardinality."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.schema.accepted import TypeKind
from omnigraph.schema.catalog import Cardinality, EdgeType, NodeType
from omnigraph.schema.migration.pairing import TypePair, TypeVersion
from omnigraph.schema.migration.steps import RenameType, Step, UnsupportedChange


def plan_type(pair: TypePair) -> Iterator[Step]:
    """The steps for what stands in the header of a type."""
    if pair.old.key.name != pair.key.name:
        yield RenameType(pair.key, pair.old.key.name)
    match pair.old.type, pair.new.type:
        case NodeType() as old, NodeType() as new:
            yield from _plan_implements(pair, old, new)
        case EdgeType() as old_edge, EdgeType() as new_edge:
            yield from _plan_ends(pair, old_edge, new_edge)
            yield from _plan_cardinality(pair, old_edge, new_edge)
        case _:
            pass


def _plan_implements(pair: TypePair, old: NodeType, new: NodeType) -> Iterator[Step]:
    if _interface_ids_of(pair.old, old.implements) != _interface_ids_of(pair.new, new.implements):
        yield UnsupportedChange(
            pair.format_entity(),
            f"changing the implemented interfaces from ({', '.join(old.implements)})"
            f" to ({', '.join(new.implements)}) is not supported",
        )


def _interface_ids_of(side: TypeVersion, names: tuple[str, ...]) -> set[int]:
    return {side.type_id_of(TypeKind.INTERFACE, name) for name in names}


def _plan_ends(pair: TypePair, old: EdgeType, new: EdgeType) -> Iterator[Step]:
    if _end_ids_of(pair.old, old) != _end_ids_of(pair.new, new):
        yield UnsupportedChange(
            pair.format_entity(),
            f"changing the ends from {old.source} -> {old.target}"
            f" to {new.source} -> {new.target} is not supported; add a new edge type",
        )


def _end_ids_of(side: TypeVersion, edge: EdgeType) -> tuple[int, int]:
    return side.type_id_of(TypeKind.NODE, edge.source), side.type_id_of(TypeKind.NODE, edge.target)


def _plan_cardinality(pair: TypePair, old: EdgeType, new: EdgeType) -> Iterator[Step]:
    if old.cardinality != new.cardinality:
        yield UnsupportedChange(
            pair.format_entity(),
            f"changing the cardinality from {_format_cardinality(old.cardinality)}"
            f" to {_format_cardinality(new.cardinality)} is not supported",
        )


def _format_cardinality(cardinality: Cardinality) -> str:
    maximum = "" if cardinality.maximum is None else cardinality.maximum
    return f"{cardinality.minimum}..{maximum}"
