"""Query declarations: header, parameters, annotations, and the sections of the body."""

from __future__ import annotations

from omnigraph.lang.diagnostics import Applicability, Edit, Suggestion
from omnigraph.lang.lexer import Mode, TokenKind
from omnigraph.lang.source_text import NO_SPAN, Span
from omnigraph.lang.spellcheck import suggest_similar
from omnigraph.query.ast import (
    Action,
    Assignment,
    Delete,
    DeleteVariables,
    Expr,
    Insert,
    Mutation,
    MutationBody,
    MutationStatement,
    Parameter,
    PatternWrite,
    Query,
    ReadBody,
    Update,
    UpdateVariable,
    Variable,
    WriteVerb,
)
from omnigraph.query.parser.parse_expressions import parse_expr
from omnigraph.query.parser.parse_parameters import parse_parameters
from omnigraph.query.parser.parse_reads import (
    READ_STARTS,
    SECTION_ORDER,
    Stages,
    parse_read,
    parse_stages,
)
from omnigraph.query.parser.parse_row_loops import MUTATION_WORDS, is_at_row_loop, parse_row_loop
from omnigraph.query.parser.query_cursor import QueryCursor
from omnigraph.schema.ast import Name

_STATEMENT_STARTS = frozenset({"branch", "show", "explain", "set", "reset"})
_ANNOTATIONS = ("description", "instruction")
_SYSTEM_HINT = "system fields are never assigned; the ends of a new edge are 'from' and 'to'"
_NULL_HINT = "pass a parameter of a nullable type, such as $value: String?"
_ASSIGNED_HINT = "values are assigned in braces: { name: value }"
_WHERE_HINT = "for all entities: match { $x: Type } and then update $x set { … } or delete $x"
_VERBS = {verb.value: verb for verb in WriteVerb}


def parse_query(cursor: QueryCursor) -> Query | None:
    """Read a `query` declaration; None when it is unusable, which has been reported."""
    cursor.has_resumed = False
    errors_before = cursor.error_count
    start = cursor.expect("query").start
    name = _parse_query_name(cursor)
    parameters: tuple[Parameter, ...] = ()
    parameters_start = cursor.token.start
    if cursor.is_at("(") or not cursor.is_at("{", "@"):
        parameters = parse_parameters(cursor)
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
    if cursor.is_at("match", "with"):
        body = _parse_staged(cursor)
    elif cursor.is_at(*READ_STARTS):
        body = parse_read(cursor)
    elif cursor.is_at(*MUTATION_WORDS) or is_at_row_loop(cursor):
        body = _parse_mutations(cursor)
    elif cursor.is_at("}"):
        span = cursor.token.span.join(opening)
        cursor.report(span, f"the body of query '{name.text}' is empty", code="Q005")
    elif cursor.is_at(*_STATEMENT_STARTS):
        with cursor.use_code("Q004"):
            word = cursor.token
            cursor.refuse(word.span, f"'{word.text}' cannot stand inside a query")
    else:
        hint = cursor.find_dialect_hint() or SECTION_ORDER
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
    hint = cursor.find_dialect_hint() or (SECTION_ORDER if is_read else None)
    if cursor.is_at_query and not cursor.has_resumed:
        # The next query is whole: only the closing brace is missing.
        cursor.report(
            cursor.token.span, f"expected '}}' to close query '{name.text}', found 'query'"
        )
        return
    cursor.fail(f"'}}' to close query '{name.text}'", hint=hint)


def _parse_mutations(cursor: QueryCursor, first: PatternWrite | None = None) -> MutationBody:
    mutations: list[MutationStatement] = [] if first is None else [first]
    while True:
        # Most statements are plain, and there may be very many of them.
        if cursor.is_at(*MUTATION_WORDS):
            mutations.append(parse_mutation(cursor))
        elif cursor.is_at("match", "with"):
            start = cursor.token.start
            mutations.append(_parse_actions(cursor, parse_stages(cursor), start))
        elif is_at_row_loop(cursor):
            mutations.append(parse_row_loop(cursor, parse_mutation))
        else:
            return MutationBody(tuple(mutations))


def _parse_staged(cursor: QueryCursor) -> ReadBody | MutationBody:
    """What begins with `match`: a read, or a statement that writes what it matches."""
    start = cursor.token.start
    stages = parse_stages(cursor)
    if cursor.is_at(*MUTATION_WORDS):
        return _parse_mutations(cursor, _parse_actions(cursor, stages, start))
    return parse_read(cursor, stages)


def _parse_actions(cursor: QueryCursor, stages: Stages, start: int) -> PatternWrite:
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
    span = cursor.build_span(start)
    return PatternWrite(stages.clauses, tuple(actions), stages.input, stages.match_span, span)


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
    if not cursor.is_at("{"):
        cursor.fail(f"'{{' after {owner}", hint=_ASSIGNED_HINT)
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
    if not cursor.accept(":"):
        cursor.fail("':'", hint=_ASSIGNED_HINT)
    if cursor.is_at("null") and not cursor.argument_depth:
        cursor.refuse(cursor.token.span, "there is no null literal", hint=_NULL_HINT)
    value = parse_expr(cursor)
    span = cursor.build_span(name.span.start)
    cursor.accept(",")
    return Assignment(name, value, span)


def _parse_where(cursor: QueryCursor) -> Expr:
    if not cursor.accept("where"):
        cursor.fail("'where'", hint=_WHERE_HINT)
    cursor.is_in_where = True
    try:
        return parse_expr(cursor)
    finally:
        cursor.is_in_where = False
