"""Rules that theirs added or narrowed, held against the entities that a merge leaves on ours.

Rows that a merge writes are validated as those of any write, and a table is adopted only with the
rules that it was written by. What stays is read as a whole, which only the merge of such a schema
change has to do.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import EntityConflict
from omnigraph.rows.columns import TableShape
from omnigraph.rows.view import table_types_of
from omnigraph.schema.accepted_schema import TypeKey
from omnigraph.schema.catalog import Cardinality
from omnigraph.schema.migration import (
    DataCheck,
    DataViolation,
    Unique,
    list_data_checks,
    plan_steps,
)
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.filled_columns import fill_read, find_filled_columns, find_time_ms
from omnigraph.writers.graph_change import TypeChange
from omnigraph.writers.merge.merge_conflicts import MergeConflicts
from omnigraph.writers.merge.three_way import MergedChange
from omnigraph.writers.validate.existing_data import (
    CheckedType,
    NeededColumns,
    check_existing_data,
    mask_values,
    read_needed,
)


def list_tightened_conflicts(merged: MergedChange, known: MergeConflicts) -> MergeConflicts:
    """What contradicts a rule that ours did not have.

    A type with a `known` conflict of a kind is not read for others of that kind: rows that the
    merge writes would be reported twice.
    """
    schema = merged.schema
    if schema.is_ours:
        return MergeConflicts()
    checks = list_data_checks(plan_steps(merged.sides.ours.accepted, schema.accepted, convert=True))
    found = {(each.kind, each.type_name) for each in known.listed}
    wanted = (
        each
        for each in checks
        if each.owner not in merged.adopted and (_kind_of(each), each.owner.name) not in found
    )
    violations = check_existing_data(wanted, partial(_open_type, merged))
    listed = [conflict for each in violations for conflict in _build_conflicts(each)]
    # A value that entities share counts once, and each of them is listed.
    count = sum(max(each.count, len(each.examples)) for each in violations)
    return MergeConflicts(tuple(listed), count)


def _open_type(merged: MergedChange, key: TypeKey) -> CheckedType:
    type_ = table_types_of(merged.schema.accepted.catalog)[key]
    shape = merged.schema.types[key].shape
    sources, read = _index_sources(merged, key), partial(_read_merged, merged, key, shape)
    ours = merged.schema.types[key].ours
    filled = None
    if ours is not None:
        before = merged.sides.ours.accepted
        now = find_time_ms(merged.sides.ours.snapshot)
        filled = find_filled_columns(before, ours.key, merged.schema.accepted, key, now=now)
    return CheckedType(type_, shape, fill_read(read, filled), sources)


def _index_sources(merged: MergedChange, key: TypeKey) -> dict[str, str]:
    """The columns of ours whose values are to be converted, by those of the merged table."""
    ours = merged.schema.types[key].ours
    columns = {} if ours is None else ours.columns
    return {name: column for name, column in columns.items() if name != column}


def _read_merged(
    merged: MergedChange, key: TypeKey, shape: TableShape, needed: NeededColumns
) -> pa.Table:
    """The entities of a type after the merge."""
    ours = merged.schema.types[key].ours
    assert ours is not None, "a type that is new on ours is written as a whole"
    table = merged.sides.ours.open_table(ours.key)
    rows = read_needed(table, needed, shape.schema, _index_sources(merged, key))
    change = merged.change.get(key)
    return rows if change is None else _apply_change(rows, change, needed)


def _apply_change(rows: pa.Table, change: TypeChange, needed: NeededColumns) -> pa.Table:
    touched = pa.concat_arrays([change.written, change.deleted.cast(change.written.type)])
    kept = rows.filter(pc.invert(pc.is_in(rows[ID_COLUMN], value_set=touched)))
    # What is written was converted: it has no columns of another type.
    names = [name for name in rows.column_names if name in change.rows.column_names]
    masked = [
        mask_values(batch, needed.for_nulls) for batch in change.rows.select(names).to_batches()
    ]
    schema = pa.schema([kept.schema.field(name) for name in names])
    written = pa.Table.from_batches(masked, schema=schema)
    return pa.concat_tables([kept, written], promote_options="default")


def _build_conflicts(violation: DataViolation) -> Iterable[EntityConflict]:
    check = violation.check
    kind = str(check.owner.kind)
    for each in violation.examples:
        message = f"{check.owner.name} {each} contradicts '{check.step}'"
        # A source of edges is an entity of another type.
        id_ = None if isinstance(check.rule, Cardinality) else each.id
        yield EntityConflict(_kind_of(check), kind, check.owner.name, id_, message)


def _kind_of(check: DataCheck) -> str:
    match check.rule:
        case Unique():
            return "unique_violation"
        case Cardinality():
            return "cardinality_violation"
        case _:
            return "value_constraint_violation"
