"""Plans: one small method per operator, from rows to rows."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from model import aggregates, algorithms, expressions, functions, paths, search
from model.expressions import SCORE, At, Entity, Params, Row
from model.guards import SeenGraphs
from model.store import Store, Table
from omnigraph.embedding.embedder import normalize_vector
from omnigraph.errors import ExecutionError, ResourceLimitError
from omnigraph.query import logical_plan as plan
from omnigraph.query import tree_walk
from omnigraph.query import typed_tree as typed
from omnigraph.query.ast import SetOperator
from omnigraph.query.limit_binding import bind_limit, read_counts, read_limit
from omnigraph.query.typed_reads import OrderKey, edge_type_column_of
from omnigraph.schema.property_types import VectorType
from omnigraph.schema.type_sets import list_member_types

Embed = Callable[[str, int], Sequence[float]]
Arm = typed.NearestScore | typed.Bm25Score
# A node by its type and its id.
Place = tuple[str, str]
_RRF_K = 60


def _place(node: Entity) -> Place:
    return node["@type"], node["@id"]


def _combined(operator: SetOperator, left: list[Row], right: list[Row]) -> list[Row]:
    """The rows of two reads; but for `union all`, equal ones once."""

    def key(row: Row) -> tuple[Any, ...]:
        return tuple(expressions.sort_key(value) for value in row.values())

    if operator is SetOperator.UNION_ALL:
        return left + right
    others = {key(row) for row in right}
    match operator:
        case SetOperator.UNION:
            rows = left + right
        case SetOperator.INTERSECT:
            rows = [row for row in left if key(row) in others]
        case _:
            rows = [row for row in left if key(row) not in others]
    return list({key(row): row for row in reversed(rows)}.values())


class Reader:
    """One read of one graph; each operator has the public method of its name."""

    def __init__(self, graph: Store, params: Params, embed: Embed | None, work_limit: int) -> None:
        self._graph, self._params, self._embed = graph, params, embed
        self._work, self._work_limit = 0, work_limit
        self._seen = SeenGraphs(graph, params)
        self.path_work = paths.Work()

    def read(self, read: plan.ReadPlan) -> Iterable[Row]:
        """The rows of a plan."""
        return self.rows(self._bound(read).root, {})

    def read_page(self, read: plan.ReadPlan, skipped: int) -> tuple[list[Row], int]:
        """The rows of a plan after those of the pages before, and how many all pages have."""
        root = self._bound(read).root
        top = root.input if isinstance(root, plan.Project) else root
        cut = top if isinstance(top, plan.Limit) else plan.Limit(top, None)
        whole = replace(root, input=cut.input) if isinstance(root, plan.Project) else cut.input
        rows = list(self.rows(whole, {}))
        start = cut.offset if cut.after is None else skipped
        return rows[start : None if cut.count is None else start + cut.count], len(rows)

    def _bound(self, read: plan.ReadPlan) -> plan.ReadPlan:
        limit = read.open_limit
        return read if limit is None else bind_limit(read, read_limit(limit, self._params))

    def check_options(self, root: plan.Operator) -> None:
        """Refuse a bad search option, whether or not a row would meet it."""
        for operator in tree_walk.chain_of(root):
            for stage in operator.plans if isinstance(operator, plan.StageRows) else ():
                self.check_options(stage.root)
            for expr in tree_walk.expressions_of(operator):
                for part in tree_walk.iter_subexpressions(expr):
                    if isinstance(part, typed.TextMatch):
                        expressions.edits(part, self._params)
            if isinstance(operator, plan.Lateral):
                read_counts(operator.limit, operator.offset, self._params)
            if isinstance(operator, tree_walk.BLOCKS):
                self.check_options(operator.block)

    def rows(self, operator: plan.Operator, outer: Row) -> Iterable[Row]:
        """The rows of any operator; `outer` is the row around a block."""
        if isinstance(operator, plan.Unit | plan.Outer):
            return [outer]
        if isinstance(operator, plan.StageRows):
            return self._stage_rows(operator)
        method = getattr(self, type(operator).__name__.lower())
        rows: Iterable[Row] = method(operator, self.rows(operator.input, outer))
        return rows

    def _stage_rows(self, op: plan.StageRows) -> Iterator[Row]:
        found, *others = ([self._widened(op, row) for row in self.read(each)] for each in op.plans)
        for operator, more in zip(op.operators, others, strict=True):
            found = _combined(operator, found, more)
        for row in found:
            yield {each.variable: self._entity(each, row) for each in op.entities} | {
                op.variable: row
            }

    def _widened(self, op: plan.StageRows, row: Row) -> Row:
        """A row of one of several reads with values of the types that all have."""
        calls = {v.property: typed.FunctionValue("coalesce", (v,), v.type) for v in op.values}
        widened = {name: functions.apply(call, [row[name]]) for name, call in calls.items()}
        return row | widened if op.operators else row

    def _entity(self, entity: plan.StageEntity, row: Row) -> Entity | None:
        """The node or the edge whose id a row has, if it has one."""
        if not isinstance(row[entity.column], str):
            return row[entity.column]  # type: ignore[no-any-return]  # a node of several types
        tables = self._graph.edges if entity.is_edge else self._graph.nodes
        type_name = row.get(edge_type_column_of(entity.column), *entity.types[:1])
        return tables[type_name][row[entity.column]]

    def scan(self, op: plan.Scan, rows: Iterable[Row]) -> Iterator[Row]:
        for row in rows:
            for name in list_member_types(op.type_name):
                for node in self._graph.nodes[name].values():
                    found = row | {op.variable: node}
                    if self._hold(op.conditions, found):
                        yield found

    def expand(self, op: plan.Expand, rows: Iterable[Row]) -> Iterator[Row]:
        for row in rows:
            if None in (row[op.source], row.get(op.target, "")):
                continue
            start = _place(row[op.source])
            ends = self._hops(op, start) if op.edge_variable else self._reached(op, start)
            for target, edge in ends:
                if op.target_is_bound and _place(row[op.target]) != target:
                    continue
                found = row | {op.target: self._graph.nodes[target[0]][target[1]]}
                if op.edge_variable:
                    found[op.edge_variable] = edge
                if self._hold(op.conditions, found):
                    yield found

    def _reached(self, op: plan.Expand, start: Place) -> Iterator[tuple[Place, None]]:
        """Breadth first: each node at a distance within the bounds; a loop takes one hop."""
        is_chain = op.source_type == op.target_type
        seen = {start} if is_chain else set()
        frontier, hop = {start}, 0
        if op.minimum == 0:
            yield start, None
        while frontier and hop < (op.maximum if is_chain else 1):
            hop += 1
            reached = {target for node in frontier for target, _ in self._hops(op, node)}
            frontier = reached - seen
            seen |= frontier
            if hop >= op.minimum:
                loop = {start} & reached if hop == 1 == op.minimum else set()
                yield from ((target, None) for target in sorted(frontier | loop))

    def _hops(self, op: plan.Expand, start: Place) -> Iterator[tuple[Place, Entity]]:
        """Each edge at a node, with the node at its other end; a loop once."""
        for step in op.steps:
            type_ = self._graph.catalog.edges[step.edge_type]
            for edge in self._seen.list_edges(op.guards, (step.edge_type, start)):
                source, target = (type_.source, edge["@src"]), (type_.target, edge["@dst"])
                is_from = source == start and (op.is_undirected or not step.is_reversed)
                is_to = target == start and (op.is_undirected or step.is_reversed)
                self._work += op.is_selection and (is_from or is_to or type_.is_symmetric)
                if self._work > self._work_limit:
                    limit = self._work_limit
                    raise ResourceLimitError("traversal_work_limit", limit=limit, actual=self._work)
                if is_from or is_to:
                    yield target if is_from else source, edge

    def filter(self, op: plan.Filter, rows: Iterable[Row]) -> Iterable[Row]:
        return (row for row in rows if self._hold([op.condition], row))

    def exists(self, op: plan.Exists, rows: Iterable[Row]) -> Iterable[Row]:
        return (row for row in rows if any(True for _ in self.rows(op.block, row)) != op.is_negated)

    def compareblock(self, op: plan.CompareBlock, rows: Iterable[Row]) -> Iterator[Row]:
        argument = op.argument or typed.Constant(True, typed.BOOL)
        for row in rows:
            values = [self._value(argument, inner) for inner in self.rows(op.block, row)]
            found = expressions.aggregate(op.function, values)
            if expressions.compare(op.op, found, self._value(op.value, row)):
                yield row

    def lateral(self, op: plan.Lateral, rows: Iterable[Row]) -> Iterator[Row]:
        cut = read_counts(op.limit, op.offset, self._params)
        end = None if cut.count is None else cut.offset + cut.count
        nulls: Row = dict.fromkeys(tree_walk.bound_variables_of(op))
        for row in rows:
            found = self._sorted(self.rows(op.block, row), op.keys)[cut.offset : end]
            yield from found or ([row | nulls] if op.is_optional else [])

    def unnest(self, op: plan.Unnest, rows: Iterable[Row]) -> Iterator[Row]:
        for row in rows:
            for place, item in enumerate(self._value(op.items, row) or ()):
                yield row | {op.variable: item} | ({op.position: place} if op.position else {})

    def tablefunction(self, op: plan.TableFunction, rows: Iterable[Row]) -> Iterator[Row]:
        table = algorithms.table(op.call, self._seen.get(op.guards), self._params)
        for row in rows:
            for found in table:
                own = {each.name: found[each.column] for each in op.variables}
                nodes = [(own[each.name], each) for each in op.variables if each.is_node]
                is_typed = all(node["@type"] == each.type for node, each in nodes)
                if is_typed and all(row[name] is own[name] for name in op.joined):
                    yield row | own

    def extend(self, op: plan.Extend, rows: Iterable[Row]) -> Iterable[Row]:
        if isinstance(op.value, typed.ScoreValue):
            scored = self._scored(op.value.score, list(rows))
            return [row | {op.variable: score} for row, score in scored]
        return (row | {op.variable: self._value(op.value, row)} for row in rows)

    def blockcolumn(self, op: plan.BlockColumn, rows: Iterable[Row]) -> Iterator[Row]:
        for row in rows:
            found = list(self.rows(op.block, row))
            value = bool(found) if op.value is None else self._of_group(op.value, found)
            yield row | {op.variable: value}

    def pathexpand(self, op: plan.PathExpand, rows: Iterable[Row]) -> Iterator[Row]:
        for row in rows:
            for found in paths.expand(self._seen.get(op.guards), op, row, self.path_work):
                yield row | found

    def rank(self, op: plan.Rank, rows: Iterable[Row]) -> list[Row]:
        score = op.score
        if not isinstance(score, typed.RrfScore):
            scored = self._scored(score, list(rows))
            return [row | {SCORE: value} for row, value in scored if value is not None]
        variable = score.arms[0].variable
        rows = [row for row in rows if row[variable] is not None]
        nodes = {row[variable]["@id"]: row[variable] for row in rows}
        k = expressions.option(score.k, self._params, default=_RRF_K, minimum=1)
        scores = search.fuse((self._arm(arm, nodes, op.window) for arm in score.arms), k)
        ids = ((row, row[variable]["@id"]) for row in rows)
        return [row | {SCORE: scores[id_]} for row, id_ in ids if id_ in scores]

    def _scored(self, score: Arm, rows: list[Row]) -> Iterator[tuple[Row, float | None]]:
        """Each row with its score; rows with one query are scored together."""
        queries: list[Any] = []
        for row in rows:
            is_there = row[score.variable] is not None
            queries.append(self._value(score.query, row) if is_there else None)
        known: dict[Any, dict[str, float]] = {}
        for query in dict.fromkeys(queries):
            alike = (
                row[score.variable] for row, own in zip(rows, queries, strict=True) if own == query
            )
            known[query] = self._scores(score, {n["@id"]: n for n in alike if n is not None}, query)
        for row, query in zip(rows, queries, strict=True):
            node = row[score.variable]
            yield row, None if node is None else known[query].get(node["@id"])

    def _arm(self, score: Arm, nodes: Table, window: int | None) -> list[str]:
        """The ids that an arm ranks, the best first; only `nearest` keeps to the window."""
        scores = self._scores(score, nodes, self._value(score.query, {}))
        if isinstance(score, typed.Bm25Score):
            return sorted(scores, key=lambda id_: (-scores[id_], id_))
        return sorted(scores, key=lambda id_: (scores[id_], id_))[:window]

    def _scores(self, score: Arm, nodes: Table, query: Any) -> dict[str, float]:
        """The score of each node that has one, by id."""
        type_names = {node["@type"] for node in nodes.values()}
        if isinstance(score, typed.Bm25Score):
            tables = (self._graph.nodes[name].items() for name in type_names)
            field = {id_: node[score.property] for table in tables for id_, node in table}
            found = search.bm25(field, query)
            return {id_: value for id_, value in found.items() if id_ in nodes}
        if isinstance(query, str):
            query = self._embedded(score, query, type_names)
        vectors = {id_: node[score.property] for id_, node in nodes.items()}
        known = {id_: vector for id_, vector in vectors.items() if None not in (vector, query)}
        far = {id_: search.distance(score.metric, vector, query) for id_, vector in known.items()}
        return {id_: value for id_, value in far.items() if value is not None}

    def _embedded(self, score: Arm, text: str, type_names: set[str]) -> tuple[float, ...] | None:
        if self._embed is None:
            raise ExecutionError("no embedder is configured to rank by a text")
        for name in type_names:
            vector = self._graph.catalog.nodes[name].properties[score.property].type.value
            assert isinstance(vector, VectorType)
            embedding = self._embed(text, vector.dimension)
            return normalize_vector(embedding, dimension=vector.dimension)
        return None

    def sort(self, op: plan.Sort, rows: Iterable[Row]) -> list[Row]:
        return self._sorted(rows, op.keys)

    def _sorted(self, rows: Iterable[Row], keys: Iterable[OrderKey]) -> list[Row]:
        rows = list(rows)
        for key in reversed(tuple(keys)):
            rows.sort(key=partial(self._sort_key, key.value), reverse=key.is_descending)
        return rows

    def aggregate(self, op: plan.Aggregate, rows: Iterable[Row]) -> Iterator[Row]:
        keys = [c.value for c in op.columns if not isinstance(c.value, typed.AggregateValue)]
        groups: dict[tuple[Any, ...], list[Row]] = {} if keys else {(): []}
        for row in rows:
            groups.setdefault(tuple(self._sort_key(key, row) for key in keys), []).append(row)
        for group in groups.values():
            yield {column.name: self._of_group(column.value, group) for column in op.columns}

    def having(self, op: plan.Having, rows: Iterable[Row]) -> Iterable[Row]:
        return (row for row in rows if self._hold(op.conditions, row))

    def limit(self, op: plan.Limit, rows: Iterable[Row]) -> Iterable[Row]:
        return list(rows)[op.offset : op.end]

    def project(self, op: plan.Project, rows: Iterable[Row]) -> Iterable[Row]:
        return ({c.name: self._value(c.value, row) for c in op.columns} for row in rows)

    def _of_group(self, expr: typed.Expr, group: list[Row]) -> Any:
        if isinstance(expr, typed.AggregateValue):
            return aggregates.of_rows(expr, group, self._value)
        return self._value(expr, group[0])

    def _sort_key(self, expr: typed.Expr, row: Row) -> tuple[int, Any]:
        return expressions.sort_key(self._value(expr, row))

    def _value(self, expr: typed.Expr, row: Row) -> Any:
        return At(row, self._params)(expr)

    def _hold(self, conditions: Iterable[typed.Expr], row: Row) -> bool:
        return all(self._value(condition, row) is True for condition in conditions)
