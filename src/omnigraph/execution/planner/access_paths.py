"""By which way operators get at nodes and edges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from omnigraph.execution.columns import SOURCE_COLUMN, TARGET_COLUMN
from omnigraph.execution.expressions import is_constant
from omnigraph.execution.pinned import find_candidate_ids
from omnigraph.execution.planner.graph import Variable
from omnigraph.execution.pushdown import column_of, iter_conjuncts
from omnigraph.execution.reading import ExecutionContext
from omnigraph.execution.search import FieldRef, field_cache_of
from omnigraph.execution.topology import TopologySource
from omnigraph.query.ast import CompareOp
from omnigraph.query.plan import Expand, Operator, Scan
from omnigraph.query.typed import Compare, Expr, PropertyValue, SystemValue, TextMatch
from omnigraph.query.walk import iter_subexpressions
from omnigraph.schema.accepted import TypeKey, TypeKind
from omnigraph.schema.types import Scalar
from omnigraph.versioning.effects import ID_COLUMN


@dataclass(frozen=True, slots=True)
class AccessPath:
    """A way, and the index it uses, if it uses one."""

    name: str = ""
    index: str = ""


@dataclass(frozen=True, slots=True)
class AccessPaths:
    """The ways of one read."""

    context: ExecutionContext

    @property
    def is_whole(self) -> bool:
        """Whether whole types are in memory."""
        return isinstance(self.context.source, TopologySource)

    def find_operator_path(self, operator: Operator) -> AccessPath:
        """The way of an operator; those that read no type have none."""
        match operator:
            case Scan():
                return self.find_node_path(operator.type_name, operator.conditions)
            case Expand():
                return self._find_edge_path(operator)
            case _:
                return AccessPath()

    def find_start_path(self, variable: Variable) -> AccessPath:
        """The way to the nodes of a variable."""
        return self.find_node_path(variable.type_name, variable.conditions)

    def find_node_path(self, type_name: str, conditions: Iterable[Expr]) -> AccessPath:
        """The way to the nodes of a type that satisfy conditions."""
        key, known = TypeKey(TypeKind.NODE, type_name), list(iter_conjuncts(conditions))
        shape = self.context.view.get_shape(key)
        ids = find_candidate_ids(known, shape, self.context.params)
        words = self._format_indexed_texts(type_name, known)
        if self.is_whole:
            texts = [f"{type_name}.{name}" for name in _collect_equal_texts(known)]
            if ids is not None:
                return AccessPath("lookup", f"{type_name}.@id")
            if texts:
                return AccessPath("postings", texts[0])
            return AccessPath("words", words) if words else AccessPath("topology")
        if ids is not None:
            return AccessPath("lookup", self._find_index_name(key, ID_COLUMN))
        if words:
            return AccessPath("words", words)
        read = {
            column_of(part, shape)
            for condition in known
            for part in iter_subexpressions(condition)
            if isinstance(part, PropertyValue | SystemValue)
        }
        names = (
            self._find_index_name(key, column)
            for column in sorted(read - {None}, key=str)
            if column
        )
        return AccessPath("scan", ", ".join(name for name in names if name))

    def _format_indexed_texts(self, type_name: str, conditions: Iterable[Expr]) -> str:
        """The properties whose words are looked up; empty without any."""
        view = self.context.view
        names = dict.fromkeys(
            each.property
            for each in conditions
            if isinstance(each, TextMatch)
            and field_cache_of(view).can_keep_texts(FieldRef(view, type_name, each.property))
        )
        return ", ".join(f"{type_name}.{name}" for name in names)

    def _find_edge_path(self, expand: Expand) -> AccessPath:
        names = []
        for step in expand.steps:
            columns = [TARGET_COLUMN if step.is_reversed else SOURCE_COLUMN]
            if expand.is_undirected:
                columns = [SOURCE_COLUMN, TARGET_COLUMN]
            if self.is_whole:
                ways = {SOURCE_COLUMN: "out", TARGET_COLUMN: "in"}
                names += [f"{step.edge_type} {ways[column]}" for column in columns]
            else:
                key = TypeKey(TypeKind.EDGE, step.edge_type)
                names += [self._find_index_name(key, column) for column in columns]
        found = ", ".join(dict.fromkeys(name for name in names if name))
        return AccessPath("topology" if self.is_whole else "lookup", found)

    def _find_index_name(self, key: TypeKey, column: str) -> str:
        """The name of the index that serves comparisons of a column; empty without one."""
        serving = self.context.view.open_table(key).indexes
        return next((index.name for index in serving if index.column == column), "")


def _collect_equal_texts(conditions: Iterable[Expr]) -> Iterator[str]:
    for condition in conditions:
        match condition:
            case Compare(CompareOp.EQ, PropertyValue() as value, other) if is_constant(other):
                pass
            case Compare(CompareOp.EQ, other, PropertyValue() as value) if is_constant(other):
                pass
            case _:
                continue
        if value.type.scalar is Scalar.STRING:
            yield value.property
