"""What statements assign to single entities, one at a time, until it becomes rows of a table."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.writers.assignments import Cell
from omnigraph.writers.computed_values import RowAssignments
from omnigraph.writers.default_values import DefaultValues
from omnigraph.writers.graph_change import combine_column

# Which rows get values of a column, and these values.
_Part: TypeAlias = tuple[Sequence[int], pa.Array]


class Origin(Enum):
    """What the first statement about an entity knew of it."""

    # It wrote the entity whole.
    WRITTEN = "written"
    # The entity is committed, and read for all statements together.
    COMMITTED = "committed"
    # The entity is looked up, and may not exist.
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class _Step:
    """What a statement computes from an entity, and what it and later ones assign to it."""

    cells: dict[str, Cell]
    computed: RowAssignments | None

    @property
    def overwritten(self) -> frozenset[str]:
        """The columns whose old values have no part in the new row."""
        cells = frozenset(self.cells)
        return cells if self.computed is None else cells - self.computed.read_columns


class SingleRow:
    """What statements did to an entity in turn; that of a written one begins with its row."""

    __slots__ = ("defaults", "given", "origin", "steps")

    def __init__(self, origin: Origin, defaults: DefaultValues | None = None) -> None:
        self.origin = origin
        self.defaults = defaults
        self.steps: list[_Step] = []
        # The columns that the first statement gave a value.
        self.given: frozenset[str] = frozenset()

    def assign(self, cells: Mapping[str, Cell], computed: RowAssignments | None = None) -> None:
        """Assign cells, and what is computed from the entity as it is now."""
        is_first = not self.steps
        # What is assigned later has no part in the defaults of a new entity.
        may_join = not is_first and (self.defaults is None or len(self.steps) > 1)
        if computed is not None or not may_join:
            if is_first:
                self.given = frozenset(cells if computed is None else {*cells, *computed.columns})
            self.steps.append(_Step(dict(cells), computed))
        else:
            self.steps[-1].cells.update(cells)

    def assign_defaults(self) -> None:
        """Assign the defaults of what the first statement did not: the entity is new."""
        if self.defaults is not None:
            steps = self.defaults.list_steps(self.given)
            self.steps[1:1] = [
                _Step(dict(each.cells), each if each.computed else None) for each in steps
            ]

    @property
    def overwritten(self) -> frozenset[str]:
        """The columns whose first values have no part in what becomes of the entity."""
        return self.steps[0].overwritten


def build_rows(rows: Collection[SingleRow], schema: pa.Schema) -> pa.Table:
    """The rows of written entities, as they were first; columns left out are null."""
    cells = [each.steps[0].cells for each in rows]
    if len(cells) == 1:
        # Each array that is made lets other threads in between, which costs more than the array.
        row = pa.array(cells, pa.struct(schema))
        columns = [row.field(at) for at in range(len(schema))]
    else:
        columns = [pa.array([each.get(f.name) for each in cells], f.type) for f in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def apply_steps(rows: pa.Table, entities: Sequence[SingleRow]) -> pa.Table:
    """What becomes of the first rows of entities, in any order."""
    steps = [each.steps[each.origin is Origin.WRITTEN :] for each in entities]
    counts = np.array([len(each) for each in steps])
    if not counts.any():
        return rows
    if not (counts == 1).all():
        # Those with most steps come first: of every step fewer rows are left.
        order = np.argsort(-counts, kind="stable")
        rows, steps = rows.take(pa.array(order)), [steps[at] for at in order]
    finished = []
    for number in range(int(counts.max())):
        left = int(np.count_nonzero(counts > number))
        finished.append(rows.slice(left))
        rows = _apply_step(rows.slice(0, left), [each[number] for each in steps[:left]])
    return pa.concat_tables([*finished, rows])


def _apply_step(rows: pa.Table, steps: Sequence[_Step]) -> pa.Table:
    """Rows after one step each: values are computed from the rows before it, cells go last."""
    parts = _compute_values(rows, steps)
    for field in rows.schema:
        own = [row for row, step in enumerate(steps) if field.name in step.cells]
        if own:
            cells = pa.array([steps[row].cells[field.name] for row in own], field.type)
            parts.setdefault(field.name, []).append((own, cells))
    columns = [_put_values(rows[name], parts.get(name, ())) for name in rows.column_names]
    return pa.Table.from_arrays(columns, schema=rows.schema)


def _compute_values(rows: pa.Table, steps: Sequence[_Step]) -> dict[str, list[_Part]]:
    """What steps compute, by column; those that compute the same do so together."""
    groups: dict[str, list[int]] = {}
    for row, step in enumerate(steps):
        if step.computed is not None:
            # Zeros are equal whatever their sign, but their texts are not.
            groups.setdefault(repr(step.computed.computed), []).append(row)
    parts: dict[str, list[_Part]] = {}
    for own in groups.values():
        assignments = steps[own[0]].computed
        assert assignments is not None
        some = rows.slice(own[0], 1) if len(own) == 1 else rows.take(pa.array(own))
        for name, values in assignments.compute(some).items():
            parts.setdefault(name, []).append((own, values))
    return parts


def _put_values(column: pa.ChunkedArray, parts: Sequence[_Part]) -> pa.Array | pa.ChunkedArray:
    """A column where some rows get other values; the last ones that a row gets count."""
    if not parts:
        return column
    own, values = parts[-1]
    if len(own) == len(column):
        return values
    rows = np.concatenate([own for own, _ in parts])
    places = np.arange(len(column))
    places[rows] = len(column) + np.arange(len(rows))
    every = pa.concat_arrays([combine_column(column), *(values for _, values in parts)])
    return every.take(pa.array(places))
