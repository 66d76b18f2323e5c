"""Which entities satisfy conditions: by id, by the postings of a text, or column by column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.execution.exact import Values, numpy_of
from omnigraph.execution.expressions import Params, constant, evaluate, is_constant
from omnigraph.execution.pinned import pinned
from omnigraph.execution.pushdown import SYSTEM_COLUMNS, column_of, conjuncts
from omnigraph.execution.source import Numbers
from omnigraph.execution.text_predicates import check_options
from omnigraph.execution.topology.columns import Mask, TextColumn
from omnigraph.execution.topology.comparisons import compared
from omnigraph.execution.topology.entities import DenseEntities
from omnigraph.query import typed
from omnigraph.query.ast import CompareOp
from omnigraph.query.typed import Expr, SystemName
from omnigraph.query.walk import subexpressions

# How true something is: false, unknown or true. The least is that of all, the greatest of any.
Levels: TypeAlias = npt.NDArray[np.uint8]
_UNKNOWN: Final = np.uint8(1)
_TRUE: Final = np.uint8(2)


class Narrowing(Protocol):
    """Candidates, or all if None, by conditions that an index answers, and the other conditions."""

    def __call__(
        self, candidates: Numbers | None, conditions: list[Expr], params: Params
    ) -> tuple[Numbers | None, list[Expr]]:
        """Those that are left."""


def satisfying(
    entities: DenseEntities,
    conditions: Sequence[Expr],
    params: Params,
    *,
    narrowed: Narrowing,
) -> Numbers:
    """The entities that satisfy all conditions, ascending."""
    if not conditions:
        return entities.all()
    candidates, left = _by_index(entities, conditions, params, narrowed=narrowed)
    if candidates is None:
        return np.flatnonzero(mask(entities, left, params)).astype(np.int32)
    return among(entities, candidates, left, params)


def holding(
    entities: DenseEntities,
    conditions: Sequence[Expr],
    params: Params,
    *,
    narrowed: Narrowing,
) -> Mask:
    """Which numbers have an entity that satisfies all conditions, by any index there is."""
    # To compare all codes with one takes no longer than to mark those that have it.
    is_posted = len(conditions) > 1
    candidates, left = _by_index(
        entities, conditions, params, narrowed=narrowed, is_posted=is_posted
    )
    if candidates is None:
        return mask(entities, left, params)
    found = np.zeros(entities.size, np.bool_)
    found[among(entities, candidates, left, params)] = True
    return found


def _by_index(
    entities: DenseEntities,
    conditions: Sequence[Expr],
    params: Params,
    *,
    narrowed: Narrowing,
    is_posted: bool = True,
) -> tuple[Numbers | None, list[Expr]]:
    """The candidates that indexes give, or None if they give none, and the other conditions."""
    check_options(conditions, lambda expr: constant(expr, params))
    left = list(conjuncts(conditions))
    candidates = _named(entities, left, params)
    if candidates is None and is_posted:
        candidates = _posted(entities, left, params)
    return narrowed(candidates, left, params)


def among(
    entities: DenseEntities, candidates: Numbers, conditions: Iterable[Expr], params: Params
) -> Numbers:
    """Those of some entities that satisfy all conditions."""
    for condition in conditions:
        if not len(candidates):
            break
        candidates = candidates[_truth_at(entities, condition, params, candidates)]
    return candidates


def _truth_at(entities: DenseEntities, condition: Expr, params: Params, at: Numbers) -> Mask:
    """Where a condition is true, at some entities."""
    found = compared(entities, condition, params, at)
    if found is not None:
        return found
    if 2 * len(at) > entities.size and _only_text(entities, condition) is not None:
        return _truth(entities, condition, params).take(at)
    return numpy_of(_evaluated(condition, _Some(entities, at), params))


def mask(entities: DenseEntities, conditions: Iterable[Expr], params: Params) -> Mask:
    """Which numbers have an entity that satisfies all conditions."""
    found = None if entities.is_alive is None else entities.is_alive.copy()
    for condition in conditions:
        truth = _truth(entities, condition, params)
        found = truth if found is None else found & truth
    return np.ones(entities.size, np.bool_) if found is None else found


# ---- access paths: what they answer is no longer left ----


def _named(entities: DenseEntities, left: list[Expr], params: Params) -> Numbers | None:
    """The entities whose ids the conditions name, directly or by key."""
    shape = entities.shape
    for place, condition in enumerate(left):
        equality = _equality(condition)
        if equality is not None and column_of(equality[0], shape) in shape.id_columns:
            del left[place]
            text = constant(equality[1], params)
            number = entities.find_one(text) if isinstance(text, str) else -1
            return np.array([number] if number >= 0 else [], np.int32)
    ids = pinned(left, shape, params)
    if ids is None:
        return None
    found = entities.find(ids)
    return np.unique(found[found >= 0])


def _posted(entities: DenseEntities, left: list[Expr], params: Params) -> Numbers | None:
    """The entities with a text that a condition asks for."""
    for place, condition in enumerate(left):
        equality = _equality(condition)
        if equality is None or not isinstance(equality[0], typed.PropertyValue):
            continue
        column = entities.column(equality[0].property)
        if isinstance(column, TextColumn):
            del left[place]
            text = constant(equality[1], params)
            code = column.code_of(text) if isinstance(text, str) else -1
            found = column.having(code) if code >= 0 else np.zeros(0, np.int32)
            is_alive = entities.rows.alive_at(found)
            return found if is_alive is None else found[is_alive]
    return None


def _equality(condition: Expr) -> tuple[Expr, Expr] | None:
    """What a condition compares for equality with a constant, and the constant."""
    if not isinstance(condition, typed.Compare) or condition.op is not CompareOp.EQ:
        return None
    left, right = condition.left, condition.right
    if is_constant(left):
        left, right = right, left
    return (left, right) if is_constant(right) and not is_constant(left) else None


# ---- truth, column by column ----


def _truth(entities: DenseEntities, condition: Expr, params: Params) -> Mask:
    """Where a condition is true, for every number."""
    found = compared(entities, condition, params, None)
    if found is not None:
        return found
    if isinstance(condition, typed.AllOf | typed.AnyOf | typed.Negation):
        is_true: Mask = _levels(entities, condition, params) == _TRUE
        return is_true
    name = _only_text(entities, condition)
    if name is None:
        return numpy_of(_evaluated(condition, _All(entities), params))
    column = entities.column(name)
    assert isinstance(column, TextColumn)
    return numpy_of(_evaluated(condition, _Texts(column), params)).take(column.codes)


def _levels(entities: DenseEntities, condition: Expr, params: Params) -> Levels:
    """How true a condition is, for every number."""
    match condition:
        case typed.AllOf():
            parts = [_levels(entities, each, params) for each in condition.operands]
            return reduce(np.minimum, parts)
        case typed.AnyOf():
            parts = [_levels(entities, each, params) for each in condition.operands]
            return reduce(np.maximum, parts)
        case typed.Negation():
            return _TRUE - _levels(entities, condition.operand, params)
    name = _only_text(entities, condition)
    if name is None:
        return _levels_of(_evaluated(condition, _All(entities), params))
    column = entities.column(name)
    assert isinstance(column, TextColumn)
    return _levels_of(_evaluated(condition, _Texts(column), params)).take(column.codes)


def _levels_of(truth: Values) -> Levels:
    levels = numpy_of(truth).astype(np.uint8) * _TRUE
    if truth.null_count:
        levels[numpy_of(truth.is_null())] = _UNKNOWN
    return levels


def _only_text(entities: DenseEntities, condition: Expr) -> str | None:
    """The property of texts that a condition reads, if it reads nothing else of a row."""
    names: set[str] = set()
    for part in subexpressions(condition):
        match part:
            case typed.PropertyValue() | typed.TextMatch():
                names.add(part.property)
            case typed.SystemValue() | typed.NodeValue():
                return None
            case _:
                pass
    if len(names) != 1:
        return None
    name = names.pop()
    kind = entities.shape.schema.field(entities.shape.columns[name]).type
    return name if pa.types.is_string(kind) else None


def _evaluated(condition: Expr, rows: _Some | _All | _Texts, params: Params) -> Values:
    found = evaluate(condition, rows, params)
    return pa.repeat(found, rows.num_rows) if isinstance(found, pa.Scalar) else found


@dataclass(frozen=True, slots=True)
class _Some:
    """Some entities, as expressions see them; every variable stands for the row."""

    entities: DenseEntities
    at: Numbers

    @property
    def num_rows(self) -> int:
        return len(self.at)

    def property(self, _variable: str, name: str) -> pa.ChunkedArray:
        return pa.chunked_array([self.entities.values(name, self.at)])

    def system(self, _variable: str, name: SystemName) -> pa.ChunkedArray:
        if name is SystemName.ID:
            return pa.chunked_array([self.entities.ids(self.at)])
        if name is SystemName.TYPE:
            return _type_of(self.entities, self.num_rows)
        return pa.chunked_array([self.entities.physical(SYSTEM_COLUMNS[name]).take(self.at)])


@dataclass(frozen=True, slots=True)
class _All:
    """Every number; where the entity is gone, what it has does not matter."""

    entities: DenseEntities

    @property
    def num_rows(self) -> int:
        return self.entities.size

    def property(self, _variable: str, name: str) -> pa.ChunkedArray:
        return pa.chunked_array([self.entities.column(name).all()])

    def system(self, _variable: str, name: SystemName) -> pa.ChunkedArray:
        if name is SystemName.ID:
            ids = self.entities.all_ids.whole
            return pa.chunked_array([ids if pa.types.is_string(ids.type) else ids.cast(pa.utf8())])
        if name is SystemName.TYPE:
            return _type_of(self.entities, self.num_rows)
        return pa.chunked_array([self.entities.physical(SYSTEM_COLUMNS[name]).all()])


@dataclass(frozen=True, slots=True)
class _Texts:
    """The distinct texts of a column in the place of rows that have them, then null.

    Each is looked at once; the code of null, which is -1, is that of the last one.
    """

    column: TextColumn

    @property
    def num_rows(self) -> int:
        return len(self.column.dictionary) + 1

    def property(self, _variable: str, _name: str) -> pa.ChunkedArray:
        texts = self.column.dictionary
        return pa.chunked_array([texts, pa.nulls(1, texts.type)]).cast(self.column.kind)

    def system(self, variable: str, name: SystemName) -> pa.ChunkedArray:
        raise AssertionError(f"{variable}.@{name} is not a text property")


def _type_of(entities: DenseEntities, count: int) -> pa.ChunkedArray:
    return pa.chunked_array([pa.repeat(entities.shape.type_key.name, count)])
