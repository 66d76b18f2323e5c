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
from omnigraph.rows.columns import TableShape, arrow_type_of
from omnigraph.rows.comparison import to_comparable
from omnigraph.rows.evaluator import Params, evaluate, is_constant
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.schema.property_types import PropertyType
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.assignments import Cell, coerce_cell, evaluate_assignments
from omnigraph.writers.graph_change import combine_column
from omnigraph.writers.value_faults import find_faults

_Mask: TypeAlias = npt.NDArray[np.bool_]

# One chunk of equal cells, which a column repeats by reference however long it is.
_CHUNK_ROWS: Final = 65_536
_CHUNK_BYTES: Final = 16 * 1024 * 1024


def compute_column(
    assign: typed_tree.Assign, type_: PropertyType, rows: TypeRows, params: Params
) -> pa.Array:
    """The value of a property at each row; a value that does not fit, or faults, is refused."""
    found = evaluate(assign.value, rows, params)
    if isinstance(found, pa.Scalar):
        found = pa.repeat(found, rows.num_rows)
    elif isinstance(found, pa.ChunkedArray):
        found = combine_column(found)
    if found.null_count:
        _require_known(assign, rows, params)
        if not type_.is_nullable:
            _refuse_null(assign.property, rows, int(np.argmax(found.is_null())))
    return _convert_column(found, assign.property, type_, rows)


def _require_known(assign: typed_tree.Assign, rows: TypeRows, params: Params) -> None:
    faults = find_faults(assign.value, rows, params)
    if faults.any():
        raise ValueFaultError(
            rows.shape.type_key.name,
            assign.property,
            entity_id=rows.rows[ID_COLUMN][int(np.argmax(faults))].as_py(),
            count=int(np.count_nonzero(faults)),
        )


def _refuse_null(name: str, rows: TypeRows, row: int) -> Never:
    type_name, entity_id = rows.shape.type_key.name, rows.rows[ID_COLUMN][row].as_py()
    message = (
        f"cannot assign null to non-nullable property '{name}' of {type_name}: "
        f"{type_name} '{entity_id}'"
    )
    violation = Violation(
        "required", message, type_name=type_name, property=name, entity_id=entity_id
    )
    raise WriteRefusedError(
        message, violations=[violation], hint="give it a value, such as coalesce(…, 0)"
    )


def _convert_column(values: pa.Array, name: str, type_: PropertyType, rows: TypeRows) -> pa.Array:
    """Values as a property keeps them."""
    kind = arrow_type_of(type_)
    if values.type == kind and not pa.types.is_floating(kind):
        return values
    plain = pc.cast(values, kind, safe=False)
    if pa.types.is_integer(kind):
        is_kept = _are_equal(plain, values)
    elif pa.types.is_floating(kind):
        is_kept = np.asarray(pc.fill_null(pc.is_finite(plain), True))
    else:
        return plain
    if not is_kept.all():
        _refuse_value(values, name, type_, rows, int(np.argmin(is_kept)))
    return plain


def _are_equal(kept: pa.Array, values: pa.Array) -> _Mask:
    """Where integers are exactly what they were made of."""
    back = pc.cast(kept, values.type, safe=False)
    is_same = pc.and_(pc.equal(back, values), _have_equal_signs(kept, values))
    return np.asarray(pc.fill_null(is_same, True))


def _have_equal_signs(kept: pa.Array, values: pa.Array) -> pa.Array:
    zero = pa.scalar(0)
    return pc.equal(pc.less(kept, zero.cast(kept.type)), pc.less(values, zero.cast(values.type)))


def _refuse_value(
    values: pa.Array, name: str, type_: PropertyType, rows: TypeRows, row: int
) -> Never:
    type_name, entity_id = rows.shape.type_key.name, rows.rows[ID_COLUMN][row].as_py()
    value = to_comparable(values.slice(row, 1))[0].as_py()
    try:
        coerce_cell(value, type_)
    except ValueError as misfit:
        message = f"{type_name}.{name}: {misfit}: {type_name} '{entity_id}'"
        violation = Violation(
            "value", message, type_name=type_name, property=name, entity_id=entity_id
        )
        raise WriteRefusedError(message, violations=[violation]) from misfit
    raise AssertionError(f"{value} fits {type_}")


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

    def assign(self, rows: pa.Table) -> pa.Table:
        """Rows with their new values; all are computed from the old ones."""
        seen = TypeRows(rows, self.shape)
        columns = [
            self._compute(self.computed[field.name], seen)
            if field.name in self.computed
            else repeat_cell(self.cells[field.name], field.type, rows.num_rows)
            if field.name in self.cells
            else rows[field.name]
            for field in self.shape.schema
        ]
        return pa.Table.from_arrays(columns, schema=self.shape.schema)

    def _compute(self, assign: typed_tree.Assign, rows: TypeRows) -> pa.Array:
        type_ = self.type_.properties[assign.property].type
        return compute_column(assign, type_, rows, self.params)


def bind_assignments(
    type_: NodeType | EdgeType,
    shape: TableShape,
    assignments: Sequence[typed_tree.Assign],
    params: Params,
) -> RowAssignments:
    """Assignments with the values that are the same for all rows."""
    computed = {
        shape.columns[each.property]: each for each in assignments if not is_constant(each.value)
    }
    constant = [each for each in assignments if is_constant(each.value)]
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
