"""Values that a statement computes from rows, as the columns of the properties that get them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Never, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ValueFaultError, Violation, WriteRefusedError
from omnigraph.execution.type_scan import TypeRows
from omnigraph.query import typed_tree
from omnigraph.query.tree_walk import iter_subexpressions
from omnigraph.rows.columns import TableShape, arrow_type_of
from omnigraph.rows.comparison import to_comparable
from omnigraph.rows.evaluator import Params, RowColumns, evaluate, is_constant
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.schema.property_types import ListType, PropertyType, VectorType
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.assignments import Cell, coerce_cell, evaluate_assignments
from omnigraph.writers.graph_change import combine_column
from omnigraph.writers.value_faults import find_faults

_Mask: TypeAlias = npt.NDArray[np.bool_]

_NULL_HINT: Final = "give it a value, or leave out the rows that have none"
# One chunk of equal cells, which a column repeats by reference however long it is.
_CHUNK_ROWS: Final = 65_536
_CHUNK_BYTES: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ValueSubject:
    """What values are computed for: a property of entities whose ids are known, or not yet."""

    type_name: str
    property: str
    type: PropertyType
    ids: pa.Array | pa.ChunkedArray | None

    def id_of(self, row: int) -> str | None:
        """The entity of a row."""
        return None if self.ids is None else str(self.ids[row])

    def build_refusal(self, rule: str, message: str, row: int) -> WriteRefusedError:
        """The error about the value of a row."""
        entity_id = self.id_of(row)
        if entity_id is not None:
            message = f"{message}: {self.type_name} '{entity_id}'"
        violation = Violation(
            rule, message, type_name=self.type_name, property=self.property, entity_id=entity_id
        )
        hint = _NULL_HINT if rule == "required" else None
        if hint is not None and self.type.is_numeric:
            hint = "give it a value, such as coalesce(…, 0)"
        return WriteRefusedError(message, violations=[violation], hint=hint)


def compute_column(
    expr: typed_tree.Expr, subject: ValueSubject, rows: RowColumns, params: Params
) -> pa.Array:
    """The value of an expression at each row, as its property keeps it.

    A value that does not fit, or that cannot be computed, is refused.
    """
    found = evaluate(expr, rows, params)
    if isinstance(found, pa.Scalar):
        found = pa.repeat(found, rows.num_rows)
    elif isinstance(found, pa.ChunkedArray):
        found = combine_column(found)
    if found.null_count:
        _require_known(expr, subject, rows, params)
        if not subject.type.is_nullable:
            message = (
                f"cannot assign null to non-nullable property '{subject.property}' of "
                f"{subject.type_name}"
            )
            raise subject.build_refusal("required", message, int(np.argmax(found.is_null())))
    return _convert_column(found, subject)


def _require_known(
    expr: typed_tree.Expr, subject: ValueSubject, rows: RowColumns, params: Params
) -> None:
    faults = find_faults(expr, rows, params)
    if faults.any():
        raise ValueFaultError(
            subject.type_name,
            subject.property,
            entity_id=subject.id_of(int(np.argmax(faults))),
            count=int(np.count_nonzero(faults)),
        )


def find_unfit_rows(
    expr: typed_tree.Expr, subject: ValueSubject, rows: RowColumns, params: Params
) -> _Mask:
    """The rows at which an expression has no value that its property can keep."""
    found = evaluate(expr, rows, params)
    values = combine_column(found) if isinstance(found, pa.ChunkedArray) else found
    if isinstance(values, pa.Scalar):
        values = pa.repeat(values, rows.num_rows)
    unfit = find_faults(expr, rows, params).copy()
    if not subject.type.is_nullable:
        unfit |= np.asarray(values.is_null())
    kind = arrow_type_of(subject.type)
    plain = values if values.type == kind else pc.cast(values, kind, safe=False)
    if isinstance(subject.type.value, ListType | VectorType):
        items = pc.list_flatten(values)
        are_bad = ~_are_kept(pc.list_flatten(plain), items) | np.asarray(items.is_null())
        unfit[np.asarray(pc.list_parent_indices(values))[are_bad]] = True
        return unfit
    return unfit | ~_are_kept(plain, values)


def _convert_column(values: pa.Array, subject: ValueSubject) -> pa.Array:
    """Values as a property keeps them."""
    kind = arrow_type_of(subject.type)
    is_nested = isinstance(subject.type.value, ListType | VectorType)
    if is_nested and (nulls := pc.list_flatten(values).is_null()).true_count:
        message = f"{subject.type_name}.{subject.property}: null is not allowed as an element"
        raise subject.build_refusal("value", message, _find_list(values, np.asarray(nulls)))
    if values.type == kind and not pa.types.is_floating(kind):
        return values
    plain = pc.cast(values, kind, safe=False)
    if is_nested:
        is_kept = _are_kept(pc.list_flatten(plain), pc.list_flatten(values))
        if not is_kept.all():
            _refuse_value(values, subject, _find_list(values, ~is_kept))
    elif not (is_kept := _are_kept(plain, values)).all():
        _refuse_value(values, subject, int(np.argmin(is_kept)))
    return plain


def _are_kept(kept: pa.Array, values: pa.Array) -> _Mask:
    """Where converted values are what they were made of, as far as numbers can be."""
    if pa.types.is_integer(kept.type):
        return _are_equal(kept, values)
    if pa.types.is_floating(kept.type):
        return np.asarray(pc.fill_null(pc.is_finite(kept), True))
    return np.ones(len(kept), np.bool_)


def _are_equal(kept: pa.Array, values: pa.Array) -> _Mask:
    """Where integers are exactly what they were made of."""
    back = pc.cast(kept, values.type, safe=False)
    is_same = pc.and_(pc.equal(back, values), _have_equal_signs(kept, values))
    return np.asarray(pc.fill_null(is_same, True))


def _have_equal_signs(kept: pa.Array, values: pa.Array) -> pa.Array:
    zero = pa.scalar(0)
    return pc.equal(pc.less(kept, zero.cast(kept.type)), pc.less(values, zero.cast(values.type)))


def _refuse_value(values: pa.Array, subject: ValueSubject, row: int) -> Never:
    value = to_comparable(values.slice(row, 1))[0].as_py()
    try:
        coerce_cell(tuple(value) if isinstance(value, list) else value, subject.type)
    except ValueError as misfit:
        message = f"{subject.type_name}.{subject.property}: {misfit}"
        raise subject.build_refusal("value", message, row) from misfit
    raise AssertionError(f"{value} fits {subject.type}")


def _find_list(lists: pa.Array, are_bad: _Mask) -> int:
    """The first list with a bad item."""
    return int(pc.list_parent_indices(lists)[int(np.argmax(are_bad))].as_py())


@dataclass(frozen=True, slots=True)
class RowAssignments:
    """What a statement assigns to rows of a type: one cell for all rows, or a value of each row.

    `cells` are by physical column, `computed` read the row.
    """

    type_: NodeType | EdgeType
    shape: TableShape
    cells: Mapping[str, Cell]
    computed: Mapping[str, typed_tree.Assign]
    params: Params

    @property
    def columns(self) -> frozenset[str]:
        """The physical columns that are assigned."""
        return frozenset({*self.cells, *self.computed})

    @property
    def read_columns(self) -> frozenset[str]:
        """The physical columns that values are computed from."""
        values = [
            expr for each in self.computed.values() for expr in iter_subexpressions(each.value)
        ]
        read = {each.property for each in values if isinstance(each, typed_tree.PropertyValue)}
        return frozenset(self.shape.columns[name] for name in read)

    @property
    def overwritten(self) -> frozenset[str]:
        """The physical columns whose old values have no part in the new rows."""
        return self.columns - self.read_columns

    def assign(self, rows: pa.Table) -> pa.Table:
        """Rows with their new values; all are computed from the old ones."""
        computed = self.compute(rows)
        columns = [
            computed[field.name]
            if field.name in computed
            else repeat_cell(self.cells[field.name], field.type, rows.num_rows)
            if field.name in self.cells
            else rows[field.name]
            for field in self.shape.schema
        ]
        return pa.Table.from_arrays(columns, schema=self.shape.schema)

    def compute(self, rows: pa.Table) -> Mapping[str, pa.Array]:
        """The values that are computed from rows, by physical column."""
        seen = TypeRows(rows, self.shape)
        return {name: self._compute(assign, seen) for name, assign in self.computed.items()}

    def _compute(self, assign: typed_tree.Assign, rows: TypeRows) -> pa.Array:
        subject = ValueSubject(
            self.type_.name,
            assign.property,
            self.type_.properties[assign.property].type,
            rows.rows[ID_COLUMN],
        )
        return compute_column(assign.value, subject, rows, self.params)


def bind_assignments(
    type_: NodeType | EdgeType,
    shape: TableShape,
    assignments: Sequence[typed_tree.Assign],
    params: Params,
) -> RowAssignments:
    """Assignments with the values that are the same for all rows."""
    computed, constant = dict[str, typed_tree.Assign](), list[typed_tree.Assign]()
    for each in assignments:
        if is_constant(each.value):
            constant.append(each)
        else:
            computed[shape.columns[each.property]] = each
    values = evaluate_assignments(type_, constant, params)
    cells = {shape.columns[name]: cell for name, cell in values.items()}
    return RowAssignments(type_, shape, cells, computed, params)


def repeat_cell(cell: Cell, type_: pa.DataType, count: int) -> pa.ChunkedArray:
    """A column of equal cells; it takes the memory of one chunk."""
    one = pa.array([cell], type_)
    chunk_rows = max(1, min(count, _CHUNK_ROWS, _CHUNK_BYTES // max(one.nbytes, 1)))
    chunk = pa.repeat(one[0], chunk_rows)
    whole, rest = divmod(count, chunk_rows)
    chunks = [chunk] * whole + ([chunk.slice(0, rest)] if rest else [])
    return pa.chunked_array(chunks, type_)
