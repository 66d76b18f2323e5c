"""Rules as Arrow computations over the records that tasks read: no row passes through Java.

In: the steps of a rule and the types of the columns of its source. Out: a rule that maps blocks of
records, or nothing for a rule that needs Spark. Guarantee: the rows, the refused records and their
reasons are those of the frames of `mapping_frames`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.bulk.mapped_records import RecordBlock, RowMapper
from omnigraph.errors import UncompiledValueError
from omnigraph.pipelines.config.text_encodings import REPLACEMENT
from omnigraph.pipelines.mapping.arrow_casts import is_castable
from omnigraph.pipelines.mapping.arrow_expressions import (
    CompiledExpression,
    compile_expression,
    evaluate,
)
from omnigraph.pipelines.mapping.mapping_sql import MappingSteps
from omnigraph.pipelines.mapping.row_guards import RECORD_CHARS_MAX, RowGuard
from omnigraph.writers.inputs.input_tables import (
    ORIGIN,
    REFUSED,
    REFUSED_MESSAGE,
    REFUSED_PROPERTY,
    REFUSED_RECORD,
)

_REFUSED_TYPE: Final = pa.struct(
    [(name, pa.string()) for name in (REFUSED_PROPERTY, REFUSED_MESSAGE, REFUSED_RECORD)]
)
_ORIGIN_TYPE: Final = pa.struct([(name, pa.int64()) for name in ("source", "part", "row")])
# What JSON writes in another way; a backslash first.
_JSON_ESCAPES: Final = (
    ("\\", "\\\\"),
    ('"', '\\"'),
    ("\n", "\\n"),
    ("\r", "\\r"),
    ("\t", "\\t"),
    ("\b", "\\b"),
    ("\f", "\\f"),
)
_CONTROLS: Final = "[\x00-\x07\x0b\x0e-\x1f]"


@dataclass(frozen=True, slots=True)
class _RuleColumn:
    """A column of the rows, and what is said of a record that has no value for it."""

    name: str
    value: CompiledExpression
    reason: str


@dataclass(frozen=True)
class ArrowRule(RowMapper):
    """A compiled rule; `source` is the number of its source among those of the target."""

    columns: tuple[_RuleColumn, ...]
    guard: RowGuard
    source: int
    is_edge: bool
    where: CompiledExpression | None = None
    where_reason: str = ""
    # The first rule of a source reports the records that cannot be read; others leave them out.
    reports_unreadable: bool = False

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the rows."""
        own = [(each.name, each.value.type) for each in self.columns]
        return pa.schema([*own, (REFUSED, _REFUSED_TYPE)])

    @property
    def wanted(self) -> frozenset[str]:
        """The columns of the records that it reads."""
        values = [each.value for each in self.columns]
        values += [] if self.where is None else [self.where]
        return frozenset[str]().union(*(value.columns for value in values))

    def map_block(self, block: RecordBlock, *, has_origins: bool = False) -> pa.RecordBatch:
        """The rows of some records."""
        reasons = _Reasons(block, self.guard)
        if block.unreadable is not None:
            reasons.add_unreadable(block.unreadable)
        is_taken = self._select_records(block, reasons)
        values = []
        for each in self.columns:
            found = evaluate(each.value.tree, block.rows)
            values.append(found.values)
            if found.failed is not None:
                reasons.add(found.failed, each.reason, each.name)
                values[-1] = pc.if_else(found.failed, None, found.values)
        rows = pa.record_batch([*values, reasons.build_column(is_taken)], schema=self.schema)
        if has_origins:
            rows = rows.append_column(ORIGIN, self._build_origins(block))
        return rows if is_taken is None else rows.filter(is_taken)

    def _select_records(self, block: RecordBlock, reasons: _Reasons) -> pa.Array | None:
        """Which records the rule takes; None for all. One that is refused is taken."""
        is_taken = None
        if self.where is not None:
            found = evaluate(self.where.tree, block.rows)
            is_taken = pc.fill_null(found.values, False)
            if found.failed is not None:
                reasons.add(found.failed, self.where_reason, None)
            if (refused := reasons.find_refused()) is not None:
                is_taken = pc.or_(is_taken, refused)
        if block.unreadable is not None and not self.reports_unreadable:
            is_readable = block.unreadable.is_null()
            is_taken = is_readable if is_taken is None else pc.and_(is_taken, is_readable)
        return is_taken

    def _build_origins(self, block: RecordBlock) -> pa.Array:
        count = block.rows.num_rows
        fixed = [
            pa.repeat(pa.scalar(each, pa.int64()), count) for each in (self.source, block.part)
        ]
        return pa.StructArray.from_arrays([*fixed, block.numbers], fields=list(_ORIGIN_TYPE))


class _Reasons:
    """Why records of a block are refused: of several reasons the first."""

    def __init__(self, block: RecordBlock, guard: RowGuard) -> None:
        self._block = block
        self._guard = guard
        # Of each reason the mask of its records, its message, and its property.
        self._found: list[tuple[pa.Array, pa.Array, str | None]] = []
        self._records: pa.Array | None = None

    def add(self, mask: pa.Array, message: str, property_: str | None) -> None:
        """A reason for the records of a mask."""
        mask = pc.fill_null(mask, False)
        if pc.any(mask).as_py():
            messages = pa.repeat(pa.scalar(message), len(mask))
            self._found.append((mask, messages, property_))

    def add_unreadable(self, texts: pa.Array) -> None:
        """Records that could not be read are refused with their texts."""
        is_bytes = pc.match_substring(texts, REPLACEMENT)
        about, bytes_ = self._guard.unreadable_messages
        self._found.append((texts.is_valid(), pc.if_else(is_bytes, bytes_, about), None))
        self._records = pc.utf8_slice_codeunits(texts, 0, RECORD_CHARS_MAX)

    def find_refused(self) -> pa.Array | None:
        """Which records are refused so far."""
        found = None
        for mask, _, _ in self._found:
            found = mask if found is None else pc.or_(found, mask)
        return found

    def build_column(self, is_taken: pa.Array | None) -> pa.Array:
        """The column that says so in the rows."""
        count = self._block.rows.num_rows
        refused = self.find_refused()
        if refused is not None and is_taken is not None:
            refused = pc.and_(refused, is_taken)
        if refused is None or not pc.any(refused).as_py():
            return pa.nulls(count, _REFUSED_TYPE)
        names, messages = pa.nulls(count, pa.string()), pa.nulls(count, pa.string())
        for mask, message, name in reversed(self._found):
            messages = pc.if_else(mask, message, messages)
            names = pc.if_else(mask, pa.scalar(name, pa.string()), names)
        fields = [names, messages, self._format_records(refused)]
        return pa.StructArray.from_arrays(
            fields, fields=list(_REFUSED_TYPE), mask=pc.invert(refused)
        )

    def _format_records(self, refused: pa.Array) -> pa.Array:
        """The texts of the refused records, null for the others."""
        texts, known = pa.nulls(self._block.rows.num_rows, pa.string()), self._records
        lacking = refused if known is None else pc.and_(refused, known.is_null())
        if pc.any(lacking).as_py():
            rows = self._block.read_all().filter(lacking)
            own = pc.utf8_slice_codeunits(format_records(rows), 0, RECORD_CHARS_MAX)
            texts = pc.replace_with_mask(texts, lacking, own)
        return texts if known is None else pc.coalesce(known, texts)


def format_records(rows: pa.RecordBatch) -> pa.Array:
    """Records as JSON, as Spark writes it: without what is null."""
    members = []
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        if not is_castable(column.type, pa.string()) or pa.types.is_floating(column.type):
            raise UncompiledValueError(f"a record with a {column.type}")
        text = _quote_json(column) if pa.types.is_string(column.type) else column.cast(pa.string())
        key = _quote_json(pa.array([name]))[0].as_py()
        members.append(pc.binary_join_element_wise(f"{key}:", text, ""))
    joined = pc.binary_join_element_wise(*members, ",", null_handling="skip")
    return pc.binary_join_element_wise("{", joined, "}", "")


def _quote_json(texts: pa.Array) -> pa.Array:
    if pc.any(pc.match_substring_regex(texts, _CONTROLS)).as_py():
        raise UncompiledValueError("a record with control characters")
    for sign, escaped in _JSON_ESCAPES:
        texts = pc.replace_substring(texts, sign, escaped)
    return pc.binary_join_element_wise('"', texts, '"', "")


def compile_rule(
    steps: MappingSteps,
    columns: Mapping[str, pa.DataType],
    guard: RowGuard,
    *,
    source: int,
    reports_unreadable: bool,
) -> ArrowRule | None:
    """A rule over records with columns of these types; None for one that needs Spark."""
    needs_spark = steps.expansions or steps.is_distinct or steps.latest or steps.embedded
    if needs_spark or steps.expectations or steps.operations is not None:
        return None
    found = list(_iter_columns(steps, columns, guard))
    where = None
    if steps.where is not None:
        where = compile_expression(steps.where, columns, is_condition=True)
        if where is None:
            return None
    if any(each is None for each in found):
        return None
    reason = guard.format_rejection(None, steps.where or "", steps.where_position)
    compiled = tuple(each for each in found if each is not None)
    return ArrowRule(compiled, guard, source, steps.is_edge, where, reason, reports_unreadable)


def _iter_columns(
    steps: MappingSteps, columns: Mapping[str, pa.DataType], guard: RowGuard
) -> Iterator[_RuleColumn | None]:
    for each in steps.columns:
        value = compile_expression(each.sql, columns)
        if value is None:
            yield None
            return
        reason = guard.format_rejection(each.name, each.sql, each.position)
        yield _RuleColumn(each.name, value, reason)
