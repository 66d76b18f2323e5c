"""Syntax tree to text, in one style; with a source, comments and blank lines stay."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import assert_never

from omnigraph.errors import CompileError
from omnigraph.lang.source_text import Span
from omnigraph.lang.text_printer import CommentedLines, quote_string
from omnigraph.schema import ast
from omnigraph.schema.schema_parser import parse_schema


def print_schema(schema: ast.Schema) -> str:
    """The text of a tree; parsing it gives an equal tree."""
    return _print_declarations(schema, CommentedLines("", ()))


def format_schema(text: str | bytes, *, name: str = "schema.pg") -> str:
    """The text in one style, with its comments; raises `CompileError` on grammar errors."""
    parsed = parse_schema(text, name=name)
    if parsed.diagnostics:
        raise CompileError(parsed.diagnostics)
    lines = CommentedLines(parsed.source.text, parsed.comments, keep_blanks=True)
    return _print_declarations(parsed.schema, lines)


def print_declaration(declaration: ast.Declaration) -> str:
    """The text of one declaration, without a line end."""
    return print_schema(ast.Schema((declaration,))).rstrip("\n")


def _print_declarations(schema: ast.Schema, lines: CommentedLines) -> str:
    was_block = False
    for declaration in schema.declarations:
        is_block = _is_block(declaration, lines)
        if is_block or was_block:
            lines.add_blank()
        if is_block:
            _print_block(declaration, lines)
        else:
            start, end = declaration.span.start, declaration.span.end
            body = "" if isinstance(declaration, ast.Edge) else " {}"
            lines.add_line(print_header(declaration) + body, indent=0, start=start, end=end)
        was_block = is_block
    if was_block and lines.has_more_comments:
        lines.add_blank()
    return lines.finish()


def _print_block(declaration: ast.Declaration, lines: CommentedLines) -> None:
    span = declaration.span
    closing = max(span.end - 1, span.start)
    header = print_header(declaration) + " {"
    lines.add_line(header, indent=0, start=span.start, end=header_end_of(declaration))
    for member in members_of(declaration):
        lines.add_line(print_member(member), indent=1, start=member.span.start, end=member.span.end)
    lines.add_comments_before(closing, indent=1)
    lines.add_line("}", indent=0, start=closing, end=span.end)


def _is_block(declaration: ast.Declaration, lines: CommentedLines) -> bool:
    """Whether there is something between the braces, if only a comment."""
    if members_of(declaration):
        return True
    return lines.has_comment(header_end_of(declaration), declaration.span.end)


def members_of(declaration: ast.Declaration) -> Sequence[ast.Member]:
    """What stands between the braces of a declaration."""
    match declaration:
        case ast.Interface():
            return declaration.properties
        case ast.Node() | ast.Edge():
            return declaration.members
        case _ as unreachable:
            assert_never(unreachable)


def print_header(declaration: ast.Declaration) -> str:
    """The text of what stands before the brace of a declaration."""
    match declaration:
        case ast.Interface(name):
            return f"interface {name.text}"
        case ast.Node(name, annotations, implements):
            words = [f"node {name.text}", *map(_print_annotation, annotations)]
            if implements:
                words.append("implements " + ", ".join(found.text for found in implements))
            return " ".join(words)
        case ast.Edge(name, source, target, cardinality, annotations):
            words = [f"edge {name.text}: {source.text} -> {target.text}"]
            if cardinality:
                maximum = "" if cardinality.maximum is None else cardinality.maximum
                words.append(f"@card({cardinality.minimum}..{maximum})")
            return " ".join([*words, *map(_print_annotation, annotations)])
        case _ as unreachable:
            assert_never(unreachable)


def header_end_of(declaration: ast.Declaration) -> int:
    """Where the header ends in the source, before its brace."""
    match declaration:
        case ast.Interface(name):
            last = name.span
        case ast.Node(name, annotations, implements):
            last = [name.span, *_spans_of(annotations), *_spans_of(implements)][-1]
        case ast.Edge(_, _, target, cardinality, annotations):
            parts = [cardinality] if cardinality else []
            last = [target.span, *_spans_of(parts), *_spans_of(annotations)][-1]
        case _ as unreachable:
            assert_never(unreachable)
    return last.end


def _spans_of(parts: Sequence[ast.Annotation | ast.Name | ast.Cardinality]) -> list[Span]:
    return [part.span for part in parts]


def print_member(member: ast.Member) -> str:
    """The text of a property or a constraint."""
    match member:
        case ast.Property(name, type_, annotations, merge, default):
            words = [f"{name.text}: {_print_type(type_)}"]
            words += [] if default is None else [f"= {default.text}"]
            words += [] if merge is None else [f"merge {merge.text}"]
            return " ".join([*words, *map(_print_annotation, annotations)])
        case ast.Constraint(name, arguments):
            return f"@{name.text}({', '.join(map(_print_argument, arguments))})"
        case _ as unreachable:
            assert_never(unreachable)


def _print_type(type_: ast.TypeSyntax) -> str:
    return _print_core_type(type_.core) + ("?" if type_.is_nullable else "")


def _print_core_type(core: ast.TypeCore) -> str:
    match core:
        case ast.ScalarSyntax(scalar):
            return str(scalar)
        case ast.ListSyntax(element):
            return f"[{element}]"
        case ast.VectorSyntax(dimension):
            return f"Vector({dimension})"
        case ast.EnumSyntax(values):
            return f"enum({', '.join(value.text for value in values)})"
        case _ as unreachable:
            assert_never(unreachable)


def _print_annotation(annotation: ast.Annotation) -> str:
    if annotation.value is None:
        return f"@{annotation.name.text}"
    words = [_print_value(annotation.value)]
    words += [f"{key.text}={_print_value(value)}" for key, value in annotation.options]
    return f"@{annotation.name.text}({', '.join(words)})"


def _print_argument(argument: ast.ConstraintArgument) -> str:
    match argument:
        case ast.RangeBounds(low, high):
            return f"{_print_bound(low)}..{_print_bound(high)}"
        case ast.SystemField(name):
            return f"@{name}"
        case ast.ExpressionText(text):
            return text
        case ast.Name() | ast.Literal():
            return _print_value(argument)
        case _ as unreachable:
            assert_never(unreachable)


def _print_value(value: ast.Literal | ast.Name) -> str:
    if isinstance(value, ast.Literal) and isinstance(value.value, str):
        return quote_string(value.value)
    return value.text


def _print_bound(bound: int | float | None) -> str:
    if bound is None:
        return ""
    if isinstance(bound, int):
        return str(bound)
    # The language has no exponents; the shortest digits that read back as the same number.
    digits = format(Decimal(repr(bound)), "f")
    return digits if "." in digits else digits + ".0"
