"""Nodes of one type that a scan found, by their places in it.

For a read of one type nothing has to be numbered: the table filters and projects what it can, and
the rows that come back are all there is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Final, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.execution.batch import Batch
from omnigraph.execution.budget import Budget
from omnigraph.execution.columns import TableShape
from omnigraph.execution.exact import Values, flat, numpy_of
from omnigraph.execution.expressions import Params
from omnigraph.execution.order import ordered_codes
from omnigraph.execution.reading import Reading
from omnigraph.execution.result import Result
from omnigraph.execution.scan import matching_batches, physical_names, satisfying
from omnigraph.execution.source import Numbers
from omnigraph.execution.tail import finish_rows, split
from omnigraph.execution.view import View
from omnigraph.query import plan as plans
from omnigraph.query.typed import Expr
from omnigraph.schema.accepted import TypeKey, TypeKind
from omnigraph.versioning.effects import ID_COLUMN


def run_scan(plan: plans.ReadPlan, scan: plans.Scan, reading: Reading) -> Result:
    """The result of a plan whose pattern is one scan."""
    parts, view, budget = split(plan.root), reading.view, reading.budget
    shape = view.shape(TypeKey(TypeKind.NODE, scan.type_name))
    names = physical_names(shape, [shape.columns[name] for name in _properties(scan, view)])
    batches = matching_batches(view, shape.type_key, scan.conditions, reading.params, names=names)
    schema = pa.schema([shape.schema.field(name) for name in names])
    found = pa.Table.from_batches(_first(batches, parts.rows_max, budget), schema=schema)
    nodes = ScannedNodes(found, shape)
    rows = Batch(nodes.count, {scan.variable: nodes.all()})
    scanned = replace(reading, source=ScannedSource(**{scan.type_name: nodes}))
    return finish_rows(plan, rows, parts.steps, scanned)


def _properties(scan: plans.Scan, view: View) -> Iterator[str]:
    properties = view.catalog.nodes[scan.type_name].properties
    for name in properties if scan.properties is None else scan.properties:
        if not properties[name].type.is_blob:
            yield name


def _first(
    batches: Iterable[pa.RecordBatch], count: int | None, budget: Budget
) -> Iterator[pa.RecordBatch]:
    """The batches of the first rows, or all of them; no more is read than needed."""
    rows = 0
    for batch in batches:
        if count is not None and rows >= count:
            return
        budget.check()
        budget.hold(batch.nbytes)
        yield batch
        rows += batch.num_rows


class ScannedNodes:
    """The rows of a scan as nodes; there are no others."""

    def __init__(self, rows: pa.Table, shape: TableShape) -> None:
        self._rows = rows
        self._shape = shape

    @property
    def count(self) -> int:
        """How many there are."""
        count: int = self._rows.num_rows
        return count

    def ids(self, at: Numbers) -> pa.Array:
        """Their ids."""
        return self._at(ID_COLUMN, at)

    def ranks(self, at: Numbers) -> npt.NDArray[np.int64]:
        """Numbers that compare as their ids do, within one call."""
        ranks: npt.NDArray[np.int64] = ordered_codes(self.ids(at))
        return ranks

    def values(self, name: str, at: Numbers) -> pa.Array:
        """The values of a property that the scan read."""
        return self._at(self._shape.columns[name], at)

    def all(self) -> Numbers:
        """Every node, ascending."""
        return self._all

    def find(self, ids: pa.Array) -> Numbers:
        """The nodes with these ids; -1 where there is none."""
        places = pc.index_in(ids, value_set=flat(self._rows[ID_COLUMN]))
        found: Numbers = numpy_of(pc.fill_null(places, -1)).astype(np.int32)
        return found

    def where(self, conditions: Sequence[Expr], params: Params) -> Numbers:
        """The nodes that satisfy all conditions, ascending."""
        mask = numpy_of(satisfying(self._rows, self._shape, conditions, params))
        return np.flatnonzero(mask).astype(np.int32)

    def row_ids(self, _: Numbers) -> NoReturn:
        """Never asked for: a read that ranks is no scan."""
        raise AssertionError("a scan does not read row ids")

    def at_rows(self, _: npt.NDArray[np.uint64]) -> NoReturn:
        """Never asked for: a read that ranks is no scan."""
        raise AssertionError("a scan does not read row ids")

    @cached_property
    def _all(self) -> Numbers:
        return np.arange(self.count, dtype=np.int32)

    def _at(self, column: str, at: Numbers) -> pa.Array:
        values: Values = self._rows[column]
        if _is_run(at):
            return flat(values.slice(int(at[0]), len(at)))
        return flat(values.take(pa.array(at)))


class ScannedSource:
    """The source of a read of one node type, or of none at all."""

    def __init__(self, **nodes: ScannedNodes) -> None:
        self._nodes = nodes

    def nodes(self, type_name: str) -> ScannedNodes:
        """The nodes of the type."""
        return self._nodes[type_name]

    def edges(self, type_name: str) -> NoReturn:
        """Never asked for: a read with edges is no scan."""
        raise AssertionError(f"a scan has no {type_name}")


# Of a read that has not found out yet where to read from.
NOTHING: Final = ScannedSource()


def _is_run(at: Numbers) -> bool:
    """Whether the numbers follow one another, so that nothing has to be picked."""
    if not len(at) or int(at[-1]) - int(at[0]) != len(at) - 1:
        return False
    return bool((np.diff(at) == 1).all())
