"""Traversals as joins: with edges, with pairs of neighbours, or hop by hop with pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.query.logical_plan import Expand
from omnigraph.query.typed_reads import EdgeStep
from omnigraph.query.typed_tree import SystemName
from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.spark.query.column_layout import Field
from omnigraph.spark.query.query_frames import Frame
from omnigraph.spark.query.table_scans import ScanOutput, split_conditions
from omnigraph.versioning.effects import ID_COLUMN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from omnigraph.spark.query.pattern_lowering import PatternLowering

# Pairs on the way: where a path started, where it is, and where the next hop leads.
_START = Field("s", pa.utf8())
_NODE = Field("n", pa.utf8())
_NEXT = Field("t", pa.utf8())


def expand_frame(
    lowering: PatternLowering, op: Expand, frame: Frame, live: frozenset[str]
) -> Frame:
    """Each row with each match of a traversal, or those that have a match."""
    return _Expansion(lowering, op, live).expand(frame)


@dataclass(frozen=True)
class _EdgeDirection:
    """The edges of one step, walked in one direction."""

    step: EdgeStep
    is_reversed: bool
    # The other direction of an undirected step, which must not give a loop again.
    is_return: bool = False

    @property
    def key(self) -> TypeKey:
        return TypeKey(TypeKind.EDGE, self.step.edge_type)

    def map_ends(self, start: str, end: str) -> tuple[tuple[str, str], tuple[str, str]]:
        """The columns of where an edge is entered and left."""
        first, last = SOURCE_COLUMN, TARGET_COLUMN
        if self.is_reversed:
            first, last = last, first
        return (start, first), (end, last)


@dataclass(frozen=True)
class _Expansion:
    lowering: PatternLowering
    op: Expand
    live: frozenset[str]

    @property
    def _source(self) -> Field:
        return self.lowering.builder.layout.variables[self.op.source].system[SystemName.ID]

    @property
    def _target(self) -> Field:
        return self.lowering.builder.layout.variables[self.op.target].system[SystemName.ID]

    @property
    def _is_symmetric(self) -> bool:
        return self.op.source_type == self.op.target_type

    @property
    def _maximum(self) -> int:
        # Between two types there is nothing after the first hop.
        return self.op.maximum if self._is_symmetric else 1

    @property
    def _is_single(self) -> bool:
        """Whether every match is one hop."""
        return self._maximum == 1 <= self.op.minimum

    def expand(self, frame: Frame) -> Frame:
        op, workshop = self.op, self.lowering.builder
        own, others = split_conditions(op.conditions, op.target)
        if op.target_is_bound:
            own, others = (), op.conditions
        wanted = self.live.union(*map(workshop.layout.collect_read_columns, others))
        if op.is_selection or not self._is_single or self._needs_frontier(frame):
            frame = workshop.persist(frame)
        if op.target_is_bound:
            found = self._close_rows(frame)
        else:
            found = self._find_matches(frame)
            if not self._is_from_everywhere(frame):
                found = frame.join(found, [self._source.column])
            columns = {each.column for each in workshop.layout.variables[op.target].fields}
            # Every end of an edge is there: nodes are only asked for what edges do not know.
            if own or columns & wanted - {self._target.column}:
                nodes = self.lowering.scan_nodes(op.target, own, wanted, is_partner=True)
                found = found.select_columns(wanted | {self._target.column})
                found = found.join(nodes, [self._target.column])
        return workshop.filter_rows(found.select_columns(wanted), others).select_columns(self.live)

    def _close_rows(self, frame: Frame) -> Frame:
        """The rows whose ends a traversal connects."""
        matches, on = self._find_matches(frame), [self._source.column, self._target.column]
        if self.op.source == self.op.target:
            loops = matches.data.where(f"{self._source.column} = {_NEXT.column}")
            fields = tuple(each for each in matches.fields if each != _NEXT)
            matches = Frame(loops.drop(_NEXT.column), fields, is_small=matches.is_small)
            on = on[:1]
        how = "left_semi" if self.op.edge_variable is None else "inner"
        return frame.join(matches, on, how=how)

    def _is_from_everywhere(self, frame: Frame) -> bool:
        """Whether rows are all nodes that edges start at: of those, the edges know as much."""
        is_one_hop = self.op.minimum == self._maximum == 1
        return is_one_hop and frame.is_unrestricted and frame.fields == (self._source,)

    # ---- matches ----

    def _find_matches(self, frame: Frame) -> Frame:
        """What is reached from the sources of rows: source, target, and columns of the edge."""
        op, workshop = self.op, self.lowering.builder
        # A traversal from a variable to itself has two ends all the same.
        end = _NEXT if op.source == op.target else self._target
        fields = [self._source, end, *self._list_edge_fields()]
        if (not op.steps and op.minimum) or op.minimum > self._maximum:
            return workshop.make_empty(fields)
        if self._is_single:
            if op.is_selection:
                self._count_work(frame.data.select(self._source.column))
            joined = end if self._is_from_everywhere(frame) else self._source
            nodes = self._collect_frontier(frame, self._source.column)
            return self._scan_edges(fields, nodes, by=joined.column)
        return self._expand_hops(frame, end)

    def _list_edge_fields(self) -> list[Field]:
        if self.op.edge_variable is None:
            return []
        variable = self.lowering.builder.layout.variables[self.op.edge_variable]
        return [each for each in variable.fields if each.column in self.live]

    def _needs_frontier(self, frame: Frame) -> bool:
        """Whether it is worth knowing where a hop starts before edges are read."""
        pins = self.lowering.view.snapshot.pins
        rows = sum(pins[str(way.key)].rows for way in self._iter_directions())
        return rows > self.lowering.builder.thresholds.small_rows and not frame.is_unrestricted

    def _collect_frontier(self, frame: Frame, column: str) -> pa.Array | None:
        """The nodes where a hop starts, if that is all that has to be read of many edges."""
        if not self._needs_frontier(frame):
            return None
        most = self.lowering.builder.thresholds.frontier_max
        distinct = frame.data.select(column).distinct().limit(most + 1)
        nodes = distinct.toArrow().column(0).combine_chunks().cast(pa.utf8())
        return None if len(nodes) > most else nodes

    def _scan_edges(
        self, fields: Sequence[Field], frontier: pa.Array | None = None, *, by: str | None = None
    ) -> Frame:
        """One hop: every edge if it is bound, else every pair of neighbours once.

        With a frontier, only those that start there. `by` is a column to join them by, if any.
        """
        op, lowering = self.op, self.lowering
        start, end = fields[0].column, fields[1].column
        conditions = lowering.edge_conditions.get(op.edge_variable or "", ())
        scans = []
        for way in self._iter_directions():
            columns: tuple[tuple[str, str], ...] = way.map_ends(start, end)
            constants: tuple[tuple[str, str], ...] = ()
            if op.edge_variable is not None:
                variable = lowering.builder.layout.variables[op.edge_variable]
                more, constants = lowering.map_edge_columns(variable, way.key, fields[2:])
                columns = (*columns, *more)
            output = ScanOutput(columns, constants, excludes_loops=self._is_repeated_edge(way))
            scan = lowering.build_table_scan(way.key, conditions, [output])
            if frontier is not None:
                scan = replace(scan, value_filter=(way.map_ends(start, end)[0][1], frontier))
            scans.append(scan)
        is_distinct = op.edge_variable is None and not op.target_is_bound
        return lowering.builder.scan_join_side(scans, fields, is_distinct=is_distinct, by=by)

    def _is_repeated_edge(self, way: _EdgeDirection) -> bool:
        return way.is_return and self.op.edge_variable is not None

    def _iter_directions(self) -> Iterator[_EdgeDirection]:
        for step in self.op.steps:
            yield _EdgeDirection(step, step.is_reversed)
            if self.op.is_undirected:
                yield _EdgeDirection(step, not step.is_reversed, is_return=True)

    # ---- several hops ----

    def _expand_hops(self, frame: Frame, end: Field) -> Frame:
        """The nodes within the bounds of each source, by shortest distance."""
        op, workshop = self.op, self.lowering.builder
        source = self._source.column
        whole: Frame | None = None
        data = frame.data.selectExpr(f"{source} as s", f"{source} as n").distinct()
        frontier = seen = Frame(data, (_START, _NODE))
        kept: list[Frame] = [] if op.minimum else [seen]
        passable = self._scan_passable()
        # Without an edge to walk there are no hops, but the starts.
        maximum = self._maximum if op.steps else 0
        for hop in range(1, maximum + 1):
            self.lowering.budget.check_interrupts()
            if op.is_selection:
                self._count_work(_join_starts(frame, frontier, source))
            pairs, whole = self._scan_pairs(frontier, whole)
            # What was at `t` is where the next hop is.
            found = frontier.join(pairs, ["n"]).select_columns(frozenset("st"))
            if passable is not None:
                found = found.join(passable, ["t"], how="left_semi")
            reached = found.rename_columns({"t": "n"}).deduplicate()
            if hop == 1 and op.minimum == 1:
                kept.append(Frame(reached.data.where("s = n"), reached.fields))
            fresh = workshop.persist(reached.join(seen, ["s", "n"], how="left_anti"))
            if hop >= op.minimum:
                kept.append(fresh)
            if hop == maximum or fresh.data.isEmpty():
                break
            seen = Frame(seen.data.unionByName(fresh.data), seen.fields)
            frontier = fresh
        if not kept:
            return workshop.make_empty([self._source, end])
        together = kept[0].data
        for each in kept[1:]:
            together = together.unionByName(each.data)
        named = together.selectExpr(f"s as {source}", f"n as {end.column}")
        return Frame(named, (self._source, end))

    def _scan_passable(self) -> Frame | None:
        """The nodes that guards leave, which alone may be passed; None if that is all of them."""
        own = [each for each in self.op.guards if each.type_name == self.op.target_type]
        if not own:
            return None
        output = ScanOutput(((_NEXT.column, ID_COLUMN),))
        key = TypeKey(TypeKind.NODE, self.op.target_type)
        scan = self.lowering.build_table_scan(key, (own[0].condition,), [output])
        return self.lowering.builder.scan_join_side([scan], [_NEXT])

    def _scan_pairs(self, frontier: Frame, whole: Frame | None) -> tuple[Frame, Frame | None]:
        """The pairs of neighbours of a hop, and all of them as soon as a hop needed all."""
        if whole is not None:
            return whole, whole
        nodes = self._collect_frontier(frontier, _NODE.column)
        if nodes is not None:
            return self._scan_edges([_NODE, _NEXT], nodes), None
        pairs = self._scan_edges([_NODE, _NEXT])
        if pairs.scans is not None or not pairs.is_small:
            pairs = self.lowering.builder.persist(pairs)
        return pairs, pairs

    # ---- work ----

    def _count_work(self, nodes: DataFrame) -> None:
        """Count the edges at nodes, which are in the first column, on either side."""
        (column,) = nodes.columns
        scans = []
        for step in self.op.steps:
            way = _EdgeDirection(step, step.is_reversed)
            (entered, left) = way.map_ends(column, column)
            outputs = [ScanOutput((entered,))]
            if self._is_symmetric:
                outputs.append(ScanOutput((left,), excludes_loops=True))
            scans.append(self.lowering.build_table_scan(way.key, (), outputs))
        if scans:
            ends = self.lowering.builder.scan_join_side(scans, [Field(column, pa.utf8())])
            self.lowering.budget.spend_work(nodes.join(ends.hinted, column).count())


def _join_starts(frame: Frame, frontier: Frame, source: str) -> DataFrame:
    """Where the paths of each row are, as often as there are rows."""
    starts = frame.data.selectExpr(f"{source} as s")
    return starts.join(frontier.data, "s").select("n")
