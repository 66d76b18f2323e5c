"""The model of a graph: reads, mutations, loads and exports."""

from collections.abc import Collection, Mapping
from typing import Literal, NamedTuple

from dialects import export_text
from model import loading
from model.expressions import Entity, Params, Row
from model.reading import Embed, Reader
from model.statements import act, run
from model.store import Store, types_of
from model.validation import Batch, require_ends, validate
from omnigraph.errors import (
    ExecutionError,
)
from omnigraph.query import logical_plan as plan
from omnigraph.query import typed_tree as typed
from omnigraph.query.query_lowering import lower_query
from omnigraph.schema.catalog import EdgeType, NodeType


class Affected(NamedTuple):
    """How many entities a mutation wrote or deleted."""

    nodes: int
    edges: int

    @property
    def changed(self) -> bool:
        """Whether there is anything to commit."""
        return self != (0, 0)


class Loaded(NamedTuple):
    """How many records of each type were loaded."""

    nodes: dict[str, int]
    edges: dict[str, int]


class ModelGraph(Store):
    """A graph in memory; a write happens completely or not at all."""

    def read(
        self,
        read: plan.ReadPlan,
        params: Params,
        *,
        now: int,
        embed: Embed | None = None,
        work_limit: int = 1_000_000,
    ) -> list[Row]:
        """The rows of a read: values by column name; a bare node is its entity."""
        reader = Reader(self, {**params, typed.NOW_NAME: now}, embed, work_limit)
        reader.check_options(read.root)
        return list(reader.read(read))

    def read_page(
        self, read: plan.ReadPlan, params: Params, *, limits: tuple[int, int], skipped: int
    ) -> tuple[list[Row], int]:
        """The rows of a read after those of the pages before, and how many all pages have."""
        reader = Reader(self, params, None, limits[0])
        reader.path_work.limit = limits[1]
        reader.check_options(read.root)
        return reader.read_page(read, skipped)

    def rows_of(self, write: typed.PatternWrite, params: Params) -> list[Row]:
        """The rows that the actions of a statement read: entities by variable."""
        source = lower_query(write.source)
        assert isinstance(source, plan.ReadPlan)
        rows = []
        for found in self.read(source, params, now=params[typed.NOW_NAME]):  # type: ignore[arg-type]  # an instant
            row: Row = {}
            for column, value in found.items():
                variable, dot, name = column.partition(".")
                if dot:
                    row.setdefault(variable, {})[name] = value
                else:
                    row[variable.removeprefix("$")] = value
            rows.append(row)
        return rows

    def mutate(
        self,
        mutation: typed.Mutation,
        params: Params,
        *,
        now: int,
        records: Mapping[str, list[Entity]] | None = None,
    ) -> Affected:
        """Run the statements in order and keep the result if it is valid."""
        after = self.copy()
        batches: list[Batch] = []
        bound = {**params, typed.NOW_NAME: now}
        affected = Affected(0, 0)
        for statement in mutation.statements:
            done: list[Batch] = []
            if isinstance(statement, typed.PatternWrite):
                require_ends(after, statement.source)
                rows = after.rows_of(statement, bound)
                for action in statement.actions:
                    done += act(after, action, rows, bound)
            elif isinstance(statement, typed.RowsWrite):
                rows = [
                    {statement.variable: record} for record in (records or {})[statement.parameter]
                ]
                for each in statement.actions:
                    done += act(after, each, rows, bound)
            else:
                done = run(after, statement, bound)
            batches += done
            affected = Affected(
                affected.nodes + _count_distinct(done, NodeType),
                affected.edges + _count_distinct(done, EdgeType),
            )
        self._become(after, batches)
        return affected

    def load(
        self,
        records: str,
        *,
        mode: Literal["overwrite", "append", "merge", "patch"],
        dialect: Literal["strict", "compatible"] = "strict",
    ) -> Loaded:
        """Write the records of a text and keep the result if it is valid."""
        after = self.copy()
        return self._become(
            after, loading.load(after, records, mode, is_strict=dialect == "strict")
        )

    def _become(self, after: Store, batches: list[Batch]) -> Loaded:
        validate(self, after, batches)
        self.nodes, self.edges = after.nodes, after.edges
        counts = Loaded({}, {})
        for type_, entities in batches:
            found = counts.edges if isinstance(type_, EdgeType) else counts.nodes
            found[type_.name] = found.get(type_.name, 0) + len(entities)
        return counts

    def export(self, types: Collection[str] | None = None) -> str:
        """One line per entity, of all types or some, that a load reads back unchanged."""
        if unknown := set(types or ()) - self.nodes.keys() - self.edges.keys():
            raise ExecutionError(f"unknown type '{min(unknown)}'")
        shown = [type_ for type_ in types_of(self.catalog) if type_.name in (types or [type_.name])]
        edges_first = sorted(shown, key=lambda type_: isinstance(type_, NodeType))
        tables = [(type_, self.table(type_)) for type_ in edges_first]
        return export_text(self.catalog, tables)


def _count_distinct(batches: list[Batch], kind: type[NodeType] | type[EdgeType]) -> int:
    """How many nodes, or edges, there are in batches, however often each is."""
    return len(
        {
            (type_.name, entity["@id"])
            for type_, entities in batches
            if isinstance(type_, kind)
            for entity in entities
        }
    )
