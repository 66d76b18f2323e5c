"""Uniqueness: no two entities share the members of a group.

A group is checked inside each batch, where two records of one entity count as two; across the rows
of the whole write; and against committed entities that the write leaves alone. A tuple that breaks
the rule is one violation, however many entities share it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import Violation
from omnigraph.rows.comparison import with_both_zeros
from omnigraph.rows.hashing import are_distinct
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.validate.findings import (
    Finding,
    Findings,
    Positions,
    RuleSubject,
)
from omnigraph.writers.validate.image_after import ImageAfter
from omnigraph.writers.validate.unique_groups import UniqueGroup, encode_marks, groups_of

Codes: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]

# A row that the group exempts.
_EXEMPT: Final = -1


def check_unique(subject: RuleSubject, image: ImageAfter, findings: Findings) -> None:
    """Every group of a type, each inside the write and then against committed entities."""
    if not subject.type_.constraints.uniques and not subject.change.batches:
        # Rows have one id each, hence one key.
        return
    for group in groups_of(subject.change.shape, subject.type_):
        is_reported = _check_inside(subject, group, findings)
        if not group.has_key and image.keeps_committed(subject.type_key):
            rows = find_conflicting_rows(subject, group, image)
            _add_finding(
                subject, group, findings, scope=subject.change.rows, rows=rows[~is_reported[rows]]
            )


def _check_inside(subject: RuleSubject, group: UniqueGroup, findings: Findings) -> Mask:
    """Report the tuples shared in one batch or among all rows; which rows hold one, as a mask."""
    change = subject.change
    batches = [each for each in change.batches if each is not change.rows and each.num_rows > 1]
    # Rows have one id each, hence one key.
    scopes = batches if group.has_key else [*batches, change.rows]
    if all(_is_surely_unique(scope, group.columns) for scope in scopes) and len(scopes) < 2:
        return np.zeros(change.rows.num_rows, np.bool_)
    codes, kinds = encode_tuples(scopes, group.columns)
    is_reported = np.zeros(kinds, np.bool_)
    start = 0
    for scope in scopes:
        own = codes[start : start + scope.num_rows]
        start += scope.num_rows
        is_shared = np.bincount(own[own != _EXEMPT], minlength=kinds) > 1
        is_shared &= ~is_reported
        is_reported |= is_shared
        _add_finding(subject, group, findings, scope=scope, rows=select_late_rows(own, is_shared))
    if group.has_key:
        return np.zeros(change.rows.num_rows, np.bool_)
    return match_codes(codes[start - change.rows.num_rows :], is_reported)


def _is_surely_unique(scope: pa.Table, columns: Sequence[str]) -> bool:
    """Whether a quick look is enough: one column of texts that all differ."""
    values = scope[columns[0]]
    return len(columns) == 1 and pa.types.is_string(values.type) and are_distinct(values)


def select_late_rows(codes: Codes, is_shared: Mask) -> Positions:
    """The last row of each shared tuple, which came too late, in the order of the first rows."""
    rows = np.flatnonzero(match_codes(codes, is_shared))
    shared = codes[rows]
    _, firsts = np.unique(shared, return_index=True)
    _, lasts = np.unique(shared[::-1], return_index=True)
    return rows[::-1][lasts][np.argsort(firsts)]


def match_codes(codes: Codes, is_wanted: Mask) -> Mask:
    """Which rows hold one of the wanted tuples."""
    if not is_wanted.any():
        return np.zeros(len(codes), np.bool_)
    holds: Mask = (codes != _EXEMPT) & is_wanted[codes]
    return holds


def find_conflicting_rows(subject: RuleSubject, group: UniqueGroup, image: ImageAfter) -> Positions:
    """The rows whose tuple a committed entity has and keeps."""
    rows = subject.change.rows
    bound = group.select_bound_columns(rows)
    if bound.num_rows == 0:
        return np.empty(0, np.int64)
    image.reads.add_lookups(
        subject.type_key,
        bound.num_rows,
        lambda: encode_marks(group.mark_kind, group.format_mark_texts(bound)),
    )
    columns = _sort_by_selectivity(bound, group.columns)
    # Look-ups distinguish the zeros of floats, uniqueness does not.
    wanted = with_both_zeros(bound[columns[0]].combine_chunks())
    found = image.committed.find_value_rows(subject.type_key, columns, wanted)
    holders = image.filter_surviving(subject.type_key, found)
    if holders.num_rows == 0:
        return np.empty(0, np.int64)
    codes, kinds = encode_tuples([rows, holders], group.columns)
    theirs = codes[rows.num_rows :]
    is_held = np.bincount(theirs[theirs != _EXEMPT], minlength=kinds) > 0
    return np.flatnonzero(match_codes(codes[: rows.num_rows], is_held))


def _add_finding(
    subject: RuleSubject,
    group: UniqueGroup,
    findings: Findings,
    *,
    scope: pa.Table,
    rows: Positions,
) -> None:
    findings.add(Finding(rows, lambda row: build_tuple_violation(subject, group, scope, row)))


def encode_tuples(tables: Sequence[pa.Table], columns: Sequence[str]) -> tuple[Codes, int]:
    """A number per row of all tables, equal for equal tuples, and how many numbers there are."""
    codes, kinds = np.zeros(sum(each.num_rows for each in tables), np.int64), 1
    if not len(codes):
        return codes, 0
    for column in columns:
        values = pa.chunked_array([chunk for each in tables for chunk in each[column].chunks])
        member, member_kinds = _encode_values(values)
        is_exempt = (codes == _EXEMPT) | (member == _EXEMPT)
        codes, kinds = codes * member_kinds + member, kinds * member_kinds
        codes[is_exempt] = _EXEMPT
        # Keeps products far below 64 bits, and the tables indexed by code no larger than the input.
        if kinds > len(codes):
            known, inverse = np.unique(codes, return_inverse=True)
            has_exempt = int(known[0] == _EXEMPT)
            codes, kinds = inverse - has_exempt, len(known) - has_exempt
    return codes, kinds


def _encode_values(values: pa.ChunkedArray) -> tuple[Codes, int]:
    if pa.types.is_floating(values.type):
        # Both zeros are one value, and what is not finite is reported elsewhere.
        values = pc.add(values, pa.scalar(0.0, values.type))
        values = pc.if_else(pc.is_finite(values), values, pa.scalar(None, values.type))
    encoded = values.dictionary_encode()
    indices = [
        chunk.indices.fill_null(_EXEMPT).to_numpy(zero_copy_only=False) for chunk in encoded.chunks
    ]
    return np.concatenate(indices).astype(np.int64), len(encoded.chunk(0).dictionary)


def _sort_by_selectivity(bound: pa.Table, columns: Sequence[str]) -> list[str]:
    """The columns with the most varied first: fewest committed rows share one of its values."""
    if len(columns) == 1:
        return list(columns)
    return sorted(columns, key=lambda column: -pc.count_distinct(bound[column]).as_py())


def build_tuple_violation(
    subject: RuleSubject, group: UniqueGroup, scope: pa.Table, row: int
) -> Violation:
    """What is said of a row of a scope whose tuple another entity has."""
    [value] = group.list_shown_texts(scope.slice(row, 1))
    message = f"@unique violation on {subject.type_.name}.{group.spelling}: {value}"
    # A batch may hold rows that the write replaced later; an entity is found by its id.
    own = row
    if scope is not subject.change.rows:
        own = pc.index(subject.change.rows[ID_COLUMN], scope[ID_COLUMN][row]).as_py()
    place = None if own < 0 else own
    return subject.build_violation(
        "unique", message, row=place, property=group.spelling, value=value
    )
