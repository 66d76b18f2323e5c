"""Text to syntax tree: recursive descent that goes on after every error."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from omnigraph.diagnostics import Collector, Diagnostic, Source, Span
from omnigraph.schema import ast
from omnigraph.schema.habits import (
    DECLARATION_HABITS,
    MEMBER_HABITS,
    SCHEMA_HABITS,
    TYPE_HABITS,
    TYPE_NAME_HABITS,
)
from omnigraph.schema.reader import BOOLEANS, DECLARATIONS, NUMBERS, SchemaReader
from omnigraph.schema.types import Scalar
from omnigraph.syntax import (
    Comment,
    Cursor,
    Mode,
    ParseFailure,
    Token,
    TokenKind,
    decode_source,
    lex,
)

# How a misplaced constraint is refused, also by the checker.
PROPERTIES_ONLY = "only supported on properties or as a body constraint"
NOT_ON_EDGES = "not supported on edges"
_MEMBER = "a property, a constraint or '}'"
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SCALARS = {str(scalar): scalar for scalar in Scalar}
_TYPE_WORDS = (*_SCALARS, "Vector", "enum")


@dataclass(frozen=True, slots=True)
class ParsedSchema:
    """A text, its tree, what was found while reading it, and its comments."""

    source: Source
    schema: ast.Schema
    diagnostics: tuple[Diagnostic, ...]
    comments: tuple[Comment, ...]
    # The words of what errors made the parser skip: a name among them may have been declared.
    lost: frozenset[str] = frozenset()


def parse_schema(text: str | bytes, *, name: str = "schema.pg") -> ParsedSchema:
    """Read a schema text; its diagnostics are the grammar errors."""
    return parse_source(*decode_source(name, text, code="S001"))


def parse_source(
    source: Source, collector: Collector, *, mode: Mode = Mode.LENIENT
) -> ParsedSchema:
    """Read a decoded text, reporting to a collector; a text that is not UTF-8 is not read."""
    if collector.has_errors:
        return ParsedSchema(source, ast.Schema(()), collector.all(), ())
    tokens = lex(source)
    parser = _Parser(Cursor(tokens, collector, code="S001", habits=SCHEMA_HABITS), mode)
    schema = parser.schema()
    lost = frozenset(parser.lost)
    return ParsedSchema(source, schema, collector.all(), tokens.comments, lost)


class _Parser(SchemaReader):
    def __init__(self, cursor: Cursor, mode: Mode) -> None:
        super().__init__(cursor)
        self._is_strict = mode is Mode.STRICT
        self.lost: set[str] = set()

    # ---- declarations ----

    def schema(self) -> ast.Schema:
        declarations: list[ast.Declaration] = []
        while not self._cursor.is_at_end:
            start, first = self._cursor.at, self._cursor.token
            try:
                declarations.append(self._declaration())
            except ParseFailure:
                self._skip_to_declaration(start)
                self._lose(first)
        return ast.Schema(tuple(declarations))

    def _declaration(self) -> ast.Declaration:
        if not self._cursor.is_at(*DECLARATIONS):
            word = self._cursor.token.text
            hint = self._cursor.habit(DECLARATION_HABITS)
            hint = hint or self._cursor.collector.did_you_mean(word, DECLARATIONS)
            self._cursor.fail("'interface', 'node' or 'edge'", hint=hint)
        keyword = self._cursor.advance()
        match keyword.text:
            case "interface":
                return self._interface(keyword)
            case "node":
                return self._node(keyword)
            case _:
                return self._edge(keyword)

    def _interface(self, keyword: Token) -> ast.Interface:
        name = self._type_name("an interface name")
        self._refuse_annotations("an interface takes no annotations")
        members = self._body(name)
        properties = []
        for member in members:
            if isinstance(member, ast.Property):
                properties.append(member)
            else:
                self._cursor.report(
                    member.span,
                    "an interface takes properties only, no body constraints",
                    hint=f"write '@{member.name.text}' on the property, or in the nodes",
                )
        return ast.Interface(name, tuple(properties), self._span_from(keyword))

    def _node(self, keyword: Token) -> ast.Node:
        name = self._type_name("a node type name")
        annotations = self._header_annotations(PROPERTIES_ONLY)
        implements: list[ast.Name] = []
        if self._cursor.accept("implements"):
            implements.append(self._type_name("an interface name"))
            while self._cursor.accept(","):
                implements.append(self._type_name("an interface name"))
            self._refuse_annotations("annotations come before 'implements'")
        members = self._body(name)
        span = self._span_from(keyword)
        return ast.Node(name, annotations, tuple(implements), members, span)

    def _edge(self, keyword: Token) -> ast.Edge:
        name = self._type_name("an edge type name")
        self._cursor.expect(":")
        source = self._type_name("the source node type")
        self._cursor.expect("->")
        target = self._type_name("the target node type")
        cardinality = self._cardinality() if self._is_at_annotation("card") else None
        annotations = self._header_annotations(NOT_ON_EDGES)
        members = self._body(name) if self._cursor.is_at("{") else ()
        span = self._span_from(keyword)
        return ast.Edge(name, source, target, cardinality, annotations, members, span)

    def _cardinality(self) -> ast.Cardinality:
        start = self._cursor.advance()
        self._cursor.advance()
        self._cursor.expect("(")
        minimum = self._integer("the least number of edges")
        self._cursor.expect("..")
        maximum = None if self._cursor.is_at(")") else self._integer("the largest number of edges")
        self._cursor.expect(")")
        return ast.Cardinality(minimum, maximum, self._span_from(start))

    def _header_annotations(self, rule: str) -> tuple[ast.Annotation, ...]:
        annotations = []
        while self._cursor.is_at("@"):
            if self._is_at_constraint():
                constraint = self._constraint()
                message = f"@{constraint.name.text} is {rule}"
                self._cursor.report(constraint.span, message, code="S015")
            elif self._is_at_annotation("card"):
                self._misplaced_cardinality()
            else:
                annotations.append(self._annotation())
        return tuple(annotations)

    def _refuse_annotations(self, rule: str) -> None:
        while self._cursor.is_at("@"):
            start = self._cursor.token
            if self._is_at_annotation("card"):
                self._misplaced_cardinality()
                continue
            if self._is_at_constraint():
                self._constraint()
            else:
                self._annotation()
            self._cursor.report(self._span_from(start), rule)

    def _misplaced_cardinality(self) -> None:
        cardinality = self._cardinality()
        self._cursor.report(
            cardinality.span,
            "@card must directly follow the target type of an edge",
            hint="write it once, before every other annotation: edge E: A -> B @card(0..1)",
        )

    # ---- bodies ----

    def _body(self, owner: ast.Name) -> tuple[ast.Member, ...]:
        members: list[ast.Member] = []
        opening = self._cursor.expect("{")
        while not self._cursor.accept("}"):
            if self._cursor.is_at_end or self._is_at_declaration():
                self._unclosed(owner, opening)
                break
            start, first = self._cursor.at, self._cursor.token
            try:
                if not self._skip_separator():
                    members.append(self._member())
            except ParseFailure:
                self._skip_to_member(start)
                self._lose(first)
        return tuple(members)

    def _lose(self, first: Token) -> None:
        text = self._cursor.collector.source.text[first.start : self._cursor.token.start]
        self.lost.update(_WORD.findall(text))

    def _unclosed(self, owner: ast.Name, opening: Token) -> None:
        if self._cursor.previous.kind is TokenKind.UNTERMINATED:
            return
        self._cursor.report(
            opening.span,
            f"the body of '{owner.text}' is never closed",
            hint="add a closing '}'",
        )

    def _skip_separator(self) -> bool:
        """Skip what people write between members by habit, and report it where it is refused."""
        if self._is_at_annotation("card"):
            self._misplaced_cardinality()
            return True
        if not self._cursor.is_at(",", ";"):
            return False
        separator = self._cursor.advance()
        if separator.text == "," and not self._is_strict:
            return True
        self._cursor.report(
            separator.span,
            f"expected {_MEMBER}, found '{separator.text}'",
            hint="separate properties with blanks or line ends only",
        )
        return True

    def _member(self) -> ast.Member:
        if self._is_at_constraint():
            return self._constraint()
        if self._cursor.token.text in MEMBER_HABITS:
            self._cursor.fail(_MEMBER, hint=MEMBER_HABITS[self._cursor.token.text])
        return self._property()

    def _property(self) -> ast.Property:
        name = self._identifier(_MEMBER)
        self._cursor.expect(":")
        type_ = self._type()
        annotations = []
        while self._cursor.is_at("@") and not self._is_at_constraint():
            if self._is_at_annotation("card"):
                self._misplaced_cardinality()
            else:
                annotations.append(self._annotation())
        span = Span(name.span.start, self._cursor.previous.end)
        return ast.Property(name, type_, tuple(annotations), span)

    # ---- types ----

    def _type(self) -> ast.TypeSyntax:
        start = self._cursor.token
        core = self._core_type()
        is_nullable = self._cursor.accept("?")
        return ast.TypeSyntax(core, is_nullable, self._span_from(start))

    def _core_type(self) -> ast.TypeCore:
        if self._cursor.accept("["):
            element = self._scalar("a base type", _SCALARS)
            if not self._cursor.accept("]"):
                self._cursor.fail("']'", hint=self._cursor.habit(TYPE_HABITS))
            return ast.ListSyntax(element)
        if self._cursor.accept("enum"):
            return self._enum()
        if self._cursor.accept("Vector"):
            if not self._cursor.accept("("):
                self._cursor.fail("'('", hint="write the dimension: Vector(3)")
            dimension = self._integer("a dimension")
            self._cursor.expect(")")
            return ast.VectorSyntax(dimension)
        return ast.ScalarSyntax(self._scalar("a type", _TYPE_WORDS))

    def _scalar(self, what: str, words: Iterable[str]) -> Scalar:
        word = self._cursor.token.text
        scalar = _SCALARS.get(word)
        if scalar is None:
            hint = (
                self._cursor.habit(TYPE_HABITS)
                or TYPE_NAME_HABITS.get(word.lower())
                or self._cursor.collector.did_you_mean(word, words)
                or f"the base types are {', '.join(_SCALARS)}"
            )
            self._cursor.fail(what, hint=hint)
        self._cursor.advance()
        return scalar

    def _enum(self) -> ast.EnumSyntax:
        self._cursor.expect("(")
        values = [self._enum_value()]
        while self._cursor.accept(","):
            values.append(self._enum_value())
        self._cursor.expect(")", what="',' or ')'")
        return ast.EnumSyntax(tuple(values))

    def _enum_value(self) -> ast.Name:
        if not self._is_at_enum_piece():
            self._cursor.fail("an enum value", hint="enum values are letters, digits, '_' and '-'")
        start = self._cursor.advance()
        pieces = [start.text]
        while self._is_at_enum_piece() and self._cursor.token.start == self._cursor.previous.end:
            pieces.append(self._cursor.advance().text)
        return ast.Name("".join(pieces), self._span_from(start))

    def _is_at_enum_piece(self) -> bool:
        token = self._cursor.token
        if token.kind is TokenKind.BAD_NUMBER:
            return "." not in token.text and "+" not in token.text
        return token.kind in (TokenKind.WORD, TokenKind.INTEGER) or token.text == "-"

    # ---- annotations and constraints ----

    def _annotation(self) -> ast.Annotation:
        start = self._cursor.expect("@")
        name = self._identifier("an annotation name")
        value: ast.Literal | ast.Name | None = None
        options: list[tuple[ast.Name, ast.Literal]] = []
        if self._cursor.accept("("):
            value = self._annotation_value()
            while self._cursor.accept(","):
                key = self._identifier("an option name")
                self._cursor.expect("=")
                options.append((key, self._literal()))
            self._cursor.expect(")", what="',' or ')'")
        return ast.Annotation(name, value, tuple(options), self._span_from(start))

    def _annotation_value(self) -> ast.Literal | ast.Name:
        token = self._cursor.token
        if token.kind is TokenKind.WORD and token.text not in BOOLEANS:
            name = self._identifier("a value")
            if self._cursor.is_at("="):
                self._cursor.fail("')'", hint="a value comes before the options")
            return name
        return self._literal()

    def _constraint(self) -> ast.Constraint:
        start = self._cursor.expect("@")
        name = self._identifier("a constraint name")
        self._cursor.expect("(")
        arguments = [self._constraint_argument()]
        while self._cursor.accept(","):
            arguments.append(self._constraint_argument())
        self._cursor.expect(")", what="',' or ')'")
        return ast.Constraint(name, tuple(arguments), self._span_from(start))

    def _constraint_argument(self) -> ast.ConstraintArgument:
        token = self._cursor.token
        if self._is_at_bounds():
            return self._bounds()
        if self._cursor.accept("@"):
            field = self._cursor.expect_kind(TokenKind.WORD, "'src' or 'dst'")
            if field.start != token.end:
                self._cursor.report(token.span, "no blank may follow '@' in a constraint")
            return ast.SystemField(field.text, self._span_from(token))
        if token.kind is TokenKind.STRING or token.kind in NUMBERS or token.text in BOOLEANS:
            return self._literal()
        return self._identifier("property name in constraint")

    def _is_at_bounds(self) -> bool:
        cursor = self._cursor
        if cursor.is_at("..", "-"):
            return True
        return cursor.token.kind in NUMBERS and cursor.peek().text == ".."

    def _bounds(self) -> ast.RangeBounds:
        start = self._cursor.token
        low = None if self._cursor.is_at("..") else self._number()
        self._cursor.expect("..")
        is_open = self._cursor.token.kind not in NUMBERS and not self._cursor.is_at("-")
        high = None if low is not None and is_open else self._number()
        return ast.RangeBounds(low, high, self._span_from(start))
