"""Records as rows of types: one Spark frame for each type of a target, checked before it is read.

What a mapping says is resolved against the columns of the source, and what it gives against the
schema of the target, by the rules of the load. No row is read for that.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions

from omnigraph.config.yaml_reader import Findings, Position
from omnigraph.embedding.configured_embedder import ConfiguredEmbedder
from omnigraph.embedding.embedder import Task
from omnigraph.pipelines.config.definition import RecordMapping
from omnigraph.pipelines.config.expectations import RowCondition
from omnigraph.pipelines.mapping.mapping_checks import check_mapping, fits_property
from omnigraph.pipelines.mapping.mapping_sql import (
    WORDS_COLUMN,
    ExpansionStep,
    MappedColumn,
    MappingSteps,
    build_steps,
    build_values_condition,
    expand_stars,
    is_column_name,
    quote_name,
)
from omnigraph.pipelines.mapping.record_ids import PART, PREFIX, ROW, is_record_id_column
from omnigraph.pipelines.mapping.row_guards import (
    CORRUPT,
    RowGuard,
    build_failure_condition,
    build_record_sql,
)
from omnigraph.pipelines.mapping.rule_observer import RuleObserver, build_broken_condition
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.schema.property_types import PropertyType, Scalar, ScalarType, VectorType
from omnigraph.spark.sql_analysis import (
    UnresolvedError,
    filter_rows,
    get_arrow_types,
    get_spark_types,
    select_items,
)
from omnigraph.writers.inputs.input_tables import DELETED, ORIGIN, REFUSED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Columns that say why a record is refused, in the order in which that was found.
_REASON: Final = "__reason"
_LOWEST: Final = f"{PREFIX}lowest"
_LATEST: Final = f"{PREFIX}latest"
_RANK: Final = f"{PREFIX}rank"
_INTERNAL_COLUMNS: Final = re.compile(rf",? ?`(?:{_REASON}\d+|{PREFIX}\w+|{CORRUPT})`")
_CASTS: Final = {
    Scalar.STRING: "string",
    Scalar.BOOL: "boolean",
    Scalar.I32: "int",
    Scalar.I64: "bigint",
    Scalar.U32: "bigint",
    Scalar.U64: "decimal(20, 0)",
    Scalar.F32: "float",
    Scalar.F64: "double",
    Scalar.DATE: "date",
    Scalar.DATETIME: "timestamp",
}


def build_frames(
    mapped: RecordMapping,
    catalog: Catalog,
    sources: Mapping[str, DataFrame],
    *,
    mode: str,
    observer: RuleObserver | None = None,
    reported: Set[str] = frozenset(),
) -> list[tuple[str, DataFrame]]:
    """The rows of each type, with `node:Name` or `edge:Name`; raises all that cannot work.

    A row that a record has no values for says so in a column, for the load to refuse it. The
    observer counts the rows when they are read. The unreadable records of sources that are
    `reported` are left out.
    """
    findings = check_mapping(mapped, catalog, mode=mode)
    findings.raise_if_any()
    frames = resolve_frames(
        mapped, catalog, sources, findings, observer=observer, reported=reported
    )
    findings.raise_if_any()
    return frames


def resolve_frames(
    mapped: RecordMapping,
    catalog: Catalog,
    sources: Mapping[str, DataFrame],
    findings: Findings,
    *,
    observer: RuleObserver | None = None,
    reported: Set[str] = frozenset(),
) -> list[tuple[str, DataFrame]]:
    """The rows of each type of a checked mapping; what cannot work goes to the findings.

    Rules of one type that set different properties are frames of their own: a column that a frame
    does not have is not a column of nulls.
    """
    frames: dict[tuple[str, frozenset[str]], DataFrame] = {}
    reported = set(reported)
    numbers = {name: number for number, name in enumerate(sources)}
    for rule in mapped.rules:
        steps = build_steps(rule, catalog)
        source = steps.source or next(iter(sources))
        records = _complete_corrupt_column(sources[source])
        records = _drop_corrupt_records(records) if source in reported else records
        reported.add(source)
        guard = RowGuard.from_columns(steps.type_name, source, mapped.file, records.columns)
        before = len(findings.problems)
        steps = _expand_all_stars(steps, records.columns, findings)
        if len(findings.problems) > before:
            continue
        frame = _RuleLowering(steps, catalog, findings, guard, numbers[source]).build_rows(records)
        if frame is None:
            continue
        if observer is not None:
            frame = observer.observe_rows(frame, steps, guard)
        name = f"{'edge' if steps.is_edge else 'node'}:{steps.type_name}"
        key = name, frozenset(column.name for column in steps.columns)
        known = frames.get(key)
        frames[key] = frame if known is None else known.unionByName(frame, allowMissingColumns=True)
    return [(name, frame) for (name, _), frame in frames.items()]


def _complete_corrupt_column(records: DataFrame) -> DataFrame:
    """Records that are unreadable whichever of their columns a rule asks for.

    Spark reads the columns that are asked for, and takes a record for readable if those are. So
    whether it is depends on all of them here; the condition itself holds for every such record.
    """
    if CORRUPT not in records.columns:
        return records
    corrupt, values = quote_name(CORRUPT), build_record_sql(records.columns)
    return records.withColumn(
        CORRUPT,
        functions.expr(
            f"CASE WHEN {corrupt} IS NOT NULL AND (length({values}) > 0 OR length({corrupt}) >= 0)"
            # The text of a record that is not text: whatever is computed with it must be.
            f" THEN make_valid_utf8({corrupt}) END"
        ),
    )


def _drop_corrupt_records(records: DataFrame) -> DataFrame:
    """The records that could be read: the first rule of a source reports the others."""
    if CORRUPT not in records.columns:
        return records
    return records.where(f"{quote_name(CORRUPT)} IS NULL").drop(CORRUPT)


@dataclass(frozen=True, slots=True)
class _RuleLowering:
    """The rows of one rule; what is wrong goes to the findings, and then there are none."""

    steps: MappingSteps
    catalog: Catalog
    findings: Findings
    guard: RowGuard
    source: int

    def build_rows(self, records: DataFrame) -> DataFrame | None:
        expanded = self._expand_records(records)
        if expanded is None:
            return None
        before = len(self.findings.problems)
        for column in self.steps.columns:
            self._check_column(column, expanded)
        self._check_latest(expanded)
        self._check_operations(expanded)
        rows = None
        if len(self.findings.problems) == before:
            rows = expanded.selectExpr(*self._build_items(expanded))
            self._check_conditions(rows)
        if rows is None or len(self.findings.problems) > before:
            return None
        has_origin = PART in records.columns
        if self.steps.latest:
            rows = _select_latest(rows, self.steps.identity, has_origin=has_origin)
        if self.steps.is_distinct:
            rows = _deduplicate_rows(rows) if has_origin else rows.distinct()
        if has_origin:
            rows = _with_provenance(rows, self.source)
        return _embed_rows(rows, self.steps.embedded) if self.steps.embedded else rows

    def _build_items(self, records: DataFrame) -> Iterator[str]:
        """The columns, null where they have no result, and why a row is refused."""
        reasons = _list_reason_columns(records)
        deleted = self._build_deletion(reasons)
        for column, written in zip(self._list_columns(deleted), self.steps.columns, strict=True):
            if not column.can_fail:
                yield column.item
                continue
            failed = build_failure_condition(column.sql)
            reasons.append(
                self.guard.build_rejection(failed, column.name, written.sql, column.position)
            )
            yield f"CASE WHEN {failed} THEN NULL ELSE {column.sql} END AS {quote_name(column.name)}"
        if reasons:
            yield f"{_coalesce_reasons(reasons)} AS {quote_name(REFUSED)}"
        if deleted is not None:
            # A record that names no entity is refused like any other without a key.
            named = [f"{each.sql} IS NOT NULL" for each in self._list_identity()]
            is_sound = f"{_coalesce_reasons(reasons)} IS NULL"
            conditions = " AND ".join([deleted, *named])
            yield f"CASE WHEN {is_sound} THEN {conditions} ELSE false END AS {quote_name(DELETED)}"
        if self.steps.latest:
            yield f"struct({', '.join(self.steps.latest)}) AS {_LATEST}"
        yield from (name for name in (PART, ROW) if name in records.columns)

    def _build_deletion(self, reasons: list[str]) -> str | None:
        """A condition: whether a record deletes; one that says nothing known has a reason more."""
        operations = self.steps.operations
        if operations is None:
            return None
        sql = operations.sql
        unknown = f"NOT {build_values_condition(sql, operations.values)}"
        if not is_column_name(sql):
            failed = build_failure_condition(f"({sql})")
            unknown = f"CASE WHEN {failed} THEN true ELSE {unknown} END"
        known, place = ", ".join(operations.values), operations.position
        reasons.append(self.guard.build_unknown(unknown, sql, known, place))
        return build_values_condition(sql, operations.deletes)

    def _list_columns(self, deleted: str | None) -> list[MappedColumn]:
        """The columns of rows; of a record that deletes, only those that say what."""
        if deleted is None:
            return list(self.steps.columns)
        return [
            each
            if each.name in self.steps.identity
            else replace(each, sql=f"CASE WHEN {deleted} THEN NULL ELSE {each.sql} END")
            for each in self.steps.columns
        ]

    def _list_identity(self) -> list[MappedColumn]:
        return [each for each in self.steps.columns if each.name in self.steps.identity]

    def _expand_records(self, records: DataFrame) -> DataFrame | None:
        taken = set(records.columns)
        place = self.steps.position
        try:
            if CORRUPT in taken:
                records = _with_reason(records, self.guard.unreadable)
            for step in self.steps.expansions:
                place = step.position
                records = self._apply_expansion(step, records)
            if self.steps.where is not None:
                place = self.steps.where_position
                records = self._filter_records(self.steps.where, records)
        except UnresolvedError as failure:
            self.findings.add_problem(
                place, f"{self.steps.type_name}: {_format_unresolved(failure)}"
            )
            return None
        new = [
            name for name in records.columns if name in taken and records.columns.count(name) > 1
        ]
        if new:
            message = f"{self.steps.type_name}: a record has '{new[0]}' already"
            self.findings.add_problem(
                self.steps.position, message, hint="give the elements another name"
            )
            return None
        return records

    def _apply_expansion(self, step: ExpansionStep, records: DataFrame) -> DataFrame:
        plain = select_items(records, step.items)
        if step.can_fail:
            failed = build_failure_condition(f"size({step.sql})")
            reason = self.guard.build_rejection(failed, None, step.sql, step.position)
            records = _with_reason(records, reason)
        reasons = _list_reason_columns(records)
        if not reasons:
            return plain
        # A refused record stays one row, so that it is reported.
        other = "array(NULL)" if step.is_explode else "NULL"
        sql = f"CASE WHEN {_coalesce_reasons(reasons)} IS NOT NULL THEN {other} ELSE {step.sql} END"
        return select_items(records, step.items_of(sql))

    def _filter_records(self, where: str, records: DataFrame) -> DataFrame:
        plain = filter_rows(records, where)
        if not is_column_name(where):
            reason = self.guard.build_rejection(
                build_failure_condition(f"({where})"), None, where, self.steps.where_position
            )
            records = _with_reason(records, reason)
        reasons = _list_reason_columns(records)
        if not reasons:
            return plain
        refused = f"{_coalesce_reasons(reasons)} IS NOT NULL"
        return filter_rows(records, f"CASE WHEN {refused} THEN true ELSE ({where}) END")

    def _check_column(self, column: MappedColumn, records: DataFrame) -> None:
        about = f"{self.steps.type_name}.{column.name}"
        try:
            found = get_arrow_types(select_items(records, [column.item]))[column.name]
        except UnresolvedError as failure:
            self.findings.add_problem(column.position, f"{about}: {_format_unresolved(failure)}")
            return
        except TypeError as failure:
            self.findings.add_problem(column.position, f"{about}: {failure}")
            return
        type_ = self._find_property_type(column.name)
        if type_ is None:
            return
        if column.name in self.steps.embedded:
            if not pa.types.is_string(found):
                message = f"{about}: a text is embedded, the expression gives {found}"
                self.findings.add_problem(column.position, message)
        elif not fits_property(found, type_):
            message = f"{about}: expects {type_}, the expression gives {found}"
            self.findings.add_problem(column.position, message, hint=_suggest_cast(type_))

    def _check_latest(self, records: DataFrame) -> None:
        if not self.steps.latest:
            return
        position = self.steps.latest_position
        for sql in self.steps.latest:
            try:
                if not is_column_name(sql):
                    message = f"{self.steps.type_name}: latest: '{sql}' is not a column"
                    self.findings.add_problem(position, message)
                select_items(records, [sql])
            except UnresolvedError as failure:
                message = f"{self.steps.type_name}: latest: {_format_unresolved(failure)}"
                self.findings.add_problem(position, message)

    def _check_operations(self, records: DataFrame) -> None:
        operations = self.steps.operations
        if operations is not None:
            try:
                select_items(records, [f"cast(({operations.sql}) AS string) AS op"])
            except UnresolvedError as failure:
                message = f"{self.steps.type_name}: op: {_format_unresolved(failure)}"
                self.findings.add_problem(operations.position, message)

    def _check_conditions(self, rows: DataFrame) -> None:
        for each in self.steps.expectations:
            if not isinstance(each.check, RowCondition):
                continue
            try:
                select_items(rows, [f"{build_broken_condition(each.check.sql)} AS broken"])
            except UnresolvedError as failure:
                message = f"{self.steps.type_name}: expect: {_format_unresolved(failure)}"
                self.findings.add_problem(each.position, message)

    def _find_property_type(self, name: str) -> PropertyType | None:
        """The type of a property; None for ids and ends, which are texts already."""
        type_: NodeType | EdgeType = (
            self.catalog.edges[self.steps.type_name]
            if self.steps.is_edge
            else self.catalog.nodes[self.steps.type_name]
        )
        property_ = type_.properties.get(name)
        return None if property_ is None else property_.type


def _expand_all_stars(
    steps: MappingSteps, columns: Sequence[str], findings: Findings
) -> MappingSteps:
    """The steps with the names of all columns of a record in place of stars."""
    names = [
        quote_name(name) for name in columns if name != CORRUPT and not is_record_id_column(name)
    ]

    def expand_sql(sql: str, about: str, place: Position) -> str:
        found = expand_stars(sql, names)
        if found is None:
            message = f"{about}: a star stands for all columns only as an argument of its own"
            findings.add_problem(
                place, message, hint="write struct(*), or the names of the columns"
            )
        return found or sql

    type_name = steps.type_name
    expansions = []
    for step in steps.expansions:
        expansions.append(replace(step, sql=expand_sql(step.sql, type_name, step.position)))
        if step.name != WORDS_COLUMN:
            names.append(quote_name(step.name))
    where = steps.where and expand_sql(steps.where, type_name, steps.where_position)
    values = [
        replace(each, sql=expand_sql(each.sql, f"{type_name}.{each.name}", each.position))
        for each in steps.columns
    ]
    return replace(steps, expansions=tuple(expansions), where=where, columns=tuple(values))


def _select_latest(rows: DataFrame, identity: Sequence[str], *, has_origin: bool) -> DataFrame:
    """Of the rows of an entity the one with the greatest order, then of the last record.

    A row that is refused, or whose entity is not known, stays: the load reports it.
    """
    order = [f"{_LATEST} DESC NULLS LAST"]
    order += [f"{name} DESC" for name in (PART, ROW) if has_origin]
    kept = [f"{quote_name(name)} IS NULL" for name in identity if name in rows.columns]
    if REFUSED in rows.columns:
        kept.append(f"{quote_name(REFUSED)} IS NOT NULL")
    is_kept = " OR ".join(kept)
    groups = ", ".join([f"({is_kept})", *(quote_name(n) for n in identity if n in rows.columns)])
    rank = f"row_number() OVER (PARTITION BY {groups} ORDER BY {', '.join(order)}) AS {_RANK}"
    ranked = rows.selectExpr("*", rank).where(f"{_RANK} = 1 OR {is_kept}")
    return ranked.drop(_RANK, _LATEST)


def _deduplicate_rows(rows: DataFrame) -> DataFrame:
    """Equal rows once, with one of their records: that of the lowest numbers."""
    names = [quote_name(name) for name in rows.columns if not is_record_id_column(name)]
    lowest = functions.min(functions.struct(PART, ROW)).alias(_LOWEST)
    return rows.groupBy(*names).agg(lowest).selectExpr(*names, f"{_LOWEST}.*")


def _with_provenance(rows: DataFrame, source: int) -> DataFrame:
    """Rows that say of which record of which source they were made."""
    names = [quote_name(name) for name in rows.columns if not is_record_id_column(name)]
    struct = f"named_struct('source', {source}, 'part', {PART}, 'row', {ROW})"
    return rows.selectExpr(*names, f"{struct} AS {quote_name(ORIGIN)}")


def _format_unresolved(failure: UnresolvedError) -> str:
    """What Spark does not understand, without the columns that only a guard knows."""
    return _INTERNAL_COLUMNS.sub("", str(failure)).rstrip(".")


def _with_reason(records: DataFrame, reason: str) -> DataFrame:
    name = quote_name(f"{_REASON}{len(_list_reason_columns(records))}")
    return records.selectExpr("*", f"{reason} AS {name}")


def _list_reason_columns(records: DataFrame) -> list[str]:
    return [quote_name(name) for name in records.columns if name.startswith(_REASON)]


def _coalesce_reasons(reasons: Sequence[str]) -> str:
    return reasons[0] if len(reasons) == 1 else f"coalesce({', '.join(reasons)})"


def _suggest_cast(type_: PropertyType) -> str | None:
    match type_.value:
        case ScalarType(scalar) if scalar in _CASTS:
            return f"write cast(… AS {_CASTS[scalar]})"
        case VectorType():
            return "write cast(… AS array<float>), or {embed: …}"
        case _:
            return None


def _embed_rows(rows: DataFrame, dimensions: Mapping[str, int]) -> DataFrame:
    types = get_spark_types(rows) | dict.fromkeys(dimensions, "array<float>")
    columns = ", ".join(f"{quote_name(name)} {type_}" for name, type_ in types.items())
    # Keys are secrets and stay out of the plan: tasks have them in their own environment.
    settings = {name: text for name, text in os.environ.items() if _is_setting(name)}
    return rows.mapInArrow(partial(embed_batches, dict(dimensions), settings), columns)


def _is_setting(name: str) -> bool:
    return name.startswith(("OMNIGRAPH_EMBED_", "OMNIGRAPH_EMBEDDINGS_"))


def embed_batches(
    dimensions: Mapping[str, int],
    settings: Mapping[str, str],
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Batches with the vectors of texts in place of the texts; each text is embedded once."""
    embedder = ConfiguredEmbedder({**os.environ, **settings})
    for batch in batches:
        for name, dimension in dimensions.items():
            at = batch.schema.get_field_index(name)
            texts = batch.column(at).dictionary_encode()
            distinct = texts.dictionary.to_pylist()
            vectors = embedder.embed_texts(distinct, dimension, Task.DOCUMENT)
            values = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), dimension)
            column = values.cast(pa.list_(pa.float32())).take(texts.indices)
            batch = batch.set_column(at, name, column)  # noqa: PLW2901 — columns in turn
        yield batch
