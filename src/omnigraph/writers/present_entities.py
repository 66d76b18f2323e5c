"""Patches of entities that exist: rows of others are left out, or refused."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import VIOLATIONS_SHOWN_MAX, Violation, WriteRefusedError, format_violations
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.versioning.footprint import Footprint, ReadSet
from omnigraph.versioning.id_sets import IdSet
from omnigraph.writers.graph_change import TypeChange
from omnigraph.writers.inputs.input_rows import FileOrigins, Missing
from omnigraph.writers.key_cache import KeyCache
from omnigraph.writers.key_violations import MISSING_HINT, build_missing_entity
from omnigraph.writers.load_records import LoadChange


@dataclass(frozen=True, slots=True)
class PresentRows:
    """The rows of a load whose entities exist, and what was read to know that."""

    loaded: LoadChange
    reads: Footprint


def select_present(
    loaded: LoadChange, view: View, keys: KeyCache, *, missing: Missing
) -> PresentRows:
    """The rows of a patch whose entities exist; with `Missing.ERROR`, others are refused."""
    change: dict[TypeKey, TypeChange] = {}
    reads: dict[str, ReadSet] = {}
    refused: list[Violation] = []
    count = 0
    for type_key, each in loaded.change.items():
        is_there = keys.find_existing(view, type_key, each.written)
        reads[str(type_key)] = ReadSet(ids=IdSet(each.written.unique()))
        rows = np.flatnonzero(~np.asarray(is_there))
        count += len(rows)
        room = VIOLATIONS_SHOWN_MAX - len(refused)
        refused += [_build_violation(each, row) for row in rows[:room].tolist()]
        change[type_key] = each if is_there.true_count == len(is_there) else _select(each, is_there)
    if refused and missing is Missing.ERROR:
        raise WriteRefusedError(
            format_violations(refused, count), violations=refused, count=count, hint=MISSING_HINT
        )
    counts = {key: each.rows.num_rows for key, each in change.items()}
    nodes = {key.name: rows for key, rows in counts.items() if key.kind is TypeKind.NODE and rows}
    edges = {key.name: rows for key, rows in counts.items() if key.kind is TypeKind.EDGE and rows}
    kept = {key: each for key, each in change.items() if each.rows.num_rows}
    return PresentRows(LoadChange(kept, nodes, edges), reads)


def _build_violation(change: TypeChange, row: int) -> Violation:
    name, origins = change.shape.type_key.name, change.origins
    place = None if origins is None else origins.location_of(row)
    return build_missing_entity(name, change.written[row].as_py(), place=place)


def _select(change: TypeChange, is_there: pa.Array) -> TypeChange:
    origins, mask = change.origins, np.asarray(is_there)
    if isinstance(origins, FileOrigins):
        origins = origins.select_rows(pc.indices_nonzero(is_there))
    return replace(
        change,
        rows=change.rows.filter(is_there),
        origins=origins,
        absent={column: rows[mask] for column, rows in change.absent.items()},
    )
