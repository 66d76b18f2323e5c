"""Whether entities that exist obey the rules that a schema change adds.

Only the columns that the rules name are read. The answer is that of a write of the same entities:
what a rule of writes exempts, such as a null, obeys here too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from types import MappingProxyType
from typing import Final, TypeAlias, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN, TableShape
from omnigraph.rows.value_conversion import convert_values
from omnigraph.schema.accepted_schema import TypeKey
from omnigraph.schema.catalog import (
    SOURCE,
    TARGET,
    Cardinality,
    Check,
    Condition,
    EdgeType,
    NodeType,
    Range,
)
from omnigraph.schema.migration import (
    EXAMPLES_MAX,
    Convertible,
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
from omnigraph.writers.validate.findings import (
    Positions,
    RuleSubject,
    list_shown_values,
    to_positions,
)
from omnigraph.writers.validate.unique_groups import UniqueGroup
from omnigraph.writers.validate.uniqueness_rule import encode_tuples, match_codes
from omnigraph.writers.validate.value_rules import (
    find_failed,
    find_missing_values,
    find_outside_enum,
    find_outside_range,
    find_unmatched,
)

NO_SOURCES: Final[Mapping[str, str]] = MappingProxyType({})
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
    # The columns that hold values of another type, by those that are to hold them converted.
    sources: Mapping[str, str] = field(default_factory=dict)


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


def read_needed(
    table: Table,
    needed: NeededColumns,
    schema: pa.Schema,
    sources: Mapping[str, str] = NO_SOURCES,
) -> pa.Table:
    """The needed columns of a table; those that it lacks hold null in every row.

    `sources` are the columns of the table whose values are to be converted, by those that shall
    hold them; a value that cannot be is null.
    """
    names, known = (*needed.values, *needed.for_nulls), set(table.schema.names)
    wanted = pa.schema([_find_field(name, needed, schema, table.schema) for name in names])
    stored = dict.fromkeys(sources.get(name, name) for name in names)
    scanned = table.scan_batches(columns=[name for name in stored if name in known])
    batches = [
        pa.RecordBatch.from_arrays(
            [_read_column(batch, field, sources, needed) for field in wanted], schema=wanted
        )
        for batch in scanned
    ]
    return pa.Table.from_batches(batches, schema=wanted)


def _find_field(name: str, needed: NeededColumns, schema: pa.Schema, stored: pa.Schema) -> pa.Field:
    if name in needed.for_nulls:
        return pa.field(name, pa.bool_())
    known = schema if name in schema.names else stored
    return pa.field(name, known.field(name).type)


def _read_column(
    batch: pa.RecordBatch, field: pa.Field, sources: Mapping[str, str], needed: NeededColumns
) -> pa.Array:
    source = sources.get(field.name, field.name)
    if source not in batch.schema.names:
        return pa.nulls(len(batch), field.type)
    if field.name in needed.for_nulls:
        return _mask_column(batch[source])
    return convert_values(batch[source], field.type)


def mask_values(batch: pa.RecordBatch, for_nulls: Sequence[str]) -> pa.RecordBatch:
    """A batch without values that no check reads: vectors and blobs would fill the memory."""
    return pa.RecordBatch.from_pydict(
        {
            name: _mask_column(column) if name in for_nulls else column
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        }
    )


def _mask_column(column: pa.Array) -> pa.Array:
    return pc.if_else(column.is_valid(), True, None)


def _check_type(checks: Sequence[DataCheck], checked: CheckedType) -> Iterator[DataViolation]:
    rows = checked.read(_list_needed(checks, checked))
    change = TypeChange(checked.shape, WriteMode.OVERWRITE, rows, NO_IDS)
    subject = RuleSubject(checked.shape.type_key, checked.type_, change)
    for check in checks:
        found = _find_violation(check, subject, checked.sources)
        if found.count:
            yield found


def _list_needed(checks: Iterable[DataCheck], checked: CheckedType) -> NeededColumns:
    columns = {**_ENDS, **checked.shape.columns}
    values: dict[str, None] = {ID_COLUMN: None}
    nulls: dict[str, None] = {}
    for check in checks:
        wanted = nulls if isinstance(check.rule, Required) else values
        members = [columns[name] for name in _members_of(check.rule)]
        wanted.update(dict.fromkeys(members))
        if isinstance(check.rule, Condition) and isinstance(checked.type_, EdgeType):
            wanted.update(dict.fromkeys(_ENDS.values()))
        if isinstance(check.rule, Convertible):
            wanted.update({checked.sources.get(each, each): None for each in members})
    return NeededColumns(tuple(values), tuple(name for name in nulls if name not in values))


def _members_of(rule: DataRule) -> tuple[str, ...]:
    match rule:
        case Required() | OneOf() | Convertible() | Range() | Check():
            return (rule.property,)
        case Unique(members) | Condition(members=members):
            return members
        case Cardinality():
            return (SOURCE,)
        case _:
            assert_never(rule)


def _find_violation(
    check: DataCheck, subject: RuleSubject, sources: Mapping[str, str]
) -> DataViolation:
    match check.rule:
        case Unique(members):
            return _find_shared(check, subject, members)
        case Cardinality():
            return _find_bad_sources(check, subject, check.rule)
        case _:
            rows = _find_bad_rows(check.rule, subject, sources)
            columns = [subject.change.shape.columns[name] for name in _members_of(check.rule)]
            if isinstance(check.rule, Required):
                columns = []
            if isinstance(check.rule, Convertible):
                columns = [sources.get(each, each) for each in columns]
            examples = _list_examples(subject.change.rows.take(pa.array(rows)), columns)
            return DataViolation(check, len(rows), examples)


def _find_bad_rows(
    rule: Required | OneOf | Convertible | Range | Check | Condition,
    subject: RuleSubject,
    sources: Mapping[str, str],
) -> Positions:
    match rule:
        case Convertible(name):
            column = subject.change.shape.columns[name]
            before, after = (subject.change.rows[c] for c in (sources.get(column, column), column))
            return to_positions(pc.and_(before.is_valid(), after.is_null()))
        case Required(name):
            found = find_missing_values(subject, subject.type_.properties[name])
            return found[0].rows if found else np.empty(0, np.int64)
        case OneOf(name, enum):
            return find_outside_enum(subject, subject.type_.properties[name], enum).rows
        case Range():
            return find_outside_range(subject, rule).rows
        case Check():
            return find_unmatched(subject, rule).rows
        case Condition():
            return find_failed(subject, rule).rows
        case _:
            assert_never(rule)


def _list_examples(rows: pa.Table, columns: Sequence[str]) -> tuple[Example, ...]:
    """The first entities by id, with their values."""
    first = rows.take(pc.sort_indices(rows[ID_COLUMN])[:EXAMPLES_MAX])
    ids = first[ID_COLUMN].to_pylist()
    if not columns:
        return tuple(map(Example, ids))
    shown = zip(*(list_shown_values(first[each]) for each in columns), strict=True)
    return tuple(map(Example, ids, map(", ".join, shown)))


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
    return tuple(map(Example, shown[ID_COLUMN].to_pylist(), group.list_shown_texts(shown)))


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
