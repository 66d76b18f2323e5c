"""Checks one query: its parameters, patterns, items and order."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from omnigraph.lang.diagnostics import Collector
from omnigraph.lang.lexer import Mode
from omnigraph.query import ast, typed_reads, typed_tree
from omnigraph.query.check.check_blocks import check_block_value
from omnigraph.query.check.check_context import CheckContext
from omnigraph.query.check.check_expressions import Target, check_constant, coerce_assigned
from omnigraph.query.check.check_mutations import check_mutations
from omnigraph.query.check.check_row_loops import declare_records
from omnigraph.query.check.check_search import check_predicate, check_score
from omnigraph.query.check.check_stages import check_read
from omnigraph.schema.catalog import Catalog


def check_query(
    query: ast.Query, catalog: Catalog, collector: Collector, *, mode: Mode = Mode.LENIENT
) -> typed_reads.CheckedQuery | None:
    """Resolve and type a query; None exactly if it has errors, which the collector then holds."""
    context = CheckContext(
        catalog,
        collector,
        mode,
        check_block=check_block_value,
        check_predicate=check_predicate,
        check_score=check_score,
    )
    parameters = declare_parameters(context, query.parameters)
    checked: typed_reads.CheckedQuery
    match query.body:
        case ast.ReadBody() as body:
            _refuse_records(context, query)
            read = check_read(context, body).read
            checked = replace(read, name=query.name.text, parameters=parameters)
        case ast.MutationBody(mutations):
            statements = check_mutations(context, mutations, parameters)
            records = tuple(each for each in context.records.values() if each is not None)
            checked = typed_tree.Mutation(query.name.text, parameters, statements, records)
        case _:
            assert_never(query.body)
    return None if context.errors else checked


def _refuse_records(context: CheckContext, query: ast.Query) -> None:
    for parameter in query.parameters:
        if isinstance(parameter.type, ast.RecordListType):
            message = "a list of records is for 'for $row in $rows { … }', which writes"
            context.report_error("T107", parameter.type.span, message)
            # Where it is read, it needs no second error.
            context.is_first("unbound", parameter.name.text)


def declare_parameters(
    context: CheckContext, parameters: tuple[ast.Parameter, ...]
) -> tuple[typed_tree.Parameter, ...]:
    """Check the declarations and make them known to the context."""
    for parameter in parameters:
        name = parameter.name.text
        if name in context.parameters or name in context.records:
            context.report_error(
                "T106",
                parameter.name.span,
                f"parameter '${name}' is declared twice",
                hint="remove one of them",
            )
            continue
        is_free = _is_free(context, parameter)
        if isinstance(parameter.type, ast.RecordListType):
            declare_records(context, parameter, parameter.type)
        else:
            context.parameters[name] = parameter.type if is_free else None
    # Checked when all are declared: none of them can be the default of another.
    defaults = {each.name.text: _check_default(context, each) for each in parameters}
    return tuple(
        typed_tree.Parameter(name, type_, defaults[name])
        for name, type_ in context.parameters.items()
        if type_ is not None
    )


def _check_default(context: CheckContext, parameter: ast.Parameter) -> typed_tree.Constant | None:
    if parameter.default is None or isinstance(parameter.type, ast.RecordListType):
        return None
    span = parameter.default.span
    value = check_constant(context, parameter.default)
    if value is None:
        return None
    if not isinstance(value, typed_tree.Constant):
        context.report_error("T45", span, "the default of a parameter is a literal")
        return None
    target = Target(f"${parameter.name.text}", parameter.type)
    found = coerce_assigned(context, value, target, span)
    return found if isinstance(found, typed_tree.Constant) else None


def _is_free(context: CheckContext, parameter: ast.Parameter) -> bool:
    if parameter.name.text != typed_tree.NOW_NAME:
        return True
    context.report_error(
        "T100",
        parameter.name.span,
        f"parameter '${typed_tree.NOW_NAME}' is reserved",
        hint="write now()",
    )
    return False
