"""Correlated blocks: run once for all rows together, and joined back by what they read of a row."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.execution.exact import compare_constant
from omnigraph.execution.expressions import constant
from omnigraph.query.ast import AggregateFunction
from omnigraph.query.plan import CompareBlock, Exists
from omnigraph.query.typed import SystemValue
from omnigraph.query.walk import chain_of, used_variables
from omnigraph.spark.query.frames import Frame, Task, mapped
from omnigraph.spark.query.partials import Combined, Compared, Key, Partial, measure_of

if TYPE_CHECKING:
    from omnigraph.spark.query.pattern import Lowering


def tested(
    lowering: Lowering, op: Exists | CompareBlock, frame: Frame, live: frozenset[str]
) -> Frame:
    """The rows for which a block passes."""
    layout, workshop = lowering.workshop.layout, lowering.workshop
    identity = layout.identity(used_variables(op))
    if frame.scans is None:
        # Read twice: for the block, and for the rows that pass.
        frame = workshop.persisted(frame)
    on = [layout.field(each).column for each in identity]
    outer = lowering.unit()
    if identity:
        once = frame.select(layout.needed_by(op))
        outer = Frame(once.data.dropDuplicates(on), once.fields, is_small=once.is_small)
    match op:
        case Exists(is_negated=is_negated):
            inner = lowering.chain(chain_of(op.block)[1:], outer, frozenset(on))
            if not identity:
                is_kept = inner.data.isEmpty() == is_negated
                found = frame if is_kept else workshop.nothing(frame.fields)
            else:
                how = "left_anti" if is_negated else "left_semi"
                found = frame.joined(inner.select(frozenset(on)), on, how=how)
        case CompareBlock():
            found = _compared(lowering, op, frame, outer, identity)
    return found.select(live)


def _compared(
    lowering: Lowering,
    op: CompareBlock,
    frame: Frame,
    outer: Frame,
    identity: tuple[SystemValue, ...],
) -> Frame:
    workshop = lowering.workshop
    layout, params = workshop.layout, workshop.params
    value = constant(op.value, params)
    if value is None:
        return workshop.nothing(frame.fields)
    needed = frozenset().union(*map(layout.read_by, identity))
    if op.argument is not None:
        needed |= layout.read_by(op.argument)
    inner = lowering.chain(chain_of(op.block)[1:], outer, needed)
    keys = tuple(
        Key(each, replace(layout.field(each), column=f"g{number}"))
        for number, each in enumerate(identity)
    )
    partial = Partial(layout, params, keys, (measure_of(op.function, op.argument, 0),))
    combined = Combined(partial)
    # Of nothing, only a count is known.
    is_count = op.function is AggregateFunction.COUNT
    none_passes = (
        is_count and compare_constant(op.op, pa.array([0], pa.int64()), value)[0].as_py() is True
    )
    parts = inner.then(partial, partial.fields)
    if not keys:
        _, found = combined.groups(parts.data.toArrow())
        passes = compare_constant(op.op, found[0], value)[0].as_py() is True
        return frame if passes else workshop.nothing(frame.fields)
    groups = tuple(each.field for each in keys)
    names = [each.column for each in groups]
    task = Task(
        groups, (Compared(combined, op.op, value, is_passing=not none_passes),), is_whole=True
    )
    found_keys = Frame(mapped(parts.data.repartition(*names), task), groups)
    on = [layout.field(each).column for each in identity]
    named = found_keys.renamed(dict(zip(names, on, strict=True)))
    return frame.joined(named, on, how="left_anti" if none_passes else "left_semi")
