"""Calls of table functions: their options, and the variables for their columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from omnigraph.lang.quoting import sanitize_text
from omnigraph.lang.source_text import Span
from omnigraph.query import ast, typed_reads, typed_tree
from omnigraph.query.check.check_context import CheckContext
from omnigraph.query.check.check_expressions import LeafRules, Refusal, check_expression, leaf_of
from omnigraph.query.check.check_literals import coerce_literal, is_empty_list
from omnigraph.query.check.check_values import bind_value
from omnigraph.query.check.variable_scope import (
    ANONYMOUS,
    EdgeVariable,
    NodeVariable,
    Scope,
    ValueVariable,
    check_new_name,
    refuse_edge,
)
from omnigraph.query.table_functions import (
    EDGES_OPTION,
    NODES_OPTION,
    TABLE_SIGNATURES,
    WEIGHT_OPTION,
    ColumnKind,
    OptionKind,
    TableFunction,
    TableOption,
    TableSignature,
)
from omnigraph.query.tree_walk import variables_of
from omnigraph.query.typed_table_calls import TableCall, TableEdges, TableVariable
from omnigraph.schema.catalog import EdgeType
from omnigraph.schema.property_types import (
    INTEGERS,
    NUMERIC,
    ListType,
    PropertyType,
    Scalar,
)
from omnigraph.schema.type_sets import is_type_set

_OPTION = LeafRules(
    word=Refusal("T126", "is not a value here", "quote a text"),
    aggregate=Refusal("T126", "an aggregate cannot be an option"),
    predicate=Refusal("T126", "a search predicate cannot be an option"),
    rank=Refusal("T126", "a rank call cannot be an option"),
)
_SCALARS = {
    OptionKind.NUMBER: NUMERIC,
    OptionKind.INTEGER: INTEGERS,
    OptionKind.FLAG: frozenset({Scalar.BOOL}),
    OptionKind.WORD: frozenset({Scalar.STRING}),
}
_TYPES = {
    ColumnKind.TEXT: typed_tree.STRING,
    ColumnKind.INTEGER: typed_tree.I64,
    ColumnKind.FLOAT: typed_tree.F64,
}
# The types of what an option is where it is left out.
_DEFAULT_TYPES = {
    OptionKind.NUMBER: typed_tree.F64,
    OptionKind.INTEGER: typed_tree.I64,
    OptionKind.FLAG: typed_tree.BOOL,
    OptionKind.WORD: typed_tree.STRING,
    OptionKind.IDS: PropertyType(ListType(Scalar.STRING)),
}
_NAMES_MAX = 6


def check_for_table(
    context: CheckContext, scope: Scope, clause: ast.ForTable
) -> typed_reads.ForTable | None:
    """`for $a, $s in pagerank(…)`: a node that is bound already joins, all else is new."""
    errors_before = context.errors
    call = _check_call(context, scope, clause.call)
    signature = _find_signature(clause.call)
    if signature is not None and len(clause.variables) > len(signature.columns):
        names = ", ".join(each.name for each in signature.columns)
        span = clause.variables[len(signature.columns)].span
        message = f"{signature.name} has {len(signature.columns)} columns: {names}"
        context.report_error("T126", span, message)
    _refuse_repeats(context, signature, clause.variables)
    variables: list[TableVariable] = []
    joined: list[str] = []
    for place, variable in enumerate(clause.variables):
        type_: str | PropertyType | None
        kind = _find_kind(signature, place)
        if variable.name == ANONYMOUS:
            continue
        if kind is ColumnKind.NODE:
            is_joined, type_ = _bind_node(context, scope, variable, call)
            joined += [variable.name] if is_joined else []
        else:
            type_ = _bind_column(context, scope, variable, (kind, call))
        if type_ is not None:
            variables.append(TableVariable(place, variable.name, type_))
    if call is None or context.errors > errors_before:
        return None
    return typed_reads.ForTable(call, tuple(variables), tuple(joined))


def _find_signature(call: ast.TableCall) -> TableSignature | None:
    name = call.function.text
    return TABLE_SIGNATURES[TableFunction(name)] if name in set(TableFunction) else None


def _find_kind(signature: TableSignature | None, place: int) -> ColumnKind | None:
    if place == 0:
        return ColumnKind.NODE
    if signature is None or place >= len(signature.columns):
        return None
    return signature.columns[place].kind


# ---- variables ----


def _refuse_repeats(
    context: CheckContext, signature: TableSignature | None, variables: Iterable[ast.Variable]
) -> None:
    """Report a variable for two columns of nodes: it is not bound already, as one that joins is."""
    seen: set[str] = set()
    for place, each in enumerate(variables):
        if _find_kind(signature, place) is not ColumnKind.NODE or each.name == ANONYMOUS:
            continue
        if each.name in seen:
            message = f"'${each.name}' stands for two columns"
            hint = "give each a name of its own, and compare their '@id'"
            context.report_error("T101", each.span, message, hint=hint)
        seen.add(each.name)


def _bind_node(
    context: CheckContext, scope: Scope, variable: ast.Variable, call: TableCall | None
) -> tuple[bool, str | None]:
    """Whether the variable is bound already, and the type of its nodes."""
    name = variable.name
    match scope.find(name):
        case NodeVariable(_, type_name):
            _require_member(context, variable, type_name, call)
            return True, type_name
        case EdgeVariable():
            refuse_edge(context, variable, "be a node of a table")
            return True, None
        case ValueVariable():
            context.report_error("T101", variable.span, f"'${name}' is already a value")
            return True, None
        case _:
            pass
    check_new_name(context, variable)
    type_name = scope.declared.get(name)
    if name not in scope.declared and call is not None:
        type_name = _find_only_type(context, variable, call)
    _require_member(context, variable, type_name, call)
    scope.bind(NodeVariable(name, type_name))
    # Like those of a lateral block, it comes with a step of its own, and is not scanned.
    scope.exported[name] = name in scope.declared
    return False, type_name


def _find_only_type(context: CheckContext, variable: ast.Variable, call: TableCall) -> str | None:
    if len(call.node_types) == 1:
        return call.node_types[0]
    types = _format_names(call.node_types, "or") or "of no type"
    context.report_error(
        "T126",
        variable.span,
        f"the nodes of {call.function} are {types}, and '${variable.name}' has one type",
        hint=f"declare it before: ${variable.name}: Type; or select one type with nodes:",
    )
    return None


def _require_member(
    context: CheckContext, variable: ast.Variable, type_name: str | None, call: TableCall | None
) -> None:
    if type_name is None or call is None or type_name in call.node_types:
        return
    if is_type_set(type_name):
        message = f"a node of a table has one type, and '${variable.name}' is of {type_name}"
        context.report_error("T126", variable.span, message, hint="bind one type")
        return
    types = _format_names(call.node_types, "or") or "of no type"
    message = f"'${variable.name}' is a {type_name}, but the nodes of {call.function} are {types}"
    context.report_error("T126", variable.span, message)


def _bind_column(
    context: CheckContext,
    scope: Scope,
    variable: ast.Variable,
    column: tuple[ColumnKind | None, TableCall | None],
) -> PropertyType | None:
    kind, call = column
    type_: PropertyType | None = None
    if kind is ColumnKind.LENGTH and call is not None:
        type_ = typed_tree.I64 if call.weight is None else typed_tree.F64
    elif kind is not None:
        type_ = _TYPES.get(kind)
    context.value_variables.add(variable.name)
    value = None if type_ is None else typed_tree.BoundValue(variable.name, type_)
    return type_ if bind_value(context, scope, variable, value) else None


# ---- calls ----


def _check_call(context: CheckContext, scope: Scope, call: ast.TableCall) -> TableCall | None:
    errors_before = context.errors
    signature = _find_signature(call)
    if signature is None:
        name = call.function.text
        hint = context.suggest_similar(name, map(str, TableFunction))
        message = f"there is no table function '{sanitize_text(name)}'"
        context.report_error("T111", call.function.span, message, hint=hint)
        return None
    given = _collect_arguments(context, signature, call)
    edges = _check_edges(context, given, call)
    types = _check_nodes(context, given, edges)
    selected = _select_edges(context, given, edges, types)
    weight = _check_weight(context, given, selected)
    values = [
        _check_option(context, scope, each, (given.get(each.name), call.span))
        for each in signature.options
    ]
    if context.errors > errors_before:
        return None
    return TableCall(
        TableFunction(signature.name),
        tuple(sorted(types)),
        tuple(dict.fromkeys(selected)),
        weight,
        tuple(each.name for each in signature.options),
        tuple(each for each in values if each is not None),
    )


_Arguments = dict[str, ast.TableArgument]


def _collect_arguments(
    context: CheckContext, signature: TableSignature, call: ast.TableCall
) -> _Arguments:
    given: _Arguments = {}
    for each in call.arguments:
        name = each.name.text
        if name not in signature.option_names:
            known = ", ".join(signature.option_names)
            hint = context.suggest_similar(name, signature.option_names)
            message = f"{signature.name} has no option '{name}'; it has {known}"
            context.report_error("T111", each.name.span, message, hint=hint)
        elif name in given:
            context.report_error("T126", each.name.span, f"{name}: is given twice")
        else:
            given[name] = each
    return given


# ---- edges and nodes ----


_Member = tuple[ast.EdgeMember, EdgeType]


def _check_edges(context: CheckContext, given: _Arguments, call: ast.TableCall) -> list[_Member]:
    """The edge types of each member; those of `*` are all that there are."""
    argument = given.get(EDGES_OPTION)
    if argument is None:
        context.report_error(
            "T126", call.span, "edges: is missing", hint="name the edges, or write edges: *"
        )
        return []
    assert isinstance(argument.value, ast.EdgeSelection)
    found: list[_Member] = []
    for member in argument.value.members:
        if member.is_any:
            found += ((member, edge) for edge in context.catalog.edges.values())
        elif (edge := context.catalog.find_edge(member.text)) is not None:
            found.append((member, edge))
        else:
            names = (name[:1].lower() + name[1:] for name in context.catalog.edges)
            hint = context.suggest_similar(member.text, names)
            message = f"unknown edge type '{sanitize_text(member.text)}'"
            context.report_error("T4", member.span, message, hint=hint)
    return found


def _check_nodes(
    context: CheckContext, given: _Arguments, edges: Iterable[_Member]
) -> frozenset[str]:
    """The node types that are named, those of all named interfaces, or else the ends of edges."""
    argument = given.get(NODES_OPTION)
    if argument is None:
        return frozenset(end for _, edge in edges for end in (edge.source, edge.target))
    assert isinstance(argument.value, ast.NodeSelection)
    nodes = context.catalog.nodes
    if not argument.value.names:
        return frozenset(nodes)
    found: set[str] = set()
    for name in argument.value.names:
        if name.text in context.catalog.interfaces:
            found |= {each.name for each in nodes.values() if name.text in each.implements}
        elif name.text in nodes:
            found.add(name.text)
        else:
            hint = context.suggest_similar(name.text, (*nodes, *context.catalog.interfaces))
            context.report_error("T1", name.span, f"unknown node type '{name.text}'", hint=hint)
    return frozenset(found)


def _select_edges(
    context: CheckContext, given: _Arguments, edges: Iterable[_Member], types: frozenset[str]
) -> list[TableEdges]:
    """The edges between nodes of the types; all that are named have to be."""
    found: list[TableEdges] = []
    for member, edge in edges:
        missing = [end for end in (edge.source, edge.target) if end not in types]
        if not missing:
            found.append(TableEdges(edge.name, member.way))
        elif not member.is_any and types:
            assert NODES_OPTION in given
            message = f"{edge.name} joins {edge.source} and {edge.target}"
            hint = "the graph has the edges between nodes of nodes:; without it, all their ends"
            text = f"{message}, but nodes: has no {missing[0]}"
            context.report_error("T126", member.span, text, hint=hint)
    return found


def _check_weight(
    context: CheckContext, given: _Arguments, edges: Sequence[TableEdges]
) -> str | None:
    argument = given.get(WEIGHT_OPTION)
    if argument is None:
        return None
    if not isinstance(argument.value, ast.Identifier):
        message = "weight: is the name of a property of the edges"
        context.report_error("T126", argument.span, message)
        return None
    name = argument.value.name
    for each in edges:
        edge = context.catalog.edges[each.edge_type]
        known = edge.properties.get(name)
        if known is None:
            hint = context.suggest_similar(name, edge.properties)
            message = f"{edge.name} has no property '{name}' to weigh its edges by"
            context.report_error("T126", argument.value.span, message, hint=hint)
            return None
        if known.type.scalar not in NUMERIC:
            message = f"weight: needs a number, but '{name}' of {edge.name} is {known.type}"
            context.report_error("T126", argument.value.span, message)
            return None
    return name


# ---- other options ----


def _check_option(
    context: CheckContext,
    scope: Scope,
    option: TableOption,
    given: tuple[ast.TableArgument | None, Span],
) -> typed_tree.Expr | None:
    argument, call_span = given
    if argument is None:
        if option.is_required:
            context.report_error("T126", call_span, f"{option.name}: is missing")
            return None
        type_ = _DEFAULT_TYPES[option.kind].as_nullable(option.default is None)
        return typed_tree.Constant(option.default, type_)
    assert not isinstance(argument.value, ast.NodeSelection | ast.EdgeSelection)
    value = check_expression(context, argument.value, leaf_of(context, scope, _OPTION))
    if value is None:
        return None
    span = argument.value.span
    if variables_of(value):
        message = f"{option.name}: cannot read a row; options are literals and parameters"
        context.report_error("T126", span, message)
        return None
    return _fit_value(context, option, value, span)


def _fit_value(
    context: CheckContext, option: TableOption, value: typed_tree.Expr, span: Span
) -> typed_tree.Expr | None:
    is_null = isinstance(value, typed_tree.Constant) and value.value is None
    if not is_null and not _is_of_kind(value, option.kind):
        message = f"{option.name}: is {option.kind.value}, got {value.type}"
        context.report_error("T126", span, message)
        return None
    if isinstance(value, typed_tree.Constant):
        problem = option.find_problem(value.value)
        if problem is not None:
            context.report_error("T126", span, f"{option.name}: {problem}")
            return None
    if option.kind is OptionKind.NUMBER and not is_null:
        return coerce_literal(value, Scalar.F64)
    return value


def _is_of_kind(value: typed_tree.Expr, kind: OptionKind) -> bool:
    type_ = value.type
    if not isinstance(type_, PropertyType):
        return False
    if kind is OptionKind.IDS:
        is_texts = isinstance(type_.value, ListType) and type_.value.element is Scalar.STRING
        return is_texts or is_empty_list(value)
    return type_.scalar in _SCALARS[kind]


def _format_names(names: Sequence[str], word: str) -> str:
    shown = list(names[:_NAMES_MAX]) + (["…"] if len(names) > _NAMES_MAX else [])
    return f" {word} ".join(shown)
