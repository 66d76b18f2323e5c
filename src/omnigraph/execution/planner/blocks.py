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
from omnigraph.execution.exact import compare_constant, numpy_of
from omnigraph.execution.expressions import constant
from omnigraph.execution.pattern import run_pattern
from omnigraph.execution.planner.amounts import Weights
from omnigraph.execution.planner.graph import Block, Variable, pattern_graph
from omnigraph.execution.planner.rows import numbered
from omnigraph.execution.planner.trees import Tree, hanging_tree
from omnigraph.execution.reading import Mask, Reading
from omnigraph.execution.source import Numbers
from omnigraph.query.ast import AggregateFunction
from omnigraph.query.plan import Exists, Outer
from omnigraph.query.typed import NodeValue, SystemValue

Weigh: TypeAlias = Callable[[Tree, Numbers | None], Weights]
# The trees of blocks, by the identity of the block; None for a block that is none.
BlockTrees: TypeAlias = MutableMapping[int, Tree | None]


@dataclass(frozen=True, slots=True)
class Blocks:
    """Tests nodes by blocks, in one read."""

    reading: Reading
    weigh: Weigh
    trees: BlockTrees

    def mask(self, block: Block, variable: Variable, at: Numbers) -> Mask:
        """For which of the nodes a block about a variable holds."""
        if id(block) not in self.trees:
            self.trees[id(block)] = block_tree(block, variable)
        tree = self.trees[id(block)]
        return (
            self._matched(block, variable, at) if tree is None else self._weighed(block, tree, at)
        )

    def _weighed(self, block: Block, tree: Tree, at: Numbers) -> Mask:
        counts = self.weigh(tree, at).counts
        assert counts is not None, "a block has a traversal"
        if isinstance(block, Exists):
            mask: Mask = (counts.values == 0) if block.is_negated else (counts.values != 0)
            return mask
        value = constant(block.value, self.reading.params)
        if value is None:
            return np.zeros(len(at), np.bool_)
        numbers = pa.array(counts.values.astype(np.int64, copy=False))
        found: Mask = numpy_of(compare_constant(block.op, numbers, value))
        return found

    def _matched(self, block: Block, variable: Variable, at: Numbers) -> Mask:
        rows = numbered(Batch(len(at), {variable.name: at}))
        found = run_pattern(replace(block, input=Outer()), self.reading, rows)
        assert found.outer is not None
        mask = np.zeros(len(at), np.bool_)
        mask[found.outer] = True
        return mask


def block_tree(block: Block, variable: Variable) -> Tree | None:
    """The tree of a block about one variable; None if it is no tree, or asks for more."""
    if not isinstance(block, Exists) and not _is_count(block):
        return None
    graph = pattern_graph(block.block)
    is_tree = (
        graph.outer == {variable.name}
        and not (graph.tests or graph.guards or graph.entangled or graph.is_selecting)
        and all(link.is_plain for link in graph.links)
        and len(graph.links) == len(graph.variables)
        and len(graph.components([variable.name, *graph.variables])) == 1
    )
    return hanging_tree(graph, variable, {variable.name}) if is_tree else None


def _is_count(block: Block) -> bool:
    return (
        not isinstance(block, Exists)
        and block.function is AggregateFunction.COUNT
        and isinstance(block.argument, NodeValue | SystemValue | None)
    )
