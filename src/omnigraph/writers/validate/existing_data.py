"""Whether entities that exist obey the rules that a schema change adds.

Only the columns that the rules name are read. The answer is that of a write of the same entities:
what a rule of writes exempts, such as a null, obeys here too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN, TableShape
from omnigraph.schema.accepted_schema import TypeKey
from omnigraph.schema.catalog import (
    SOURCE,
    TARGET,
    Cardinality,
    Check,
    EdgeType,
    NodeType,
    Range,
)
from omnigraph.schema.migration import (
    EXAMPLES_MAX,
    DataCheck,
    DataRule,
    DataViolation,
    Example,
    OneOf,
    Required,
    Unique,
)
from omnigraph.storage.tables.table_reader import Table
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.graph_change import NO_IDS, TypeChange, WriteMode
from omnigraph.writers.validate.findings import Positions, RuleSubject, shorten_value
from omnigraph.writers.validate.unique_groups import UniqueGroup
from omnigraph.writers.validate.uniqueness_rule import encode_tuples, match_codes
from omnigraph.writers.validate.value_rules import (
    find_missing_values,
    find_outside_enum,
    find_outside_range,
    find_unmatched,
)

_ENDS = {SOURCE: SOURCE_COLUMN, TARGET: TARGET_COLUMN}


@dataclass(frozen=True, slots=True)
class NeededColumns:
    """The columns that checks of a type read; of those `for_nulls`, only which values are null."""

    values: tuple[str, ...]
    for_nulls: tuple[str, ...]


@dataclass(frozen=True)
class CheckedType:
    """A type of the schema that is to come into force, and a way to its entities."""

    type_: NodeType | EdgeType
    shape: TableShape
    read: Callable[[NeededColumns], pa.Table]


OpenType: TypeAlias = Callable[[TypeKey], CheckedType]


def check_existing_data(
    checks: Iterable[DataCheck], open_type: OpenType
) -> tuple[DataViolation, ...]:
    """What contradicts the checks, in their order; a type is read once for all of its checks."""
    # The checks of a type come one after another, as the steps of a plan do.
    found = (
        _check_type(list(group), open_type(owner))
        for owner, group in groupby(checks, key=lambda check: check.owner)
    )
    return tuple(violation for each in found for violation in each)


def read_needed(table: Table, needed: NeededColumns, schema: pa.Schema) -> pa.Table:
    """The needed columns of a table; those that it lacks hold null in every row."""
    known = set(table.schema.names)
    names = [*needed.values, *needed.for_nulls]
    stored = [name for name in names if name in known]
    fields = [
        pa.field(name, pa.bool_() if name in needed.for_nulls else schema.field(name).type)
        for name in names
    ]
    batches = (mask_values(batch, needed.for_nulls) for batch in table.scan_batches(columns=stored))
    rows = [
        [
            batch[each.name] if each.name in known else pa.nulls(len(batch), each.type)
            for each in fields
        ]
        for batch in batches
    ]
    wanted = pa.schema(fields)
    return pa.Table.from_batches(
        [pa.RecordBatch.from_arrays(columns, schema=wanted) for columns in rows], schema=wanted
    )


def mask_values(batch: pa.RecordBatch, for_nulls: Sequence[str]) -> pa.RecordBatch:
    """A batch without values that no check reads: vectors and blobs would fill the memory."""
    return pa.RecordBatch.from_pydict(
        {
            name: pc.if_else(column.is_valid(), True, None) if name in for_nulls else column
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        }
    )


def _check_type(checks: Sequence[DataCheck], checked: CheckedType) -> Iterator[DataViolation]:
    rows = checked.read(_list_needed(checks, checked.shape))
    change = TypeChange(checked.shape, WriteMode.OVERWRITE, rows, NO_IDS)
    subject = RuleSubject(checked.shape.type_key, checked.type_, change)
    for check in checks:
        found = _find_violation(check, subject)
        if found.count:
            yield found


def _list_needed(checks: Iterable[DataCheck], shape: TableShape) -> NeededColumns:
    columns = {**_ENDS, **shape.columns}
    values: dict[str, None] = {ID_COLUMN: None}
    nulls: dict[str, None] = {}
    for check in checks:
        wanted = nulls if isinstance(check.rule, Required) else values
        wanted.update({columns[name]: None for name in _members_of(check.rule)})
    return NeededColumns(tuple(values), tuple(name for name in nulls if name not in values))


def _members_of(rule: DataRule) -> tuple[str, ...]:
    match rule:
        case Required() | OneOf() | Range() | Check():
            return (rule.property,)
        case Unique(members):
            return members
        case Cardinality():
            return (SOURCE,)
        case _:
            assert_never(rule)


def _find_violation(check: DataCheck, subject: RuleSubject) -> DataViolation:
    match check.rule:
        case Unique(members):
            return _find_shared(check, subject, members)
        case Cardinality():
            return _find_bad_sources(check, subject, check.rule)
        case _:
            rows = _find_bad_rows(check.rule, subject)
            column = None
            if not isinstance(check.rule, Required):
                column = subject.change.shape.columns[check.rule.property]
            examples = _list_examples(subject.change.rows.take(pa.array(rows)), column)
            return DataViolation(check, len(rows), examples)


def _find_bad_rows(rule: Required | OneOf | Range | Check, subject: RuleSubject) -> Positions:
    match rule:
        case Required(name):
            found = find_missing_values(subject, subject.type_.properties[name])
            return found[0].rows if found else np.empty(0, np.int64)
        case OneOf(name, enum):
            return find_outside_enum(subject, subject.type_.properties[name], enum).rows
        case Range():
            return find_outside_range(subject, rule).rows
        case Check():
            return find_unmatched(subject, rule).rows
        case _:
            assert_never(rule)


def _list_examples(rows: pa.Table, column: str | None) -> tuple[Example, ...]:
    """The first entities by id, with their values."""
    first = rows.take(pc.sort_indices(rows[ID_COLUMN])[:EXAMPLES_MAX])
    ids = first[ID_COLUMN].to_pylist()
    if column is None:
        return tuple(map(Example, ids))
    values = map(shorten_value, first[column].to_pylist())
    return tuple(map(Example, ids, values))


def _find_shared(check: DataCheck, subject: RuleSubject, members: tuple[str, ...]) -> DataViolation:
    columns = {**_ENDS, **subject.change.shape.columns}
    group = UniqueGroup(members, tuple(columns[name] for name in members), has_key=False)
    rows = subject.change.rows
    codes, kinds = encode_tuples([rows], group.columns)
    is_shared = np.bincount(codes[codes >= 0], minlength=kinds) > 1
    holders = rows.take(pa.array(np.flatnonzero(match_codes(codes, is_shared))))
    return DataViolation(check, int(is_shared.sum()), _list_sharing(group, holders))


def _list_sharing(group: UniqueGroup, holders: pa.Table) -> tuple[Example, ...]:
    """The entities that share values: those of one value together, values by their first id."""
    holders = holders.take(pc.sort_indices(holders[ID_COLUMN]))
    codes, _ = encode_tuples([holders], group.columns)
    _, firsts, tuples = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(firsts[tuples], kind="stable")[:EXAMPLES_MAX]
    shown = holders.take(pa.array(order))
    texts = zip(*(each.to_pylist() for each in group.format_texts(shown)), strict=True)
    values = (", ".join(map(shorten_value, each)) for each in texts)
    return tuple(map(Example, shown[ID_COLUMN].to_pylist(), values))


def _find_bad_sources(check: DataCheck, subject: RuleSubject, bounds: Cardinality) -> DataViolation:
    """Sources with too few or too many edges; one without edges is for the writer of the last."""
    counted = subject.change.rows[SOURCE_COLUMN].value_counts()
    counts = counted.field("counts").to_numpy()
    is_bad = counts < bounds.minimum
    if bounds.maximum is not None:
        is_bad |= counts > bounds.maximum
    bad = pa.table({ID_COLUMN: counted.field("values"), "counts": counts}).filter(pa.array(is_bad))
    first = bad.take(pc.sort_indices(bad[ID_COLUMN])[:EXAMPLES_MAX])
    edges = (f"{count} edge{'' if count == 1 else 's'}" for count in first["counts"].to_pylist())
    examples = tuple(map(Example, first[ID_COLUMN].to_pylist(), edges))
    return DataViolation(check, bad.num_rows, examples)
