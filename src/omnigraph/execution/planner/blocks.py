"""Blocks about one variable as conditions of its nodes.

A block that is a tree of plain traversals is weighed: that it has a row is that the weight is not
zero, and how many rows it has is the weight. Any other block is matched.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.execution.batch import Batch
from omnigraph.execution.exact import compare_constant, to_numpy
from omnigraph.execution.expressions import evaluate_constant
from omnigraph.execution.pattern import run_pattern
from omnigraph.execution.planner.amounts import Weights
from omnigraph.execution.planner.graph import Block, Variable, build_pattern_graph
from omnigraph.execution.planner.rows import number_rows
from omnigraph.execution.planner.trees import FactorTree, build_factor_tree
from omnigraph.execution.reading import ExecutionContext, Mask
from omnigraph.execution.source import DenseIds
from omnigraph.query.ast import AggregateFunction
from omnigraph.query.plan import Exists, Outer
from omnigraph.query.typed import NodeValue, SystemValue

ComputeWeights: TypeAlias = Callable[[FactorTree, DenseIds | None], Weights]
# The trees of blocks, by the identity of the block; None for a block that is none.
BlockTrees: TypeAlias = MutableMapping[int, FactorTree | None]


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
        value = evaluate_constant(block.value, self.context.params)
        if value is None:
            return np.zeros(len(at), np.bool_)
        numbers = pa.array(counts.values.astype(np.int64, copy=False))
        found: Mask = to_numpy(compare_constant(block.op, numbers, value))
        return found

    def _run_block(self, block: Block, variable: Variable, at: DenseIds) -> Mask:
        rows = number_rows(Batch(len(at), {variable.name: at}))
        found = run_pattern(replace(block, input=Outer()), self.context, rows)
        assert found.outer is not None
        mask = np.zeros(len(at), np.bool_)
        mask[found.outer] = True
        return mask


def build_block_tree(block: Block, variable: Variable) -> FactorTree | None:
    """The tree of a block about one variable; None if it is no tree, or asks for more."""
    if not isinstance(block, Exists) and not _is_count(block):
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


def _is_count(block: Block) -> bool:
    return (
        not isinstance(block, Exists)
        and block.function is AggregateFunction.COUNT
        and isinstance(block.argument, NodeValue | SystemValue | None)
    )
