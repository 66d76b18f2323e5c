"""The conflicts of a merge as one list: rows that both sides changed, and rules that break."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.changes.rows_by_id import fetch_rows
from omnigraph.errors import EntityConflict, Violation
from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN
from omnigraph.rows.comparison import with_both_zeros
from omnigraph.rows.json_encoding import encode_json_values
from omnigraph.rows.result_types import to_result_values
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.schema.catalog import SOURCE, TARGET, EdgeType
from omnigraph.storage.tables.blob_columns import is_blob
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.existing_rows import CommittedState
from omnigraph.writers.graph_change import NO_IDS, GraphChange, TypeChange
from omnigraph.writers.merge.conflict_kinds import (
    MergeAction,
    format_orphan_message,
    format_row_message,
    format_unique_message,
)
from omnigraph.writers.merge.merge_sides import MergeSides
from omnigraph.writers.merge.merged_schema import MergedSchema, MergedType, SchemaConflict, SideType
from omnigraph.writers.merge.property_rules import name_columns
from omnigraph.writers.merge.row_rules import KINDS, RowOutcomes
from omnigraph.writers.validate import Findings
from omnigraph.writers.validate.unique_groups import UniqueGroup, groups_of

# A report lists no more conflicts than this; all of them are counted.
CONFLICTS_LISTED_MAX: Final = 10_000

# So many conflicts come with the states of their entities.
IMAGES_MAX: Final = 1_000
_KIND_OF_RULE: Final = {
    "reference": "orphan_edge",
    "unique": "unique_violation",
    "cardinality": "cardinality_violation",
}
_EDGE_RULES: Final = ("reference", "cardinality")

# A blob may be large, and is shown as its size and hash.
_BLOBS_MAX: Final = 16
EntityImage: TypeAlias = Mapping[str, object]

# An entity at the base, on ours and on theirs; None where it does not exist.
SideImages: TypeAlias = tuple[EntityImage | None, EntityImage | None, EntityImage | None]


@dataclass(frozen=True, slots=True)
class MergeConflicts:
    """The conflicts of a merge, the first of them one by one."""

    listed: tuple[EntityConflict, ...] = ()
    count: int = 0


def list_schema_conflicts(found: Sequence[SchemaConflict]) -> MergeConflicts:
    """Elements of the schema that both sides changed differently."""
    listed = tuple(
        EntityConflict(
            kind="schema_conflict",
            entity_kind="schema",
            type_name=each.element,
            entity_id=None,
            message=each.message,
            base=_parse_definition(each.base),
            ours=_parse_definition(each.ours),
            theirs=_parse_definition(each.theirs),
        )
        for each in found
    )
    return MergeConflicts(listed, len(listed))


def list_row_conflicts(verdicts: Iterable[RowOutcomes], action: MergeAction) -> MergeConflicts:
    """Entities that both sides changed differently, and for which no side is preferred."""
    listed: list[EntityConflict] = []
    count = 0
    for each in verdicts:
        places = np.flatnonzero(each.is_open)
        count += len(places)
        listed += _iter_row_conflicts(
            each, places[: max(CONFLICTS_LISTED_MAX - len(listed), 0)], action
        )
    return MergeConflicts(tuple(listed), count)


def list_rule_conflicts(
    change: GraphChange,
    committed: CommittedState,
    findings: Findings,
    merged: MergedSchema,
    sides: MergeSides,
) -> MergeConflicts:
    """Rules of the schema that the merged state would break."""
    keys = [_violation_type_of(change, each) for each in findings.violations]
    listed = [
        _build_rule_conflict(key, each) for key, each in zip(keys, findings.violations, strict=True)
    ]
    orphans: dict[TypeKey, list[tuple[int, Violation]]] = {}
    taken: dict[TypeKey, list[tuple[int, Violation]]] = {}
    for place, (key, each) in enumerate(zip(keys, findings.violations, strict=True)):
        if each.rule == "reference":
            orphans.setdefault(key, []).append((place, each))
        elif each.rule == "unique" and place < IMAGES_MAX:
            taken.setdefault(key, []).append((place, each))
    for key, broken in orphans.items():
        for place, message in _iter_orphan_messages(
            committed, key, change.get(key), broken, sides.action
        ):
            listed[place] = replace(listed[place], message=message)
    for key, broken in taken.items():
        found = _find_holders_by_row(committed, key, change[key], broken)
        ids = pa.array(sorted(set(found.values())), pa.utf8())
        images = read_images(sides.ours, _key_of(merged.types[key].ours), ids)
        for place, other in found.items():
            holder = f"{key.name} '{other}'"
            message = format_unique_message(sides.action, listed[place].message, holder)
            listed[place] = replace(listed[place], message=message, ours=images[other])
    return MergeConflicts(tuple(listed), findings.count)


def _find_holders_by_row(
    committed: CommittedState, key: TypeKey, change: TypeChange, broken: list[tuple[int, Violation]]
) -> dict[int, str]:
    """The broken unique groups whose values an entity of ours holds, with its id, by place."""
    asked = {
        place: (each.entity_id, each.property)
        for place, each in broken
        if each.entity_id is not None and each.property is not None
    }
    found = find_unique_conflicts(committed, key, change, list(asked.values()))
    return {place: found[pair] for place, pair in asked.items() if pair in found}


def _iter_orphan_messages(
    committed: CommittedState,
    key: TypeKey,
    change: TypeChange | None,
    broken: list[tuple[int, Violation]],
    action: MergeAction,
) -> Iterator[tuple[int, str]]:
    """What is said of edges without one of their nodes, by place."""
    type_ = committed.view.types[key]
    assert isinstance(type_, EdgeType), "only edges have ends"
    ids = pa.array([each.entity_id for _, each in broken], pa.utf8())
    written = NO_IDS if change is None else change.written
    are_theirs = pc.is_in(ids, value_set=written.cast(ids.type)).to_pylist()
    for (place, each), is_theirs in zip(broken, are_theirs, strict=True):
        is_source = each.property == SOURCE
        node, end = (type_.source, "source") if is_source else (type_.target, "target")
        edge = f"edge {key.name} '{each.entity_id}'"
        end_node = f"{node} '{each.value}' as its {end}"
        yield place, format_orphan_message(action, edge, end_node, is_edge_theirs=is_theirs)


def join_conflicts(parts: Sequence[MergeConflicts]) -> MergeConflicts:
    """Several reports as one."""
    listed = [conflict for part in parts for conflict in part.listed]
    return MergeConflicts(tuple(listed[:CONFLICTS_LISTED_MAX]), sum(part.count for part in parts))


def with_images(
    conflicts: MergeConflicts, merged: MergedSchema, sides: MergeSides
) -> MergeConflicts:
    """The conflicts with the states of their entities on all three sides, as far as they go."""
    first, rest = conflicts.listed[:IMAGES_MAX], conflicts.listed[IMAGES_MAX:]
    ids: dict[TypeKey, list[str]] = {}
    for each in first:
        type_key = _conflict_type_of(each)
        if type_key is not None and type_key in merged.types and each.entity_id is not None:
            ids.setdefault(type_key, []).append(each.entity_id)
    known = {key: _TypeImages(merged.types[key], sides, found) for key, found in ids.items()}
    detailed = [
        known[key].add_images(each) if (key := _conflict_type_of(each)) in known else each
        for each in first
    ]
    return MergeConflicts((*detailed, *rest), conflicts.count)


class _TypeImages:
    """The entities of one type that are in conflict, on all three sides."""

    def __init__(self, type_: MergedType, sides: MergeSides, ids: list[str]) -> None:
        wanted = pa.array(sorted(set(ids)), pa.utf8())
        self._base = read_images(sides.base, _key_of(type_.base), wanted)
        self._ours = read_images(sides.ours, _key_of(type_.ours), wanted)
        self._theirs = read_images(sides.theirs, _key_of(type_.theirs), wanted)

    def add_images(self, conflict: EntityConflict) -> EntityConflict:
        """The conflict with the states of its entity."""
        id_ = conflict.entity_id
        if id_ is None:
            return conflict
        if conflict.ours is not None:
            # The message says it already: another entity of ours holds what this one wants.
            return replace(conflict, base=self._base.get(id_), theirs=self._theirs.get(id_))
        images = select_differing((self._base.get(id_), self._ours.get(id_), self._theirs.get(id_)))
        base, ours, theirs = images
        if conflict.kind not in KINDS or ours is None or theirs is None:
            return replace(conflict, base=base, ours=ours, theirs=theirs)
        names = conflict.properties or tuple(sorted(_iter_differing_names(ours, theirs)))
        if base is not None:
            base, ours, theirs = (_select_names(each, set(names)) for each in (base, ours, theirs))
        message = f"{conflict.message}: {', '.join(names)}"
        return replace(conflict, base=base, ours=ours, theirs=theirs, message=message)


def _iter_differing_names(ours: EntityImage, theirs: EntityImage) -> Iterator[str]:
    return (name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name))


def _iter_row_conflicts(
    verdicts: RowOutcomes, places: np.ndarray[tuple[int], np.dtype[np.intp]], action: MergeAction
) -> Iterator[EntityConflict]:
    key = verdicts.type_.key
    ids = verdicts.ids.take(pa.array(places)).to_pylist()
    named = _name_open_properties(verdicts, places)
    for place, id_ in zip(places.tolist(), ids, strict=True):
        kind = KINDS[verdicts.kinds[place]]
        is_gone = not verdicts.ours.is_there[place]
        message = format_row_message(action, kind, f"{key.name} '{id_}'", is_ours_gone=is_gone)
        yield EntityConflict(
            kind, str(key.kind), key.name, id_, message, properties=tuple(named.get(place, ()))
        )


def _name_open_properties(
    verdicts: RowOutcomes, places: np.ndarray[tuple[int], np.dtype[np.intp]]
) -> dict[int, list[str]]:
    """The properties that both sides changed differently, by the place of their entity."""
    mixed, names = verdicts.mixed, name_columns(verdicts.type_.shape)
    found: dict[int, list[str]] = {}
    listed = np.isin(mixed.places, places)
    for part in mixed.parts:
        for place in mixed.places[part.is_open & listed].tolist():
            found.setdefault(place, []).extend(names[column] for column in part.columns)
    return {place: sorted(each) for place, each in found.items()}


def _build_rule_conflict(key: TypeKey, violation: Violation) -> EntityConflict:
    return EntityConflict(
        kind=_KIND_OF_RULE.get(violation.rule, "value_constraint_violation"),
        entity_kind=str(key.kind),
        type_name=key.name,
        entity_id=violation.entity_id,
        message=violation.message,
    )


def _violation_type_of(change: GraphChange, violation: Violation) -> TypeKey:
    """The type of a violation, which has its name only: a node and an edge type may share it."""
    assert violation.type_name is not None, "rules are about types"
    node = TypeKey(TypeKind.NODE, violation.type_name)
    edge = TypeKey(TypeKind.EDGE, violation.type_name)
    if violation.rule in _EDGE_RULES or node not in change:
        return edge
    if edge not in change or violation.entity_id is None:
        return node
    is_node = pc.is_in(pa.array([violation.entity_id]), value_set=change[node].written)
    return node if is_node[0].as_py() else edge


def _conflict_type_of(conflict: EntityConflict) -> TypeKey | None:
    if conflict.entity_kind == "schema":
        return None
    return TypeKey(TypeKind(conflict.entity_kind), conflict.type_name)


def _key_of(there: SideType | None) -> TypeKey | None:
    return None if there is None else there.key


def _parse_definition(text: str | None) -> EntityImage | None:
    return None if text is None else {"definition": text}


def find_unique_conflicts(
    committed: CommittedState,
    type_key: TypeKey,
    change: TypeChange,
    wanted: Sequence[tuple[str, str]],
) -> dict[tuple[str, str], str]:
    """Of entities and the groups they break, as messages spell them: the id of the other one.

    It is an entity of ours that the merge leaves alone; there is none where two of theirs collide.
    """
    found: dict[tuple[str, str], str] = {}
    for group in groups_of(change.shape, committed.view.types[type_key]):
        ids = [id_ for id_, spelling in wanted if spelling == group.spelling]
        if ids and not group.has_key:
            for id_, other in _find_group_conflicts(
                committed, type_key, change, group=group, ids=ids
            ).items():
                found[id_, group.spelling] = other
    return found


def _find_group_conflicts(
    committed: CommittedState,
    type_key: TypeKey,
    change: TypeChange,
    *,
    group: UniqueGroup,
    ids: list[str],
) -> dict[str, str]:
    names = [ID_COLUMN, *(column for column in group.columns if column != ID_COLUMN)]
    is_wanted = pc.is_in(change.rows[ID_COLUMN], value_set=pa.array(ids, pa.utf8()))
    rows = change.rows.select(names).filter(is_wanted)
    values = with_both_zeros(rows[group.columns[0]].combine_chunks())
    others = committed.find_value_rows(type_key, group.columns, values)
    touched = pa.concat_arrays([change.written, change.deleted.cast(change.written.type)])
    others = others.filter(pc.invert(pc.is_in(others[ID_COLUMN], value_set=touched)))
    # The texts of a value are one for both zeros, as uniqueness has it.
    owners = dict(zip(_list_tuples(group, others), others[ID_COLUMN].to_pylist(), strict=True))
    mine = zip(rows[ID_COLUMN].to_pylist(), _list_tuples(group, rows), strict=True)
    return {id_: owners[values] for id_, values in mine if values in owners}


def _list_tuples(group: UniqueGroup, rows: pa.Table) -> list[tuple[str | None, ...]]:
    texts = [column.to_pylist() for column in group.format_texts(rows)]
    return list(zip(*texts, strict=True))


def read_images(view: View, type_key: TypeKey | None, ids: pa.Array) -> dict[str, EntityImage]:
    """The properties of some entities, by id; nulls are left out, ends are `@src` and `@dst`."""
    if type_key is None or type_key not in view.types or not len(ids):
        return {}
    shape = view.get_shape(type_key)
    blobs = {field.name for field in shape.schema if is_blob(field)}
    light = [name for name in shape.schema.names if name not in blobs]
    chosen = light if len(ids) > _BLOBS_MAX else None
    rows = fetch_rows(view, type_key, ids, columns=chosen)
    columns = {
        name: _describe_blobs(rows[column]) if column in blobs else _encode_values(rows[column])
        for name, column in shape.columns.items()
        if column in rows.column_names
    }
    if type_key.kind is TypeKind.EDGE:
        ends = {SOURCE: rows[SOURCE_COLUMN], TARGET: rows[TARGET_COLUMN]}
        columns = {name: end.to_pylist() for name, end in ends.items()} | columns
    return {
        entity_id: {
            name: values[place] for name, values in columns.items() if values[place] is not None
        }
        for place, entity_id in enumerate(rows[ID_COLUMN].to_pylist())
    }


def select_differing(images: SideImages) -> SideImages:
    """The images of an entity that is on all sides without what is the same on all of them."""
    base, ours, theirs = images
    if base is None or ours is None or theirs is None:
        return images
    names = {
        name
        for name in {**base, **ours, **theirs}
        if not base.get(name) == ours.get(name) == theirs.get(name)
    }
    return _select_names(base, names), _select_names(ours, names), _select_names(theirs, names)


def _select_names(image: EntityImage, names: set[str]) -> EntityImage:
    return {name: value for name, value in image.items() if name in names}


def _encode_values(values: pa.ChunkedArray) -> list[object]:
    # What a table has as days has a time of day in JSON, as in results.
    return [*encode_json_values(to_result_values(values))]


def _describe_blobs(values: pa.ChunkedArray) -> list[object]:
    return [
        None if blob is None else {"bytes": len(blob), "sha256": hashlib.sha256(blob).hexdigest()}
        for blob in values.to_pylist()
    ]
