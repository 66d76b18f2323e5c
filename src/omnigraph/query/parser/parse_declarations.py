"""Query declarations: header, parameters, annotations, and the sections of the body."""

from __future__ import annotations

from omnigraph.lang.diagnostics import Applicability, Edit, Suggestion
from omnigraph.lang.lexer import Mode, TokenKind
from omnigraph.lang.source_text import NO_SPAN, Span
from omnigraph.lang.spellcheck import suggest_similar
from omnigraph.lang.token_cursor import ParseFailure
from omnigraph.query.ast import (
    Action,
    Assignment,
    Clause,
    Delete,
    DeleteVariables,
    Expr,
    Insert,
    Mutation,
    MutationBody,
    OrderKey,
    Parameter,
    PatternWrite,
    Projection,
    Query,
    ReadBody,
    Update,
    UpdateVariable,
    Variable,
    WriteVerb,
)
from omnigraph.query.parser.parse_aggregates import parse_count, parse_order
from omnigraph.query.parser.parse_expressions import parse_expr
from omnigraph.query.parser.parse_literals import expect_expr
from omnigraph.query.parser.parse_patterns import parse_block
from omnigraph.query.parser.query_cursor import RESERVED, QueryCursor
from omnigraph.query.query_dialect_hints import CLAUSE_HINTS
from omnigraph.schema.ast import Name
from omnigraph.schema.property_types import (
    VECTOR_DIMENSION_MAX,
    ListType,
    PropertyType,
    Scalar,
    ScalarType,
    ValueType,
    VectorType,
)
from omnigraph.schema.schema_dialect_hints import TYPE_NAME_HINTS

_STATEMENT_STARTS = frozenset({"branch", "show", "explain", "set", "reset"})
_ANNOTATIONS = ("description", "instruction")
_SCALARS = {scalar.value: scalar for scalar in Scalar}
_TYPE_NAMES = (*_SCALARS, "Vector")
_NAME_HINT = "a name is letters, digits and '_'"
_SECTION_ORDER = (
    "the sections of a query are match, return, having, order, limit, offset, in this order"
)
_SYSTEM_HINT = "system fields are never assigned; the ends of a new edge are 'from' and 'to'"
_NULL_HINT = "pass a parameter of a nullable type, such as $value: String?"
_VERBS = {verb.value: verb for verb in WriteVerb}
MUTATION_WORDS = frozenset({*_VERBS, "update", "delete"})


def parse_query(cursor: QueryCursor) -> Query | None:
    """Read a `query` declaration; None when it is unusable, which has been reported."""
    cursor.has_resumed = False
    errors_before = cursor.error_count
    start = cursor.expect("query").start
    name = _parse_query_name(cursor)
    parameters: tuple[Parameter, ...] = ()
    parameters_start = cursor.token.start
    if cursor.is_at("(") or not cursor.is_at("{", "@"):
        parameters = _parse_parameters(cursor)
    else:
        _report_missing_parameters(cursor, name)
    parameters_span = cursor.build_span(parameters_start)
    annotations = _parse_annotations(cursor)
    opening = cursor.expect("{", what=f"'{{' and the body of query '{name.text}'")
    header_span = cursor.build_span(start)
    body = _parse_body(cursor, name, opening.span)
    if body is None or cursor.error_count > errors_before:
        return None
    description, description_span = annotations["description"]
    instruction, instruction_span = annotations["instruction"]
    return Query(
        name,
        parameters,
        body,
        description,
        instruction,
        span=cursor.build_span(start),
        header_span=header_span,
        parameters_span=parameters_span,
        description_span=description_span,
        instruction_span=instruction_span,
    )


# ---- header ----


def _parse_query_name(cursor: QueryCursor) -> Name:
    token = cursor.expect_kind(TokenKind.WORD, "a query name")
    if token.text[0].isupper():
        cursor.report(
            token.span,
            f"the query name '{token.text}' starts with a capital",
            hint="start it with a lower-case letter or '_'",
        )
    return Name(token.text, token.span)


def _report_missing_parameters(cursor: QueryCursor, name: Name) -> None:
    after = Span(name.span.end, name.span.end)
    cursor.report(
        name.span,
        f"query '{name.text}' has no parameter list",
        hint=f"write query {name.text}()",
        suggestion=Suggestion(Applicability.MACHINE_APPLICABLE, (Edit(after, "()"),)),
        code="Q002",
    )


def _parse_parameters(cursor: QueryCursor) -> tuple[Parameter, ...]:
    opener = cursor.at
    if not cursor.accept("("):
        is_cut = cursor.token.start == cursor.previous.end
        cursor.fail("'(' and the parameters", hint=_NAME_HINT if is_cut else None)
    parameters: list[Parameter] = []
    try:
        if not cursor.is_at(")"):
            parameters.append(_parse_parameter(cursor))
            while cursor.accept(","):
                parameters.append(_parse_parameter(cursor))
        cursor.expect(")", what="',' or ')' after the parameter")
    except ParseFailure:
        closer = cursor.closer_of(opener)
        if closer is None:
            raise
        cursor.at = closer + 1
    return tuple(parameters)


def _parse_parameter(cursor: QueryCursor) -> Parameter:
    token = cursor.expect_kind(TokenKind.VARIABLE, "a parameter such as $name")
    cursor.expect(":", what="':' and the type of the parameter")
    value = _parse_list_type(cursor) if cursor.is_at("[") else _parse_single_type(cursor)
    is_nullable = cursor.accept("?")
    name = Name(token.text[1:], token.span)
    default = None
    if cursor.is_at("="):
        cursor.require_lenient(cursor.advance().span, "the default of a parameter")
        expect_expr(cursor, "the default of the parameter")
        default = parse_expr(cursor)
    span = cursor.build_span(token.start)
    return Parameter(name, PropertyType(value, is_nullable), default, span)


def _parse_list_type(cursor: QueryCursor) -> ValueType:
    start = cursor.expect("[").start
    element = _parse_single_type(cursor)
    cursor.expect("]")
    match element:
        case ScalarType(scalar) if scalar is not Scalar.BLOB:
            return ListType(scalar)
        case _:
            cursor.report(
                cursor.build_span(start), f"a list of {element} is not supported", code="T107"
            )
            return element


def _parse_single_type(cursor: QueryCursor) -> ValueType:
    token = cursor.expect_kind(TokenKind.WORD, "a type")
    if token.text == "Vector":
        return _parse_vector(cursor, token.start)
    if token.text == "enum":
        _skip_arguments(cursor)
        cursor.report(
            cursor.build_span(token.start),
            "a parameter cannot have an enum type",
            hint="declare it as String",
            code="T107",
        )
    elif token.text not in _SCALARS:
        hint = TYPE_NAME_HINTS.get(token.text.lower()) or suggest_similar(token.text, _TYPE_NAMES)
        hint = hint or f"types are {', '.join(_TYPE_NAMES)}"
        cursor.report(token.span, f"unknown type '{token.text}'", hint=hint, code="T107")
    return ScalarType(_SCALARS.get(token.text, Scalar.STRING))


def _parse_vector(cursor: QueryCursor, start: int) -> VectorType:
    if not cursor.accept("("):
        cursor.fail("'(' and the dimension of the vector", hint="write Vector(3)")
    dimension = cursor.expect_integer("the dimension of the vector")
    cursor.expect(")")
    if not 1 <= dimension <= VECTOR_DIMENSION_MAX:
        cursor.report(
            cursor.build_span(start),
            f"a vector has 1 to {VECTOR_DIMENSION_MAX} dimensions, not {dimension}",
            code="T107",
        )
    return VectorType(dimension)


def _skip_arguments(cursor: QueryCursor) -> None:
    closer = cursor.closer_of(cursor.at) if cursor.is_at("(") else None
    if closer is not None:
        cursor.at = closer + 1


def _parse_annotations(cursor: QueryCursor) -> dict[str, tuple[str | None, Span]]:
    found: dict[str, tuple[str | None, Span]] = dict.fromkeys(_ANNOTATIONS, (None, NO_SPAN))
    while cursor.is_at("@"):
        start = cursor.advance().start
        name = cursor.expect_adjacent_ident("an annotation name").text
        span = cursor.build_span(start)
        cursor.expect("(", what=f"'(' and a string after '@{name}'")
        text, _ = cursor.expect_string(f"a string in @{name}(…)")
        cursor.expect(")")
        if name not in found:
            hint = suggest_similar(name, _ANNOTATIONS)
            cursor.report(span, f"unknown annotation '@{name}'", hint=hint, code="Q005")
        elif found[name][0] is not None:
            cursor.report(span, f"'@{name}' is given twice", code="Q005")
        else:
            found[name] = text, cursor.build_span(start)
    return found


# ---- body ----


def _parse_body(cursor: QueryCursor, name: Name, opening: Span) -> ReadBody | MutationBody | None:
    body: ReadBody | MutationBody | None = None
    if cursor.is_at("match"):
        body = _parse_matched(cursor)
    elif cursor.is_at(*MUTATION_WORDS):
        body = _parse_mutations(cursor)
    elif cursor.is_at("}"):
        span = cursor.token.span.join(opening)
        cursor.report(span, f"the body of query '{name.text}' is empty", code="Q005")
    elif cursor.is_at(*_STATEMENT_STARTS):
        with cursor.use_code("Q004"):
            word = cursor.token
            cursor.refuse(word.span, f"'{word.text}' cannot stand inside a query")
    else:
        hint = cursor.find_dialect_hint() or _SECTION_ORDER
        cursor.fail("'match', 'insert', 'update' or 'delete'", hint=hint)
    _close_body(cursor, name, body)
    return body


def _close_body(cursor: QueryCursor, name: Name, body: ReadBody | MutationBody | None) -> None:
    if cursor.accept("}"):
        return
    is_read = isinstance(body, ReadBody)
    if is_read and cursor.is_at(*MUTATION_WORDS):
        with cursor.use_code("Q005"):
            cursor.refuse(
                cursor.token.span,
                f"query '{name.text}' mixes 'match' with mutations",
                hint="a query either returns rows or writes: split it in two",
            )
    hint = cursor.find_dialect_hint() or (_SECTION_ORDER if is_read else None)
    if cursor.is_at_query and not cursor.has_resumed:
        # The next query is whole: only the closing brace is missing.
        cursor.report(
            cursor.token.span, f"expected '}}' to close query '{name.text}', found 'query'"
        )
        return
    cursor.fail(f"'}}' to close query '{name.text}'", hint=hint)


def _parse_mutations(cursor: QueryCursor, first: PatternWrite | None = None) -> MutationBody:
    mutations: list[Mutation | PatternWrite] = [first or parse_mutation(cursor)]
    while cursor.is_at("match", *MUTATION_WORDS):
        if cursor.is_at("match"):
            clauses, span = _parse_match(cursor)
            mutations.append(_parse_actions(cursor, clauses, span))
        else:
            mutations.append(parse_mutation(cursor))
    return MutationBody(tuple(mutations))


def _parse_matched(cursor: QueryCursor) -> ReadBody | MutationBody:
    """What begins with `match`: a read, or a statement that writes what it matches."""
    clauses, span = _parse_match(cursor)
    if cursor.is_at(*MUTATION_WORDS):
        return _parse_mutations(cursor, _parse_actions(cursor, clauses, span))
    return _parse_read(cursor, clauses, span)


def _parse_match(cursor: QueryCursor) -> tuple[tuple[Clause, ...], Span]:
    start = cursor.advance().start
    clauses = parse_block(cursor, "'match'")
    return clauses, cursor.build_span(start)


def _parse_actions(
    cursor: QueryCursor, clauses: tuple[Clause, ...], match_span: Span
) -> PatternWrite:
    """What follows a `match` of a mutation; an update or delete of a type is not part of it."""
    if not cursor.is_at(*MUTATION_WORDS):
        cursor.fail("'update $v', 'delete $v' or another action after 'match { … }'")
    cursor.require_lenient(cursor.token.span, f"'{cursor.token.text}' after 'match'")
    actions: list[Action] = []
    while cursor.is_at(*_VERBS) or (
        cursor.is_at("update", "delete") and cursor.peek().kind is TokenKind.VARIABLE
    ):
        actions.append(_parse_action(cursor))
    if not actions:
        cursor.advance()
        cursor.fail(
            "a variable of the 'match'",
            hint="an update or delete of a type stands before the 'match'",
        )
    return PatternWrite(clauses, tuple(actions), match_span, cursor.build_span(match_span.start))


def _parse_action(cursor: QueryCursor) -> Action:
    if not cursor.is_at("update", "delete"):
        inserted = parse_mutation(cursor)
        assert isinstance(inserted, Insert)
        return inserted
    word = cursor.advance()
    variables = [_parse_variable(cursor)]
    if word.text == "update":
        cursor.expect("set")
        owner = f"'update ${variables[0].name} set'"
        assignments = _parse_assignments(cursor, owner)
        return UpdateVariable(variables[0], assignments, cursor.build_span(word.start))
    while cursor.accept(","):
        variables.append(_parse_variable(cursor))
    return DeleteVariables(tuple(variables), cursor.build_span(word.start))


def _parse_variable(cursor: QueryCursor) -> Variable:
    token = cursor.expect_kind(TokenKind.VARIABLE, "a variable such as $name")
    return Variable(token.text[1:], token.span)


def _parse_read(cursor: QueryCursor, clauses: tuple[Clause, ...], match_span: Span) -> ReadBody:
    return_start = cursor.token.start
    if not cursor.accept("return"):
        cursor.fail("'return'", hint=cursor.find_dialect_hint(CLAUSE_HINTS) or _SECTION_ORDER)
    is_distinct = cursor.is_at("distinct") and cursor.is_mark_at(1, "{")
    if is_distinct:
        cursor.require_lenient(cursor.advance().span, "'distinct'")
    projections = _parse_section(cursor, "'return'")
    return_span = cursor.build_span(return_start)
    having, having_span = _parse_having(cursor)
    order: tuple[OrderKey, ...] = ()
    order_span = NO_SPAN
    if cursor.is_at("order"):
        order_start = cursor.advance().start
        order = parse_order(cursor, parse_expr)
        order_span = cursor.build_span(order_start)
    limit, limit_span = parse_count(cursor, "limit")
    offset, offset_span = parse_count(cursor, "offset")
    return ReadBody(
        clauses,
        projections,
        having,
        order,
        limit,
        offset,
        is_distinct,
        limit_span,
        offset_span,
        match_span,
        return_span,
        having_span,
        order_span,
    )


def _parse_having(cursor: QueryCursor) -> tuple[tuple[Expr, ...], Span]:
    if not (cursor.is_at("having") and cursor.is_mark_at(1, "{")):
        return (), NO_SPAN
    word = cursor.advance()
    cursor.require_lenient(word.span, "'having'")
    opening, errors_before = cursor.token, cursor.error_count
    conditions = cursor.parse_members("'having'", _parse_condition)
    if not conditions and cursor.error_count == errors_before:
        cursor.report(cursor.build_span(opening.start), "'having' needs at least one condition")
    return conditions, cursor.build_span(word.start)


def _parse_condition(cursor: QueryCursor) -> Expr:
    expect_expr(cursor, "a condition or '}'")
    condition = parse_expr(cursor)
    cursor.accept(";")
    return condition


def _parse_section(cursor: QueryCursor, owner: str) -> tuple[Projection, ...]:
    opening = cursor.token
    errors_before = cursor.error_count
    projections = cursor.parse_members(owner, _parse_projection)
    if not projections and cursor.error_count == errors_before:
        cursor.report(cursor.build_span(opening.start), "'return' needs at least one item")
    return projections


def _parse_projection(cursor: QueryCursor) -> Projection:
    start = cursor.token.start
    if cursor.is_at("-") and cursor.previous.text not in ("{", ","):
        cursor.fail("an item or '}'", hint="here '-' is a subtraction: put ',' before the item")
    expect_expr(cursor, "an item or '}'")
    value = parse_expr(cursor)
    alias = None
    if cursor.accept("as"):
        alias = cursor.expect_ident("an alias after 'as'")
        if alias.text in RESERVED:
            cursor.report_reserved(alias.span, alias.text, role="an alias")
    span = cursor.build_span(start)
    cursor.accept(",")
    return Projection(value, alias, span)


def parse_mutation(cursor: QueryCursor) -> Mutation:
    """Read one mutation; the cursor is at its first word."""
    word = cursor.advance()
    type_name = cursor.expect_type_name(f"a type name after '{word.text}'")
    if (verb := _VERBS.get(word.text)) is not None:
        if verb is not WriteVerb.INSERT:
            cursor.require_lenient(word.span, f"'{word.text}'")
        assignments = _parse_assignments(cursor, f"'{word.text} {type_name.text}'")
        return Insert(type_name, assignments, verb, cursor.build_span(word.start))
    if word.text == "update":
        cursor.expect("set")
        assignments = _parse_assignments(cursor, f"'update {type_name.text} set'")
        condition = _parse_where(cursor)
        return Update(type_name, assignments, condition, cursor.build_span(word.start))
    condition = _parse_where(cursor)
    return Delete(type_name, condition, cursor.build_span(word.start))


def _parse_assignments(cursor: QueryCursor, owner: str) -> tuple[Assignment, ...]:
    opening = cursor.token
    errors_before = cursor.error_count
    # An assigned value may be null, as an argument may.
    depth = cursor.argument_depth
    cursor.argument_depth += cursor.mode is Mode.LENIENT
    try:
        assignments = cursor.parse_members(owner, _parse_assignment)
    finally:
        cursor.argument_depth = depth
    if not assignments and cursor.error_count == errors_before:
        span = cursor.build_span(opening.start)
        cursor.report(span, f"{owner} assigns nothing", code="T10")
    return assignments


def _parse_assignment(cursor: QueryCursor) -> Assignment:
    if cursor.is_at("@"):
        cursor.fail("a property name or '}'", hint=_SYSTEM_HINT)
    name = cursor.expect_ident("a property name or '}'")
    cursor.expect(":")
    if cursor.is_at("null") and not cursor.argument_depth:
        cursor.refuse(cursor.token.span, "there is no null literal", hint=_NULL_HINT)
    value = parse_expr(cursor)
    span = cursor.build_span(name.span.start)
    cursor.accept(",")
    return Assignment(name, value, span)


def _parse_where(cursor: QueryCursor) -> Expr:
    cursor.expect("where")
    cursor.is_in_where = True
    try:
        return parse_expr(cursor)
    finally:
        cursor.is_in_where = False
