"""Correlated blocks: run once for all rows together, and joined back by what they read of a row."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.execution.exact import compare_constant
from omnigraph.execution.expressions import evaluate_constant
from omnigraph.query.ast import AggregateFunction
from omnigraph.query.plan import CompareBlock, Exists
from omnigraph.query.typed import SystemValue
from omnigraph.query.walk import chain_of, used_variables_of
from omnigraph.spark.query.frames import Frame, FrameTask, apply_task
from omnigraph.spark.query.partials import (
    FinalAggregation,
    GroupFilter,
    GroupKey,
    PartialAggregation,
    make_measure,
)

if TYPE_CHECKING:
    from omnigraph.spark.query.pattern import PatternLowering


def filter_by_block(
    lowering: PatternLowering, op: Exists | CompareBlock, frame: Frame, live: frozenset[str]
) -> Frame:
    """The rows for which a block passes."""
    layout, workshop = lowering.builder.layout, lowering.builder
    identity = layout.identity_of(used_variables_of(op))
    if frame.scans is None:
        # Read twice: for the block, and for the rows that pass.
        frame = workshop.persist(frame)
    on = [layout.field_of(each).column for each in identity]
    outer = lowering.make_single_row()
    if identity:
        once = frame.select_columns(layout.collect_needed_columns(op))
        outer = Frame(once.data.dropDuplicates(on), once.fields, is_small=once.is_small)
    match op:
        case Exists(is_negated=is_negated):
            inner = lowering.lower_chain(chain_of(op.block)[1:], outer, frozenset(on))
            if not identity:
                is_kept = inner.data.isEmpty() == is_negated
                found = frame if is_kept else workshop.make_empty(frame.fields)
            else:
                how = "left_anti" if is_negated else "left_semi"
                found = frame.join(inner.select_columns(frozenset(on)), on, how=how)
        case CompareBlock():
            found = _compare_block(lowering, op, frame, outer, identity)
    return found.select_columns(live)


def _compare_block(
    lowering: PatternLowering,
    op: CompareBlock,
    frame: Frame,
    outer: Frame,
    identity: tuple[SystemValue, ...],
) -> Frame:
    workshop = lowering.builder
    layout, params = workshop.layout, workshop.params
    value = evaluate_constant(op.value, params)
    if value is None:
        return workshop.make_empty(frame.fields)
    needed = frozenset().union(*map(layout.collect_read_columns, identity))
    if op.argument is not None:
        needed |= layout.collect_read_columns(op.argument)
    inner = lowering.lower_chain(chain_of(op.block)[1:], outer, needed)
    keys = tuple(
        GroupKey(each, replace(layout.field_of(each), column=f"g{number}"))
        for number, each in enumerate(identity)
    )
    partial = PartialAggregation(layout, params, keys, (make_measure(op.function, op.argument, 0),))
    combined = FinalAggregation(partial)
    # Of nothing, only a count is known.
    is_count = op.function is AggregateFunction.COUNT
    none_passes = (
        is_count and compare_constant(op.op, pa.array([0], pa.int64()), value)[0].as_py() is True
    )
    parts = inner.add_step(partial, partial.fields)
    if not keys:
        _, found = combined.combine_groups(parts.data.toArrow())
        passes = compare_constant(op.op, found[0], value)[0].as_py() is True
        return frame if passes else workshop.make_empty(frame.fields)
    groups = tuple(each.field for each in keys)
    names = [each.column for each in groups]
    task = FrameTask(
        groups, (GroupFilter(combined, op.op, value, is_passing=not none_passes),), is_whole=True
    )
    found_keys = Frame(apply_task(parts.data.repartition(*names), task), groups)
    on = [layout.field_of(each).column for each in identity]
    named = found_keys.rename_columns(dict(zip(names, on, strict=True)))
    return frame.join(named, on, how="left_anti" if none_passes else "left_semi")
