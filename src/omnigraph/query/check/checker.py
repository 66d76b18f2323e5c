"""The whole check of one query."""

from __future__ import annotations

from typing import assert_never

from omnigraph.diagnostics import Collector
from omnigraph.query import ast, typed
from omnigraph.query.check.context import CheckContext
from omnigraph.query.check.mutations import check_mutations
from omnigraph.query.check.ordering import check_order
from omnigraph.query.check.parameters import declare_parameters
from omnigraph.query.check.patterns import check_pattern
from omnigraph.query.check.returns import check_items
from omnigraph.schema.catalog import Catalog
from omnigraph.syntax import Mode


def check_query(
    query: ast.Query, catalog: Catalog, collector: Collector, *, mode: Mode = Mode.LENIENT
) -> typed.CheckedQuery | None:
    """Resolve and type a query; None exactly if it has errors, which the collector then holds."""
    context = CheckContext(catalog, collector, mode)
    parameters = declare_parameters(context, query.parameters)
    checked: typed.CheckedQuery
    match query.body:
        case ast.ReadBody() as body:
            checked = _check_read(context, query.name.text, parameters, body)
        case ast.MutationBody(mutations):
            statements = check_mutations(context, mutations)
            checked = typed.Mutation(query.name.text, parameters, statements)
        case _:
            assert_never(query.body)
    return None if context.errors else checked


def _check_read(
    context: CheckContext, name: str, parameters: tuple[typed.Parameter, ...], body: ast.ReadBody
) -> typed.Read:
    pattern, scope = check_pattern(context, body.clauses)
    items = check_items(context, scope, body.projections)
    order = check_order(context, scope, body, items)
    return typed.Read(
        name=name,
        parameters=parameters,
        pattern=pattern,
        columns=items.build_columns(),
        is_aggregated=items.is_aggregated,
        rank=order.rank,
        order=order.keys,
        limit=body.limit,
    )
