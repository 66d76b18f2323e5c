"""The declared parameters of a query, and their types."""

from __future__ import annotations

from omnigraph.lang.lexer import Mode, TokenKind
from omnigraph.lang.spellcheck import suggest_similar
from omnigraph.lang.token_cursor import ParseFailure
from omnigraph.query.ast import Parameter, RecordField, RecordListType
from omnigraph.query.parser.parse_expressions import parse_expr
from omnigraph.query.parser.parse_literals import expect_expr
from omnigraph.query.parser.query_cursor import QueryCursor
from omnigraph.schema.ast import Name
from omnigraph.schema.property_types import (
    DECLARED_SCALARS,
    VECTOR_DIMENSION_MAX,
    ListType,
    PropertyType,
    Scalar,
    ScalarType,
    ValueType,
    VectorType,
)
from omnigraph.schema.schema_dialect_hints import TYPE_NAME_HINTS

_SCALARS = {scalar.value: scalar for scalar in DECLARED_SCALARS}
_TYPE_NAMES = (*_SCALARS, "Vector")
_NAME_HINT = "a name is letters, digits and '_'"


def parse_parameters(cursor: QueryCursor) -> tuple[Parameter, ...]:
    """Read `($name: Type, …)`; after a failure, go on after the closing parenthesis."""
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
    records = _parse_record_list(cursor) if cursor.is_at("[") else None
    if records is not None:
        name = Name(token.text[1:], token.span)
        return Parameter(name, records, span=cursor.build_span(token.start))
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


# ---- records ----


def _parse_record_list(cursor: QueryCursor) -> RecordListType | None:
    """`[{ name: Type }]` or `[Person]`; None for a list of values."""
    start = cursor.token.start
    if cursor.is_mark_at(1, "{"):
        cursor.require_lenient(cursor.advance().span, "a list of records")
        fields = cursor.parse_members("'['", _parse_record_field)
        cursor.expect("]", what="']' after the record")
        span = cursor.build_span(start)
        if not fields:
            cursor.report(span, "a record needs at least one field", code="T107")
        return RecordListType(fields, span=span)
    word = cursor.peek()
    is_type = word.kind is TokenKind.WORD and word.text not in (*_TYPE_NAMES, "enum")
    is_null_asked = cursor.is_mark_at(3, "?")
    if not is_type or is_null_asked or cursor.mode is Mode.STRICT or not word.text[0].isupper():
        return None
    cursor.advance()
    name = cursor.advance()
    cursor.expect("]")
    return RecordListType((), Name(name.text, name.span), cursor.build_span(start))


def _parse_record_field(cursor: QueryCursor) -> RecordField:
    name = cursor.expect_ident("the name of a field")
    cursor.expect(":", what="':' and the type of the field")
    value = _parse_list_type(cursor) if cursor.is_at("[") else _parse_single_type(cursor)
    is_nullable = cursor.accept("?")
    span = cursor.build_span(name.span.start)
    cursor.accept(",")
    return RecordField(name, PropertyType(value, is_nullable), span)
