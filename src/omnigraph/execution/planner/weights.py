"""What hangs from the variables that are enumerated, as weights of their nodes.

The matches of a tree are never enumerated: from its leaves up, each node gets the number of matches
below it, and the sums and extremes of the values in them. This is exact because a traversal without
an edge variable is a set of pairs: the number of matches of independent parts is a product, and
that of a traversal is a sum over distinct neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from omnigraph.execution.batch import Batch
from omnigraph.execution.expressions import constant
from omnigraph.execution.planner.amounts import Amount, Weights, added_at, chosen_at, nothing
from omnigraph.execution.planner.blocks import Blocks, BlockTrees
from omnigraph.execution.planner.graph import Variable
from omnigraph.execution.planner.neighbours import neighbour_extremes, neighbour_sums
from omnigraph.execution.planner.trees import Branch, Item, Kind, Tree
from omnigraph.execution.planner.values import order_codes, summed_values
from omnigraph.execution.pushdown import conjuncts
from omnigraph.execution.reading import Mask, Reading
from omnigraph.execution.source import Numbers, Places
from omnigraph.execution.topology.adjacency import Adjacency
from omnigraph.execution.topology.comparisons import compared
from omnigraph.execution.topology.edges import DenseEdges
from omnigraph.execution.topology.nodes import DenseNodes
from omnigraph.execution.topology.source import TopologySource
from omnigraph.query.typed import EdgeStep, Expr

# A sum over all edges costs this many times less for each edge than a look at single nodes.
SINGLE_FACTOR: Final = 6
# From so large a part of a type on, looking at all of it once is cheaper.
WHOLE_TYPE_FACTOR: Final = 2
# A mask, a count and what is made on the way to it.
_NODE_BYTES: Final = 24


class Weighing:
    """Weighs nodes for one read; what holds for a whole type is worked out once."""

    def __init__(self, reading: Reading, source: TopologySource, trees: BlockTrees) -> None:
        self._reading = reading
        self._source = source
        self._blocks = Blocks(reading, self.weights, trees)
        # By identity: trees and variables are parts of the plan, which outlives the read.
        self._everywhere: dict[int, Weights] = {}
        self._holding: dict[int, Mask] = {}

    def nodes(self, variable: Variable) -> DenseNodes:
        """The nodes of the type of a variable."""
        return self._source.nodes(variable.type_name)

    def candidates(self, variable: Variable) -> Numbers:
        """The nodes that satisfy all that is about a variable alone, ascending."""
        nodes = self.nodes(variable)
        if variable.given_id is not None:
            found = self._given(variable, variable.given_id)
        elif variable.conditions:
            found = nodes.where(variable.conditions, self._reading.params)
        else:
            found = nodes.all()
        return found.take(self.blocked(variable, found)) if variable.blocks else found

    def _given(self, variable: Variable, id_: Expr) -> Numbers:
        """The node of an id, if it is there and satisfies the other conditions."""
        nodes, text = self.nodes(variable), constant(id_, self._reading.params)
        number = nodes.find_one(text) if isinstance(text, str) else -1
        found: Numbers = np.array([number] if number >= 0 else [], np.int32)
        if not variable.others or number < 0:
            return found
        return found[self._satisfying(variable, variable.others, found)]

    def holds(self, variable: Variable, at: Numbers | None) -> Mask | None:
        """Which of the nodes, or of all numbers, satisfy what is about a variable alone."""
        if variable.is_free:
            return None
        known = self._holding.get(id(variable))
        if known is None:
            if at is not None and WHOLE_TYPE_FACTOR * len(at) < self.nodes(variable).size:
                return self._tested(variable, at)
            known = self._holding[id(variable)] = self._holds(variable)
        return known if at is None else known.take(at)

    def _holds(self, variable: Variable) -> Mask:
        nodes = self.nodes(variable)
        if variable.given_id is None and not variable.blocks:
            return nodes.holding(variable.conditions, self._reading.params)
        found = np.zeros(nodes.size, np.bool_)
        found[self.candidates(variable)] = True
        return found

    def _tested(self, variable: Variable, at: Numbers) -> Mask:
        mask = self._satisfying(variable, variable.conditions, at)
        for block in variable.blocks:
            kept = np.flatnonzero(mask)
            mask[kept] = self._blocks.mask(block, variable, at.take(kept))
        return mask

    def blocked(self, variable: Variable, at: Numbers) -> Places:
        """The places of nodes, whose conditions hold already, for which all blocks hold."""
        places: Places = np.arange(len(at))
        for block in variable.blocks:
            places = places[self._blocks.mask(block, variable, at.take(places))]
        return places

    def _satisfying(self, variable: Variable, conditions: Sequence[Expr], at: Numbers) -> Mask:
        found: Mask | None = None
        for condition in conjuncts(conditions):
            truth = compared(self.nodes(variable), condition, self._reading.params, at)
            if truth is None:
                truth = self._evaluated(variable, condition, at)
            found = truth if found is None else found & truth
        return np.ones(len(at), np.bool_) if found is None else found

    def _evaluated(self, variable: Variable, condition: Expr, at: Numbers) -> Mask:
        # Variables of different blocks may have the same name, and different types.
        reading = replace(self._reading, nodes_of={variable.name: variable.type_name})
        return reading.mask(Batch(len(at), {variable.name: at}), (condition,))

    # ---- trees ----

    def weights(self, tree: Tree, at: Numbers | None) -> Weights:
        """The weights of nodes, or of all numbers of the type."""
        if at is None:
            return self._of_all(tree)
        if WHOLE_TYPE_FACTOR * len(at) < self.nodes(tree.variable).size:
            return self._of(tree, at)
        return self._of_all(tree).take(at)

    def _of_all(self, tree: Tree) -> Weights:
        found = self._everywhere.get(id(tree))
        if found is None:
            self._reading.budget.require(self.nodes(tree.variable).size * _NODE_BYTES)
            found = self._everywhere[id(tree)] = self._of(tree, None)
        return found

    def _of(self, tree: Tree, at: Numbers | None) -> Weights:
        mask = self.holds(tree.variable, at)
        if tree.is_plain:
            return Weights() if mask is None else Weights(Amount(mask, 1))
        if mask is None:
            return self._unconditional(tree, at)
        kept = np.flatnonzero(mask)
        if WHOLE_TYPE_FACTOR * len(kept) >= len(mask):
            return self._unconditional(tree, at).where(mask)
        numbers = kept.astype(np.int32) if at is None else at.take(kept)
        return self._unconditional(tree, numbers).scattered(kept, len(mask))

    def _unconditional(self, tree: Tree, at: Numbers | None) -> Weights:
        found = self._own(tree, at)
        for branch in tree.branches:
            found = found.times(self._below(branch, tree.variable, at))
        return found

    def _own(self, tree: Tree, at: Numbers | None) -> Weights:
        sums: dict[Item, Amount] = {}
        extremes: dict[Item, npt.NDArray[np.int64]] = {}
        for item in tree.items:
            column = self.nodes(tree.variable).column(item.value.property)
            nulls = column.nulls_at(at)
            match item.kind:
                case Kind.KNOWN:
                    # Without nulls, as many values are known as there are matches.
                    if nulls is not None:
                        sums[item] = Amount(~nulls, 1)
                case Kind.SUM:
                    sums[item] = summed_values(column, at)
                case Kind.MIN | Kind.MAX:
                    codes = order_codes(column, at)
                    if nulls is not None:
                        codes = np.where(nulls, nothing(item), codes)
                    extremes[item] = codes
        return Weights(None, sums, extremes)

    # ---- traversals ----

    def _below(self, branch: Branch, parent: Variable, at: Numbers | None) -> Weights:
        """The weights that nodes get through one traversal."""
        self._reading.budget.check()
        link, tree = branch.link, branch.tree
        adjacency = self.adjacency(link.step)
        if tree.is_bare:
            degrees = adjacency.degrees if at is None else adjacency.degrees_at(at)
            return Weights(Amount(degrees, adjacency.degree_max))
        if adjacency.is_functional:
            ends = adjacency.ends if at is None else adjacency.only_ends(at)
            return self.weights(tree, ends)
        edges = adjacency.edge_count
        if at is not None and self._cost(adjacency, len(at)) < edges:
            return self._pulled(branch, adjacency, at)
        found = self._spread(branch, adjacency, self._of_all(tree), parent)
        return found if at is None else found.take(at)

    def _pulled(self, branch: Branch, adjacency: Adjacency, at: Numbers) -> Weights:
        """From the neighbours of single nodes."""
        reached = adjacency.reach(at)
        below = self.weights(branch.tree, reached.ends)
        return self._added(below, reached.places, count=len(at), most=adjacency.degree_max)

    def _spread(
        self, branch: Branch, adjacency: Adjacency, below: Weights, parent: Variable
    ) -> Weights:
        """To all nodes: from the few that matter, or over all edges."""
        budget = self._reading.budget
        if below.counts is not None:
            back = self.adjacency(branch.link.step, is_back=True)
            few = np.flatnonzero(below.counts.values).astype(np.int32)
            is_one_each = back.is_functional and not below.sums and not below.extremes
            if is_one_each or self._cost(back, len(few)) < back.edge_count:
                count, most = self.nodes(parent).size, adjacency.degree_max
                return self._scattered(below.nonzero(few), few, back, count=count, most=most)
        return below.summed(
            lambda amount: neighbour_sums(adjacency, amount, budget),
            lambda item, codes: neighbour_extremes(adjacency, item, codes, budget),
            lambda: Amount(adjacency.degrees, adjacency.degree_max),
        )

    def _scattered(
        self, below: Weights, few: Numbers, back: Adjacency, *, count: int, most: int
    ) -> Weights:
        """From each of a few nodes to those that its edges lead back to."""
        if back.is_functional:
            ends = back.only_ends(few)
        else:
            starts, ends = back.reach(few)
            below = below.take(starts)
        return self._added(below, ends.astype(np.int64), count=count, most=most)

    def _added(self, below: Weights, places: Places, *, count: int, most: int) -> Weights:
        return below.summed(
            lambda amount: added_at(amount, places, count, most),
            lambda item, codes: chosen_at(item, codes, places, count),
            lambda: Amount(np.bincount(places, minlength=count), most),
        )

    def adjacency(self, step: EdgeStep, *, is_back: bool = False) -> Adjacency:
        """The neighbours that the edges of a type lead to, or lead back to."""
        edges: DenseEdges = self._source.edges(step.edge_type)
        return edges.adjacency(step.is_reversed != is_back)

    def _cost(self, adjacency: Adjacency, nodes: int) -> float:
        mean = adjacency.edge_count / max(adjacency.size, 1)
        return SINGLE_FACTOR * nodes * max(mean, 1.0)
