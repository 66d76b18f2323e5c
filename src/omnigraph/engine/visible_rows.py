"""What an actor sees of types whose rows his policy limits, for reads other than queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property, reduce
from operator import and_
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from omnigraph.errors import CompileError, EntityConflict, RowsGuardedError
from omnigraph.execution.type_scan import scan_matching
from omnigraph.policy.acts import Act
from omnigraph.query.ast import CompareOp
from omnigraph.query.row_limits import RowLimits, compile_guards
from omnigraph.query.typed_tree import (
    GUARDED,
    NOW_NAME,
    STRING,
    Compare,
    Constant,
    Expr,
    SystemName,
    SystemValue,
    TypeGuard,
)
from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN
from omnigraph.rows.evaluator import Params
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.schema.catalog import Catalog
from omnigraph.versioning.effects import ID_COLUMN

_HINT: Final = "ask for them with a query, which leaves them out"


def compile_limits(limits: RowLimits, catalog: Catalog) -> tuple[TypeGuard, ...]:
    """The guards of limits; nothing is read where a condition does not fit the schema."""
    try:
        return compile_guards(limits, catalog)
    except CompileError as failure:
        problem = failure.diagnostics[0].message
        raise RowsGuardedError(
            f"a condition of the policy does not fit the schema of this commit: {problem}",
            actor=limits.actor,
            action="read",
            types=tuple(name for name, _ in limits.conditions),
            hint="the condition and the schema must change together",
        ) from failure


def list_limited_types(catalog: Catalog, guarded: Iterable[str]) -> frozenset[str]:
    """The types that lack rows where some node types are guarded: these, and the edges at them."""
    nodes = frozenset(guarded)
    return nodes | {
        each.name for each in catalog.edges.values() if nodes & {each.source, each.target}
    }


def require_all_rows(
    limits: RowLimits | None, act: Act, types: Iterable[str] | None, catalog: Catalog
) -> None:
    """Refuse an act on types of which the actor sees some rows only."""
    if limits is None:
        return
    limited = list_limited_types(catalog, (name for name, _ in limits.conditions))
    named = tuple(sorted(limited if types is None else limited & set(types)))
    if named:
        raise build_refusal(limits, act, named)


def build_refusal(limits: RowLimits, act: Act, types: tuple[str, ...]) -> RowsGuardedError:
    """The refusal of an act that cannot leave rows out."""
    shown = ", ".join(types)
    return RowsGuardedError(
        f"policy shows only some rows of {shown}; this {act.action} cannot leave the others out",
        actor=limits.actor,
        action=act.action,
        types=types,
        hint=_HINT,
    )


def hide_states(
    conflicts: Iterable[EntityConflict], seen: Iterable[tuple[RowLimits | None, Catalog]]
) -> tuple[EntityConflict, ...]:
    """Conflicts without the values of types of which the actor does not see all rows.

    `seen` are the sides of a merge, with what he sees there. A type that some side does not have
    may be a limited one by another name.
    """
    sides = [(limits, catalog, {*catalog.nodes, *catalog.edges}) for limits, catalog in seen]
    whole = frozenset.intersection(
        *(
            frozenset(names).difference(
                () if limits is None else list_limited_types(catalog, dict(limits.conditions))
            )
            for limits, catalog, names in sides
        )
    )

    def hide(state: Mapping[str, object] | None) -> Mapping[str, object] | None:
        return None if state is None else {}

    return tuple(
        each
        if each.entity_kind == "schema" or each.type_name in whole
        else replace(each, base=hide(each.base), ours=hide(each.ours), theirs=hide(each.theirs))
        for each in conflicts
    )


class VisibleRows:
    """The rows of one view that an actor sees."""

    def __init__(self, view: View, guards: Iterable[TypeGuard], *, now: int) -> None:
        self._view = view
        self._guards = {each.type_name: each.condition for each in guards}
        self._params: Params = {NOW_NAME: now}
        self._known: dict[str, pa.Array] = {}

    @cached_property
    def _limited(self) -> frozenset[str]:
        return list_limited_types(self._view.catalog, self._guards)

    def are_limited(self, type_key: TypeKey) -> bool:
        """Whether there may be rows of a type that the actor does not see."""
        if type_key.kind is TypeKind.NODE:
            return type_key.name in self._guards
        return type_key.name in self._limited

    def has_entity(self, type_key: TypeKey, entity_id: str) -> bool:
        """Whether the actor sees an entity; there may be none."""
        if not self.are_limited(type_key):
            return True
        found = self._find(type_key, entity_id)
        if type_key.kind is TypeKind.NODE or not found.num_rows:
            return bool(found.num_rows)
        edge = self._view.catalog.edges[type_key.name]
        ends = ((edge.source, SOURCE_COLUMN), (edge.target, TARGET_COLUMN))
        return all(
            self._find(TypeKey(TypeKind.NODE, name), found[column][0].as_py()).num_rows
            for name, column in ends
        )

    def count(self, type_key: TypeKey) -> int:
        """How many entities of a type the actor sees."""
        if type_key.kind is TypeKind.NODE:
            return len(self._list_ids(type_key.name))
        rows = scan_matching(self._view, type_key, (), self._params, columns=())
        seen = [
            pc.is_in(rows[column], value_set=ids) for column, ids in self._iter_end_ids(type_key)
        ]
        return int(pc.sum(reduce(pc.and_, seen)).as_py() or 0)

    def build_filter(self, type_key: TypeKey) -> tuple[ds.Expression, ...]:
        """The filter of a `TypeDataset` that leaves the rows that the actor sees."""
        if not self.are_limited(type_key):
            return ()
        if type_key.kind is TypeKind.NODE:
            return (ds.field("@id").isin(self._list_ids(type_key.name).cast(pa.utf8())),)
        names = {SOURCE_COLUMN: "@src", TARGET_COLUMN: "@dst"}
        tests = [
            ds.field(names[column]).isin(ids.cast(pa.utf8()))
            for column, ids in self._iter_end_ids(type_key)
        ]
        return (reduce(and_, tests),)

    def _iter_end_ids(self, type_key: TypeKey) -> list[tuple[str, pa.Array]]:
        """The columns of the ends of an edge type that are limited, with the ids that are seen."""
        edge = self._view.catalog.edges[type_key.name]
        ends = ((SOURCE_COLUMN, edge.source), (TARGET_COLUMN, edge.target))
        return [(column, self._list_ids(name)) for column, name in ends if name in self._guards]

    def _list_ids(self, type_name: str) -> pa.Array:
        """The ids of the nodes of a limited type that the actor sees."""
        known = self._known.get(type_name)
        if known is None:
            conditions = (self._guards[type_name],)
            key = TypeKey(TypeKind.NODE, type_name)
            rows = scan_matching(self._view, key, conditions, self._params, columns=())
            known = self._known[type_name] = rows[ID_COLUMN].combine_chunks()
        return known

    def _find(self, type_key: TypeKey, entity_id: str) -> pa.Table:
        """The row of an id, if the condition of its type holds for it."""
        wanted = Constant(entity_id, STRING)
        conditions: list[Expr] = [
            Compare(CompareOp.EQ, SystemValue(GUARDED, SystemName.ID), wanted)
        ]
        if type_key.kind is TypeKind.NODE and type_key.name in self._guards:
            conditions.append(self._guards[type_key.name])
        return scan_matching(self._view, type_key, conditions, self._params, columns=())
