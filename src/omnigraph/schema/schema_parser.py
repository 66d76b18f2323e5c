"""Text to syntax tree: recursive descent that recovers after every error."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from omnigraph.lang.diagnostics import Collector, Diagnostic
from omnigraph.lang.lexer import Comment, Mode, Token, TokenKind, decode_source, lex
from omnigraph.lang.source_text import Source, Span
from omnigraph.lang.token_cursor import Cursor, ParseFailure
from omnigraph.schema import ast
from omnigraph.schema.catalog import ConstraintKind
from omnigraph.schema.expression_tokens import parse_default_text, parse_expression_text
from omnigraph.schema.property_types import DECLARED_SCALARS, Scalar
from omnigraph.schema.schema_dialect_hints import (
    DECLARATION_HINTS,
    MEMBER_HINTS,
    SCHEMA_HINTS,
    TYPE_HINTS,
    TYPE_NAME_HINTS,
)
from omnigraph.schema.schema_reader import (
    BOOLEANS,
    DECLARATIONS,
    MERGE_RULES,
    NUMBERS,
    SchemaReader,
)

# How a misplaced constraint is refused, also by the checker.
PROPERTIES_ONLY = "only supported on properties or as a body constraint"
NOT_ON_EDGES = "not supported on edges"
_MEMBER = "a property, a constraint or '}'"
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SCALARS = {str(scalar): scalar for scalar in DECLARED_SCALARS}
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
        return ParsedSchema(source, ast.Schema(()), collector.list_diagnostics(), ())
    tokens = lex(source)
    parser = _SchemaParser(Cursor(tokens, collector, code="S001", habits=SCHEMA_HINTS), mode)
    schema = parser.parse_declarations()
    lost = frozenset(parser.lost)
    return ParsedSchema(source, schema, collector.list_diagnostics(), tokens.comments, lost)


class _SchemaParser(SchemaReader):
    def __init__(self, cursor: Cursor, mode: Mode) -> None:
        super().__init__(cursor)
        self._is_strict = mode is Mode.STRICT
        self.lost: set[str] = set()

    # ---- declarations ----

    def parse_declarations(self) -> ast.Schema:
        declarations: list[ast.Declaration] = []
        while not self._cursor.is_at_end:
            start, first = self._cursor.at, self._cursor.token
            try:
                declarations.append(self._parse_declaration())
            except ParseFailure:
                self._skip_to_declaration(start)
                self._record_lost_words(first)
        return ast.Schema(tuple(declarations))

    def _parse_declaration(self) -> ast.Declaration:
        if not self._cursor.is_at(*DECLARATIONS):
            word = self._cursor.token.text
            hint = self._cursor.find_dialect_hint(DECLARATION_HINTS)
            hint = hint or self._cursor.collector.suggest_similar(word, DECLARATIONS)
            self._cursor.fail("'interface', 'node' or 'edge'", hint=hint)
        keyword = self._cursor.advance()
        match keyword.text:
            case "interface":
                return self._parse_interface(keyword)
            case "node":
                return self._parse_node(keyword)
            case _:
                return self._parse_edge(keyword)

    def _parse_interface(self, keyword: Token) -> ast.Interface:
        name = self._expect_type_name("an interface name")
        self._refuse_annotations("an interface takes no annotations")
        members = self._parse_body(name)
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
        return ast.Interface(name, tuple(properties), self._build_span(keyword))

    def _parse_node(self, keyword: Token) -> ast.Node:
        name = self._expect_type_name("a node type name")
        annotations = self._parse_header_annotations(PROPERTIES_ONLY)
        implements: list[ast.Name] = []
        if self._cursor.accept("implements"):
            implements.append(self._expect_type_name("an interface name"))
            while self._cursor.accept(","):
                implements.append(self._expect_type_name("an interface name"))
            self._refuse_annotations("annotations come before 'implements'")
        members = self._parse_body(name)
        span = self._build_span(keyword)
        return ast.Node(name, annotations, tuple(implements), members, span)

    def _parse_edge(self, keyword: Token) -> ast.Edge:
        name = self._expect_type_name("an edge type name")
        self._cursor.expect(":")
        source = self._expect_type_name("the source node type")
        self._cursor.expect("->")
        target = self._expect_type_name("the target node type")
        cardinality = self._parse_cardinality() if self._is_at_annotation("card") else None
        annotations = self._parse_header_annotations(NOT_ON_EDGES)
        members = self._parse_body(name) if self._cursor.is_at("{") else ()
        span = self._build_span(keyword)
        return ast.Edge(name, source, target, cardinality, annotations, members, span)

    def _parse_cardinality(self) -> ast.Cardinality:
        start = self._cursor.advance()
        self._cursor.advance()
        self._cursor.expect("(")
        minimum = self._parse_integer("the least number of edges")
        self._cursor.expect("..")
        maximum = (
            None if self._cursor.is_at(")") else self._parse_integer("the largest number of edges")
        )
        self._cursor.expect(")")
        return ast.Cardinality(minimum, maximum, self._build_span(start))

    def _parse_header_annotations(self, rule: str) -> tuple[ast.Annotation, ...]:
        annotations = []
        while self._cursor.is_at("@"):
            if self._is_at_constraint():
                constraint = self._parse_constraint()
                message = f"@{constraint.name.text} is {rule}"
                self._cursor.report(constraint.span, message, code="S015")
            elif self._is_at_annotation("card"):
                self._report_misplaced_cardinality()
            else:
                annotations.append(self._parse_annotation())
        return tuple(annotations)

    def _refuse_annotations(self, rule: str) -> None:
        while self._cursor.is_at("@"):
            start = self._cursor.token
            if self._is_at_annotation("card"):
                self._report_misplaced_cardinality()
                continue
            if self._is_at_constraint():
                self._parse_constraint()
            else:
                self._parse_annotation()
            self._cursor.report(self._build_span(start), rule)

    def _report_misplaced_cardinality(self) -> None:
        cardinality = self._parse_cardinality()
        self._cursor.report(
            cardinality.span,
            "@card must directly follow the target type of an edge",
            hint="write it once, before every other annotation: edge E: A -> B @card(0..1)",
        )

    # ---- bodies ----

    def _parse_body(self, owner: ast.Name) -> tuple[ast.Member, ...]:
        members: list[ast.Member] = []
        opening = self._cursor.expect("{")
        while not self._cursor.accept("}"):
            if self._cursor.is_at_end or self._is_at_declaration():
                self._report_unclosed(owner, opening)
                break
            start, first = self._cursor.at, self._cursor.token
            try:
                if not self._skip_separator():
                    members.append(self._parse_member())
            except ParseFailure:
                self._skip_to_member(start)
                self._record_lost_words(first)
        return tuple(members)

    def _record_lost_words(self, first: Token) -> None:
        text = self._cursor.collector.source.text[first.start : self._cursor.token.start]
        self.lost.update(_WORD.findall(text))

    def _report_unclosed(self, owner: ast.Name, opening: Token) -> None:
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
            self._report_misplaced_cardinality()
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

    def _parse_member(self) -> ast.Member:
        if self._is_at_constraint():
            return self._parse_constraint()
        if self._cursor.token.text in MEMBER_HINTS:
            self._cursor.fail(_MEMBER, hint=MEMBER_HINTS[self._cursor.token.text])
        return self._parse_property()

    def _parse_property(self) -> ast.Property:
        name = self._expect_identifier(_MEMBER)
        self._cursor.expect(":")
        type_ = self._parse_type()
        default = self._parse_default()
        merge = self._parse_merge_rule()
        annotations = []
        while self._cursor.is_at("@") and not self._is_at_constraint():
            if self._is_at_annotation("card"):
                self._report_misplaced_cardinality()
            else:
                annotations.append(self._parse_annotation())
        span = Span(name.span.start, self._cursor.previous.end)
        return ast.Property(name, type_, tuple(annotations), merge, default, span)

    def _parse_default(self) -> ast.ExpressionText | None:
        """`= expr`, which is read by the language of queries."""
        sign = self._cursor.token
        if not self._cursor.accept("="):
            return None
        if self._is_strict:
            message = "a default goes beyond the reference language, which strict mode refuses"
            self._cursor.report(sign.span, message, code="Q006")
        return parse_default_text(self._cursor)

    def _parse_merge_rule(self) -> ast.Name | None:
        """`merge counter` and the like; `merge` before a colon is a property of that name."""
        if not self._cursor.is_at("merge") or self._cursor.peek().text == ":":
            return None
        word = self._cursor.advance()
        if self._is_strict:
            message = "a merge rule goes beyond the reference language, which strict mode refuses"
            self._cursor.report(word.span, message, code="Q006")
        rule = self._cursor.token
        if rule.text not in MERGE_RULES:
            hint = self._cursor.collector.suggest_similar(rule.text, MERGE_RULES)
            self._cursor.fail("'set', 'counter', 'max' or 'min'", hint=hint)
        self._cursor.advance()
        return ast.Name(rule.text, rule.span)

    # ---- types ----

    def _parse_type(self) -> ast.TypeSyntax:
        start = self._cursor.token
        core = self._parse_core_type()
        is_nullable = self._cursor.accept("?")
        return ast.TypeSyntax(core, is_nullable, self._build_span(start))

    def _parse_core_type(self) -> ast.TypeCore:
        if self._cursor.accept("["):
            element = self._parse_scalar("a base type", _SCALARS)
            if not self._cursor.accept("]"):
                self._cursor.fail("']'", hint=self._cursor.find_dialect_hint(TYPE_HINTS))
            return ast.ListSyntax(element)
        if self._cursor.accept("enum"):
            return self._parse_enum()
        if self._cursor.accept("Vector"):
            if not self._cursor.accept("("):
                self._cursor.fail("'('", hint="write the dimension: Vector(3)")
            dimension = self._parse_integer("a dimension")
            self._cursor.expect(")")
            return ast.VectorSyntax(dimension)
        return ast.ScalarSyntax(self._parse_scalar("a type", _TYPE_WORDS))

    def _parse_scalar(self, what: str, words: Iterable[str]) -> Scalar:
        word = self._cursor.token.text
        scalar = _SCALARS.get(word)
        if scalar is None:
            hint = (
                self._cursor.find_dialect_hint(TYPE_HINTS)
                or TYPE_NAME_HINTS.get(word.lower())
                or self._cursor.collector.suggest_similar(word, words)
                or f"the base types are {', '.join(_SCALARS)}"
            )
            self._cursor.fail(what, hint=hint)
        self._cursor.advance()
        return scalar

    def _parse_enum(self) -> ast.EnumSyntax:
        self._cursor.expect("(")
        values = [self._parse_enum_value()]
        while self._cursor.accept(","):
            values.append(self._parse_enum_value())
        self._cursor.expect(")", what="',' or ')'")
        return ast.EnumSyntax(tuple(values))

    def _parse_enum_value(self) -> ast.Name:
        if not self._is_at_enum_piece():
            self._cursor.fail("an enum value", hint="enum values are letters, digits, '_' and '-'")
        start = self._cursor.advance()
        pieces = [start.text]
        while self._is_at_enum_piece() and self._cursor.token.start == self._cursor.previous.end:
            pieces.append(self._cursor.advance().text)
        return ast.Name("".join(pieces), self._build_span(start))

    def _is_at_enum_piece(self) -> bool:
        token = self._cursor.token
        if token.kind is TokenKind.BAD_NUMBER:
            return "." not in token.text and "+" not in token.text
        return token.kind in (TokenKind.WORD, TokenKind.INTEGER) or token.text == "-"

    # ---- annotations and constraints ----

    def _parse_annotation(self) -> ast.Annotation:
        start = self._cursor.expect("@")
        name = self._expect_identifier("an annotation name")
        value: ast.Literal | ast.Name | None = None
        options: list[tuple[ast.Name, ast.Literal]] = []
        if self._cursor.accept("("):
            value = self._parse_annotation_value()
            while self._cursor.accept(","):
                key = self._expect_identifier("an option name")
                self._cursor.expect("=")
                options.append((key, self._parse_literal()))
            self._cursor.expect(")", what="',' or ')'")
        return ast.Annotation(name, value, tuple(options), self._build_span(start))

    def _parse_annotation_value(self) -> ast.Literal | ast.Name:
        token = self._cursor.token
        if token.kind is TokenKind.WORD and token.text not in BOOLEANS:
            name = self._expect_identifier("a value")
            if self._cursor.is_at("="):
                self._cursor.fail("')'", hint="a value comes before the options")
            return name
        return self._parse_literal()

    def _parse_constraint(self) -> ast.Constraint:
        start = self._cursor.expect("@")
        name = self._expect_identifier("a constraint name")
        if name.text == ConstraintKind.TOGETHER and self._is_strict:
            message = "@together goes beyond the reference language, which strict mode refuses"
            self._cursor.report(self._build_span(start), message, code="Q006")
        self._cursor.expect("(")
        if name.text == ConstraintKind.CHECK and self._is_at_expression():
            return self._parse_condition(name, start)
        arguments = [self._parse_constraint_argument()]
        while self._cursor.accept(","):
            arguments.append(self._parse_constraint_argument())
        self._cursor.expect(")", what="',' or ')'")
        return ast.Constraint(name, tuple(arguments), self._build_span(start))

    def _parse_condition(self, name: ast.Name, start: Token) -> ast.Constraint:
        """`@check(expr)`, whose expression is read by the language of queries."""
        expression = parse_expression_text(self._cursor)
        self._cursor.expect(")")
        if self._is_strict:
            message = "@check of an expression goes beyond the reference language"
            self._cursor.report(
                self._build_span(start), f"{message}, which strict mode refuses", code="Q006"
            )
        return ast.Constraint(name, (expression,), self._build_span(start))

    def _parse_constraint_argument(self) -> ast.ConstraintArgument:
        token = self._cursor.token
        if self._is_at_bounds():
            return self._parse_bounds()
        if self._cursor.accept("@"):
            field = self._cursor.expect_kind(TokenKind.WORD, "'src' or 'dst'")
            if field.start != token.end:
                self._cursor.report(token.span, "no blank may follow '@' in a constraint")
            return ast.SystemField(field.text, self._build_span(token))
        if token.kind is TokenKind.STRING or token.kind in NUMBERS or token.text in BOOLEANS:
            return self._parse_literal()
        return self._expect_identifier("property name in constraint")

    def _is_at_bounds(self) -> bool:
        cursor = self._cursor
        if cursor.is_at("..", "-"):
            return True
        return cursor.token.kind in NUMBERS and cursor.peek().text == ".."

    def _parse_bounds(self) -> ast.RangeBounds:
        start = self._cursor.token
        low = None if self._cursor.is_at("..") else self._parse_number()
        self._cursor.expect("..")
        is_open = self._cursor.token.kind not in NUMBERS and not self._cursor.is_at("-")
        high = None if low is not None and is_open else self._parse_number()
        return ast.RangeBounds(low, high, self._build_span(start))
