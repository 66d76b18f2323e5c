"""Which entities satisfy conditions: by id, by the postings of a text, or column by column."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.execution.sources.graph_source import DenseIds, RowIndices
from omnigraph.execution.sources.topology.topology_columns import NumberColumn, TextColumn
from omnigraph.execution.sources.topology.topology_entities import DenseEntities
from omnigraph.query import typed_tree
from omnigraph.query.ast import CompareOp
from omnigraph.query.tree_walk import iter_subexpressions
from omnigraph.query.typed_tree import Compare, Expr, PropertyValue, SystemName, TextMatch, Value
from omnigraph.rows.comparison import MIRRORED, NUMPY_COMPARISONS, Values, fit_constant, to_numpy
from omnigraph.rows.evaluator import Params, evaluate, evaluate_constant, is_constant
from omnigraph.rows.id_predicates import find_candidate_ids
from omnigraph.rows.pushdown import SYSTEM_COLUMNS, column_of
from omnigraph.rows.row_filter import Mask, evaluate_condition, evaluate_truth

# How true something is: false, unknown or true. The least is that of all, the greatest of any.
Levels: TypeAlias = npt.NDArray[np.uint8]
_UNKNOWN: Final = np.uint8(1)
_TRUE: Final = np.uint8(2)

# To find the code of a text takes an index of all of them: for a few rows it must be small.
FEW_TEXTS: Final = 1_024


# ---- access paths: a condition that they answer is removed from those that are left ----


def find_by_id(entities: DenseEntities, left: list[Expr], params: Params) -> DenseIds | None:
    """The entities whose ids the conditions name, directly or by key."""
    shape = entities.shape
    for place, condition in enumerate(left):
        equality = _split_equality(condition)
        if equality is not None and column_of(equality[0], shape) in shape.id_columns:
            del left[place]
            text = evaluate_constant(equality[1], params)
            number = entities.find_one(text) if isinstance(text, str) else -1
            return np.array([number] if number >= 0 else [], np.int32)
    ids = find_candidate_ids(left, shape, params)
    if ids is None:
        return None
    found = entities.find(ids)
    return np.unique(found[found >= 0])


def find_by_postings(entities: DenseEntities, left: list[Expr], params: Params) -> DenseIds | None:
    """The entities with a text that a condition asks for."""
    for place, condition in enumerate(left):
        equality = _split_equality(condition)
        if equality is None or not isinstance(equality[0], typed_tree.PropertyValue):
            continue
        column = entities.get_column(equality[0].property)
        if isinstance(column, TextColumn):
            del left[place]
            text = evaluate_constant(equality[1], params)
            code = column.code_of(text) if isinstance(text, str) else -1
            found = column.find_entities(code) if code >= 0 else np.zeros(0, np.int32)
            is_alive = entities.rows.compute_alive(found)
            return found if is_alive is None else found[is_alive]
    return None


def _split_equality(condition: Expr) -> tuple[Expr, Expr] | None:
    """What a condition compares for equality with a constant, and the constant."""
    if not isinstance(condition, typed_tree.Compare) or condition.op is not CompareOp.EQ:
        return None
    left, right = condition.left, condition.right
    if is_constant(left):
        left, right = right, left
    return (left, right) if is_constant(right) and not is_constant(left) else None


# ---- truth, column by column ----


@dataclass(frozen=True, slots=True)
class SomeEntities:
    """Some entities, as expressions see them; every variable stands for the row."""

    entities: DenseEntities
    at: DenseIds

    @property
    def num_rows(self) -> int:
        """How many there are."""
        return len(self.at)

    def get_property(self, _variable: str, name: str) -> pa.ChunkedArray:
        """The values of a property."""
        return pa.chunked_array([self.entities.fetch_values(name, self.at)])

    def get_system_field(self, _variable: str, name: SystemName) -> pa.ChunkedArray:
        """The values of a system field."""
        if name is SystemName.ID:
            return pa.chunked_array([self.entities.fetch_ids(self.at)])
        if name is SystemName.TYPE:
            return _type_of(self.entities, self.num_rows)
        return pa.chunked_array(
            [self.entities.get_physical_column(SYSTEM_COLUMNS[name]).take(self.at)]
        )

    def evaluate_directly(self, condition: Expr, params: Params) -> Mask | None:
        """Where a condition is true, by raw numbers or codes of texts."""
        found = compare_property(self.entities, condition, params, self.at)
        if found is not None:
            return found
        entities = self.entities
        if 2 * len(self.at) > entities.size and _find_text_property(entities, condition):
            return evaluate_condition(condition, AllEntities(entities), params).take(self.at)
        return None

    def search_texts(self, match: TextMatch, params: Params) -> Values | None:
        """Where texts satisfy a predicate, by the index of their field; None without one."""
        return self.entities.search_texts(match, params, self.at)

    def take(self, places: RowIndices) -> SomeEntities:
        """Some of them."""
        return SomeEntities(self.entities, self.at.take(places))


@dataclass(frozen=True, slots=True)
class AllEntities:
    """Every number; where the entity is gone, what it has does not matter."""

    entities: DenseEntities

    @property
    def num_rows(self) -> int:
        """How many numbers there are."""
        return self.entities.size

    def get_property(self, _variable: str, name: str) -> pa.ChunkedArray:
        """The values of a property."""
        return pa.chunked_array([self.entities.get_column(name).take_all()])

    def get_system_field(self, _variable: str, name: SystemName) -> pa.ChunkedArray:
        """The values of a system field."""
        if name is SystemName.ID:
            ids = self.entities.all_ids.whole
            return pa.chunked_array([ids if pa.types.is_string(ids.type) else ids.cast(pa.utf8())])
        if name is SystemName.TYPE:
            return _type_of(self.entities, self.num_rows)
        return pa.chunked_array(
            [self.entities.get_physical_column(SYSTEM_COLUMNS[name]).take_all()]
        )

    def evaluate_directly(self, condition: Expr, params: Params) -> Mask | None:
        """Where a condition is true, by raw numbers, or by distinct texts."""
        found = compare_property(self.entities, condition, params, None)
        if found is not None:
            return found
        name = _find_text_property(self.entities, condition)
        if name is not None:
            column = self.entities.get_column(name)
            assert isinstance(column, TextColumn)
            return evaluate_truth(condition, _DistinctTexts(column), params).take(column.codes)
        if isinstance(condition, typed_tree.AllOf | typed_tree.AnyOf | typed_tree.Negation):
            is_true: Mask = _evaluate_levels(self.entities, condition, params) == _TRUE
            return is_true
        return None

    def search_texts(self, match: TextMatch, params: Params) -> Values | None:
        """Where texts satisfy a predicate, by the index of their field; None without one."""
        return self.entities.search_texts(match, params, np.arange(self.num_rows, dtype=np.int32))

    def take(self, places: RowIndices) -> SomeEntities:
        """Some of them."""
        return SomeEntities(self.entities, places.astype(np.int32))


def _evaluate_levels(entities: DenseEntities, condition: Expr, params: Params) -> Levels:
    """How true a condition is, for every number."""
    name = _find_text_property(entities, condition)
    match condition:
        case _ if name is not None:
            column = entities.get_column(name)
            assert isinstance(column, TextColumn)
            return _levels_of(_evaluate_values(condition, _DistinctTexts(column), params)).take(
                column.codes
            )
        case typed_tree.AllOf():
            parts = (_evaluate_levels(entities, each, params) for each in condition.operands)
            return reduce(np.minimum, parts)
        case typed_tree.AnyOf():
            parts = (_evaluate_levels(entities, each, params) for each in condition.operands)
            return reduce(np.maximum, parts)
        case typed_tree.Negation():
            return _TRUE - _evaluate_levels(entities, condition.operand, params)
        case _:
            return _levels_of(_evaluate_values(condition, AllEntities(entities), params))


def _levels_of(truth: Values) -> Levels:
    levels = to_numpy(truth).astype(np.uint8) * _TRUE
    if truth.null_count:
        levels[to_numpy(truth.is_null())] = _UNKNOWN
    return levels


def _find_text_property(entities: DenseEntities, condition: Expr) -> str | None:
    """The property of texts that a condition reads, if it reads nothing else of a row."""
    names: set[str] = set()
    for part in iter_subexpressions(condition):
        match part:
            case typed_tree.PropertyValue():
                names.add(part.property)
            case typed_tree.SystemValue() | typed_tree.NodeValue() | typed_tree.TextMatch():
                return None
            case _:
                pass
    if len(names) != 1:
        return None
    name = names.pop()
    kind = entities.shape.schema.field(entities.shape.columns[name]).type
    return name if pa.types.is_string(kind) else None


def _evaluate_values(condition: Expr, rows: AllEntities | _DistinctTexts, params: Params) -> Values:
    found = evaluate(condition, rows, params)
    return pa.repeat(found, rows.num_rows) if isinstance(found, pa.Scalar) else found


@dataclass(frozen=True, slots=True)
class _DistinctTexts:
    """The distinct texts of a column in the place of rows that have them, then null.

    Each is examined once; the code of null, which is -1, is that of the last one.
    """

    column: TextColumn

    @property
    def num_rows(self) -> int:
        return len(self.column.dictionary) + 1

    def get_property(self, _variable: str, _name: str) -> pa.ChunkedArray:
        texts = self.column.dictionary
        return pa.chunked_array([texts, pa.nulls(1, texts.type)]).cast(self.column.kind)

    def get_system_field(self, variable: str, name: SystemName) -> pa.ChunkedArray:
        raise AssertionError(f"{variable}.@{name} is not a text property")


def _type_of(entities: DenseEntities, count: int) -> pa.ChunkedArray:
    return pa.chunked_array([pa.repeat(entities.shape.type_key.name, count)])


def compare_property(
    entities: DenseEntities, condition: Expr, params: Params, at: DenseIds | None
) -> Mask | None:
    """Where a condition is true, at some entities or all numbers; None if values are faster."""
    match condition:
        case Compare(op, PropertyValue(property=name), right) if is_constant(right):
            given = right
        case Compare(op, left, PropertyValue(property=name)) if is_constant(left):
            given, op = left, MIRRORED[op]
        case _:
            return None
    column = entities.get_column(name)
    if isinstance(column, NumberColumn):
        return _compare_numbers(column, op, evaluate_constant(given, params), at)
    if not isinstance(column, TextColumn) or op not in (CompareOp.EQ, CompareOp.NE):
        return None
    if at is not None and len(column.texts) > max(len(at), FEW_TEXTS):
        return None
    return _compare_texts(column, op, evaluate_constant(given, params), at)


def _compare_numbers(
    column: NumberColumn, op: CompareOp, value: Value, at: DenseIds | None
) -> Mask:
    numbers, nulls = column.get_numbers(at), column.get_nulls(at)
    test = False if value is None else fit_constant(op, value, column.kind)
    if isinstance(test, bool):
        found: Mask = np.full(len(numbers), test)
    else:
        found = NUMPY_COMPARISONS[test.op](numbers, test.value)
    return found if nulls is None else found & ~nulls


def _compare_texts(column: TextColumn, op: CompareOp, value: Value, at: DenseIds | None) -> Mask:
    codes = column.get_codes(at)
    if value is None:
        return np.zeros(len(codes), np.bool_)
    assert isinstance(value, str)
    code = column.code_of(value)
    if op is CompareOp.NE:
        return np.not_equal(codes, code) & np.greater_equal(codes, 0)
    # The code of a null is that of a text which no entity has.
    return np.equal(codes, code) if code >= 0 else np.zeros(len(codes), np.bool_)
