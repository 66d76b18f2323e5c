"""What hangs from the variables that are enumerated, as weights of their nodes.

The matches of a tree are never enumerated: from its leaves up, each node gets the number of matches
below it, and the sums and extremes of the values in them. This is exact because a traversal without
an edge variable is a set of pairs: the number of matches of independent parts is a product, and
that of a traversal is a sum over distinct neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.execution.batch import (
    Batch,
    number_rows,
    outer_of,
)
from omnigraph.execution.execution_context import ExecutionContext
from omnigraph.execution.operators.checked_ints import (
    CheckedInts,
    Weights,
    add_at,
    choose_at,
    encode_order,
    identity_of,
    to_checked_ints,
)
from omnigraph.execution.operators.neighbour_sums import find_neighbour_extremes, sum_neighbours
from omnigraph.execution.operators.pattern_executor import run_pattern
from omnigraph.execution.operators.semi_join_operator import compare_aggregates, is_row_count
from omnigraph.execution.optimizer.factor_trees import (
    FactorBranch,
    FactorTree,
    PartialAggregate,
    PartialKind,
    build_factor_tree,
)
from omnigraph.execution.optimizer.pattern_graph import Block, Variable, build_pattern_graph
from omnigraph.execution.sources.graph_source import DenseIds, RowIndices
from omnigraph.execution.sources.topology.adjacency_lists import Adjacency
from omnigraph.execution.sources.topology.topology_edges import DenseEdges
from omnigraph.execution.sources.topology.topology_nodes import DenseNodes
from omnigraph.execution.sources.topology.topology_source import TopologySource
from omnigraph.query.logical_plan import Exists, Outer
from omnigraph.query.tree_walk import STAGES, chain_of
from omnigraph.query.typed_reads import EdgeStep
from omnigraph.query.typed_tree import Expr
from omnigraph.rows.evaluator import evaluate_constant
from omnigraph.rows.row_filter import Mask

# A sum over all edges costs this many times less for each edge than a look at single nodes.
SINGLE_FACTOR: Final = 6

# From so large a part of a type on, looking at all of it once is cheaper.
WHOLE_TYPE_FACTOR: Final = 2

# A mask, a count and what is made on the way to it.
_NODE_BYTES: Final = 24
ComputeWeights: TypeAlias = Callable[[FactorTree, DenseIds | None], Weights]

# The trees of blocks, by the identity of the block; None for a block that is none.
BlockTrees: TypeAlias = MutableMapping[int, FactorTree | None]


class Factorizer:
    """Weighs nodes for one read; what holds for a whole type is worked out once."""

    def __init__(
        self, context: ExecutionContext, source: TopologySource, trees: BlockTrees
    ) -> None:
        self._context = context
        self._source = source
        self._blocks = BlockFilter(context, self.compute_weights, trees)
        # By identity: trees and variables are parts of the plan, which outlives the read.
        self._everywhere: dict[int, Weights] = {}
        self._holding: dict[int, Mask] = {}

    def get_nodes(self, variable: Variable) -> DenseNodes:
        """The nodes of the type of a variable."""
        return self._source.get_nodes(variable.type_name)

    def find_candidates(self, variable: Variable) -> DenseIds:
        """The nodes that satisfy all that is about a variable alone, ascending."""
        nodes = self.get_nodes(variable)
        if variable.required_id is not None:
            found = self._find_by_id(variable, variable.required_id)
        elif variable.conditions:
            found = nodes.filter_nodes(variable.conditions, self._context.params)
        else:
            found = nodes.list_all()
        return found.take(self.filter_by_blocks(variable, found)) if variable.blocks else found

    def _find_by_id(self, variable: Variable, id_: Expr) -> DenseIds:
        """The node of an id, if it is there and satisfies the other conditions."""
        nodes, text = self.get_nodes(variable), evaluate_constant(id_, self._context.params)
        number = nodes.find_one(text) if isinstance(text, str) else -1
        found: DenseIds = np.array([number] if number >= 0 else [], np.int32)
        if not variable.other_conditions or number < 0:
            return found
        return found[nodes.evaluate_mask_at(variable.other_conditions, self._context.params, found)]

    def evaluate_mask(self, variable: Variable, at: DenseIds | None) -> Mask | None:
        """Which of the nodes, or of all numbers, satisfy what is about a variable alone."""
        if variable.is_free:
            return None
        known = self._holding.get(id(variable))
        if known is None:
            if at is not None and WHOLE_TYPE_FACTOR * len(at) < self.get_nodes(variable).size:
                return self._evaluate_nodes(variable, at)
            known = self._holding[id(variable)] = self._evaluate_type_mask(variable)
        return known if at is None else known.take(at)

    def _evaluate_type_mask(self, variable: Variable) -> Mask:
        nodes = self.get_nodes(variable)
        if variable.required_id is None and not variable.blocks:
            return nodes.evaluate_mask(variable.conditions, self._context.params)
        found = np.zeros(nodes.size, np.bool_)
        found[self.find_candidates(variable)] = True
        return found

    def _evaluate_nodes(self, variable: Variable, at: DenseIds) -> Mask:
        nodes = self.get_nodes(variable)
        mask = nodes.evaluate_mask_at(variable.conditions, self._context.params, at)
        for block in variable.blocks:
            kept = np.flatnonzero(mask)
            mask[kept] = self._blocks.evaluate_mask(block, variable, at.take(kept))
        return mask

    def filter_by_blocks(self, variable: Variable, at: DenseIds) -> RowIndices:
        """The places of nodes, whose conditions hold already, for which all blocks hold."""
        places: RowIndices = np.arange(len(at))
        for block in variable.blocks:
            places = places[self._blocks.evaluate_mask(block, variable, at.take(places))]
        return places

    # ---- trees ----

    def compute_weights(self, tree: FactorTree, at: DenseIds | None) -> Weights:
        """The weights of nodes, or of all numbers of the type."""
        if at is None:
            return self._compute_all_weights(tree)
        if WHOLE_TYPE_FACTOR * len(at) < self.get_nodes(tree.variable).size:
            return self._compute_tree_weights(tree, at)
        return self._compute_all_weights(tree).take(at)

    def _compute_all_weights(self, tree: FactorTree) -> Weights:
        found = self._everywhere.get(id(tree))
        if found is None:
            self._context.budget.require_memory(self.get_nodes(tree.variable).size * _NODE_BYTES)
            found = self._everywhere[id(tree)] = self._compute_tree_weights(tree, None)
        return found

    def _compute_tree_weights(self, tree: FactorTree, at: DenseIds | None) -> Weights:
        mask = self.evaluate_mask(tree.variable, at)
        if tree.is_plain:
            return Weights() if mask is None else Weights(CheckedInts(mask, 1))
        if mask is None:
            return self._compute_unconditional(tree, at)
        kept = np.flatnonzero(mask)
        if WHOLE_TYPE_FACTOR * len(kept) >= len(mask):
            return self._compute_unconditional(tree, at).apply_mask(mask)
        numbers = kept.astype(np.int32) if at is None else at.take(kept)
        return self._compute_unconditional(tree, numbers).expand_to(kept, len(mask))

    def _compute_unconditional(self, tree: FactorTree, at: DenseIds | None) -> Weights:
        found = self._compute_own_weights(tree, at)
        for branch in tree.branches:
            found = found.multiply(self._compute_branch_weights(branch, tree.variable, at))
        return found

    def _compute_own_weights(self, tree: FactorTree, at: DenseIds | None) -> Weights:
        sums: dict[PartialAggregate, CheckedInts] = {}
        extremes: dict[PartialAggregate, npt.NDArray[np.int64]] = {}
        for item in tree.items:
            column = self.get_nodes(tree.variable).get_column(item.value.property)
            nulls = column.get_nulls(at)
            match item.kind:
                case PartialKind.KNOWN:
                    # Without nulls, as many values are known as there are matches.
                    if nulls is not None:
                        sums[item] = CheckedInts(~nulls, 1)
                case PartialKind.SUM:
                    sums[item] = to_checked_ints(column, at)
                case PartialKind.MIN | PartialKind.MAX:
                    codes = encode_order(column, at)
                    if nulls is not None:
                        codes = np.where(nulls, identity_of(item), codes)
                    extremes[item] = codes
        return Weights(None, sums, extremes)

    # ---- traversals ----

    def _compute_branch_weights(
        self, branch: FactorBranch, parent: Variable, at: DenseIds | None
    ) -> Weights:
        """The weights that nodes get through one traversal."""
        self._context.budget.check_interrupts()
        link, tree = branch.link, branch.tree
        adjacency = self.get_adjacency(link.step)
        if tree.is_bare:
            degrees = adjacency.degrees if at is None else adjacency.count_neighbours(at)
            return Weights(CheckedInts(degrees, adjacency.degree_max))
        if adjacency.is_functional:
            ends = adjacency.ends if at is None else adjacency.get_only_neighbours(at)
            return self.compute_weights(tree, ends)
        edges = adjacency.edge_count
        if at is not None and self._estimate_cost(adjacency, len(at)) < edges:
            return self._pull_weights(branch, adjacency, at)
        found = self._push_weights(branch, adjacency, self._compute_all_weights(tree), parent)
        return found if at is None else found.take(at)

    def _pull_weights(self, branch: FactorBranch, adjacency: Adjacency, at: DenseIds) -> Weights:
        """From the neighbours of single nodes."""
        reached = adjacency.expand_neighbours(at)
        below = self.compute_weights(branch.tree, reached.ends)
        return self._add_weights(
            below, reached.start_indices, count=len(at), most=adjacency.degree_max
        )

    def _push_weights(
        self, branch: FactorBranch, adjacency: Adjacency, below: Weights, parent: Variable
    ) -> Weights:
        """To all nodes: from the few that matter, or over all edges."""
        budget = self._context.budget
        if below.counts is not None:
            back = self.get_adjacency(branch.link.step, is_back=True)
            few = np.flatnonzero(below.counts.values).astype(np.int32)
            is_one_each = back.is_functional and not below.sums and not below.extremes
            if is_one_each or self._estimate_cost(back, len(few)) < back.edge_count:
                count, most = self.get_nodes(parent).size, adjacency.degree_max
                return self._push_from_few(
                    below.select_nonzero(few), few, back, count=count, most=most
                )
        return below.sum_into(
            lambda amount: sum_neighbours(adjacency, amount, budget),
            lambda item, codes: find_neighbour_extremes(adjacency, item, codes, budget),
            lambda: CheckedInts(adjacency.degrees, adjacency.degree_max),
        )

    def _push_from_few(
        self, below: Weights, few: DenseIds, back: Adjacency, *, count: int, most: int
    ) -> Weights:
        """From each of a few nodes to those that its edges lead back to."""
        if back.is_functional:
            ends = back.get_only_neighbours(few)
        else:
            starts, ends = back.expand_neighbours(few)
            below = below.take(starts)
        return self._add_weights(below, ends.astype(np.int64), count=count, most=most)

    def _add_weights(self, below: Weights, places: RowIndices, *, count: int, most: int) -> Weights:
        return below.sum_into(
            lambda amount: add_at(amount, places, count, most),
            lambda item, codes: choose_at(item, codes, places, count),
            lambda: CheckedInts(np.bincount(places, minlength=count), most),
        )

    def get_adjacency(self, step: EdgeStep, *, is_back: bool = False) -> Adjacency:
        """The neighbours that the edges of a type lead to, or lead back to."""
        edges: DenseEdges = self._source.get_edges(step.edge_type)
        return edges.get_adjacency(step.is_reversed != is_back)

    def _estimate_cost(self, adjacency: Adjacency, nodes: int) -> float:
        mean = adjacency.edge_count / max(adjacency.size, 1)
        return SINGLE_FACTOR * nodes * max(mean, 1.0)


@dataclass(frozen=True, slots=True)
class BlockFilter:
    """Tests nodes by blocks, in one read."""

    context: ExecutionContext
    compute_weights: ComputeWeights
    trees: BlockTrees

    def evaluate_mask(self, block: Block, variable: Variable, at: DenseIds) -> Mask:
        """For which of the nodes a block about a variable holds."""
        if id(block) not in self.trees:
            self.trees[id(block)] = build_block_tree(block, variable)
        tree = self.trees[id(block)]
        return (
            self._run_block(block, variable, at)
            if tree is None
            else self._evaluate_factorized(block, tree, at)
        )

    def _evaluate_factorized(self, block: Block, tree: FactorTree, at: DenseIds) -> Mask:
        counts = self.compute_weights(tree, at).counts
        assert counts is not None, "a block has a traversal"
        if isinstance(block, Exists):
            mask: Mask = (counts.values == 0) if block.is_negated else (counts.values != 0)
            return mask
        numbers = pa.array(counts.values.astype(np.int64, copy=False))
        return compare_aggregates(block, numbers, self.context.params)

    def _run_block(self, block: Block, variable: Variable, at: DenseIds) -> Mask:
        rows = number_rows(Batch(len(at), {variable.name: at}))
        found = run_pattern(replace(block, input=Outer()), self.context, rows)
        mask = np.zeros(len(at), np.bool_)
        mask[outer_of(found)] = True
        return mask


def build_block_tree(block: Block, variable: Variable) -> FactorTree | None:
    """The tree of a block about one variable; None if it is not a tree, or asks for more."""
    if not isinstance(block, Exists) and not is_row_count(block):
        return None
    if any(isinstance(each, STAGES) for each in chain_of(block.block)):
        return None
    graph = build_pattern_graph(block.block)
    is_tree = (
        graph.outer == {variable.name}
        and not (graph.tests or graph.guards or graph.entangled or graph.is_selecting)
        and all(link.is_plain for link in graph.links)
        and len(graph.links) == len(graph.variables)
        and len(graph.find_components([variable.name, *graph.variables])) == 1
    )
    return build_factor_tree(graph, variable, {variable.name}) if is_tree else None
