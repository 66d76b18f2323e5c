"""Query trees to text, in one layout: a clause per line, short blocks on one line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import assert_never

from omnigraph.diagnostics import Span
from omnigraph.query.ast import (
    AggregateBlock,
    AggregateFunction,
    Assignment,
    Binding,
    Clause,
    Delete,
    ExistsBlock,
    Explain,
    File,
    Filter,
    Identifier,
    Insert,
    Mutation,
    MutationBody,
    NotBlock,
    Parameter,
    PropertyMatch,
    Query,
    ReadBody,
    StringLiteral,
    TextFunction,
    Traversal,
    Update,
    Variable,
)
from omnigraph.query.spelling import (
    print_binding_head,
    print_expr,
    print_filter,
    print_order_key,
    print_parameter,
    print_projection,
    print_setting,
    print_statement,
    print_traversal,
)
from omnigraph.syntax.printing import CommentedLines, quote

__all__ = ["lay_out", "print_expr", "print_file"]

LINE_CHARACTERS_MAX = 100

_CALL_WORDS = (
    *AggregateFunction,
    *TextFunction,
    *("bm25", "date", "datetime", "nearest", "now", "rrf"),
)
_ENDS_IN_CALL_WORD = re.compile(rf"(?<![\w$.@])(?:{'|'.join(_CALL_WORDS)})$")
_STARTS_WITH_NAME = re.compile(r"(?!(?:not|true|false)\b)[a-z_]\w*\b(?!\()")
_STARTS_WITH_OPERATOR = re.compile(r"(?:contains|starts_with)\b(?!\()")

Block = NotBlock | ExistsBlock | AggregateBlock


def print_file(file: File) -> str:
    """A file; reading the text gives the same tree."""
    return lay_out(file, CommentedLines("", ()))


def lay_out(file: File, lines: CommentedLines) -> str:
    """A file with the comments of its source between the lines."""
    layout = _Layout(lines)
    for setting in file.settings:
        layout.line(print_setting(setting), setting.span)
    for query in file.queries:
        lines.blank()
        layout.query(query)
    match file.statement:
        case None:
            pass
        case Explain(query, span):
            lines.blank()
            layout.query(query, prefix="explain ", start=span.start)
        case statement:
            lines.blank()
            layout.line(print_statement(statement), statement.span)
    return lines.finish()


@dataclass(frozen=True, slots=True)
class _Member:
    """One of the things between two braces, and where it stood."""

    text: str
    span: Span


class _Layout:
    """Prints trees to lines."""

    def __init__(self, lines: CommentedLines) -> None:
        self._lines = lines

    def line(self, text: str, span: Span, *, indent: int = 0) -> None:
        """Print one line."""
        self._lines.line(text, indent=indent, start=span.start, end=span.end)

    def query(self, query: Query, *, prefix: str = "", start: int | None = None) -> None:
        """Print a declaration."""
        first = query.span.start if start is None else start
        self._header(query, prefix, Span(first, query.header_span.end))
        match query.body:
            case ReadBody():
                self._read(query.body)
            case MutationBody(mutations):
                for mutation in mutations:
                    self._mutation(mutation)
            case _:
                assert_never(query.body)
        self._close("}", Span(query.span.end - 1, query.span.end), indent=0)

    # ---- headers ----

    def _header(self, query: Query, prefix: str, span: Span) -> None:
        head = f"{prefix}query {query.name.text}("
        parameters = [print_parameter(parameter) for parameter in query.parameters]
        annotations = _annotations(query)
        notes = [annotation.text for annotation in annotations]
        one_line = " ".join([f"{head}{', '.join(parameters)})", *notes, "{"])
        if self._fits(one_line, span, indent=0):
            self.line(one_line, span)
            return
        opening = "" if annotations else " {"
        signature = f"{head}{', '.join(parameters)}){opening}"
        closing = query.parameters_span.end
        end = closing if annotations else span.end
        if not parameters or self._fits(signature, Span(span.start, closing), indent=0):
            self.line(signature, Span(span.start, end))
        else:
            self.line(head, _head(span, query.parameters))
            members = [
                _Member(text, parameter.span)
                for text, parameter in zip(parameters, query.parameters, strict=True)
            ]
            self._members(members, indent=1, ends_in_comma=False)
            self._close(f"){opening}", Span(closing - 1, end), indent=0)
        for annotation in annotations:
            self.line(annotation.text, annotation.span, indent=1)
        if annotations:
            self._close("{", _last(span), indent=0)

    # ---- reads ----

    def _read(self, body: ReadBody) -> None:
        self.line("match {", _head(body.match_span, body.clauses), indent=1)
        self._clauses(body.clauses, indent=2)
        self._close("}", _last(body.match_span), indent=1)
        items = [_Member(print_projection(item), item.span) for item in body.projections]
        self._braces("return", items, body.return_span, ends_in_comma=True)
        if body.order:
            keys = [_Member(print_order_key(key), key.span) for key in body.order]
            self._braces("order", keys, body.order_span, ends_in_comma=False)
        if body.limit is not None:
            self.line(f"limit {body.limit}", body.limit_span, indent=1)

    def _braces(
        self, word: str, members: Sequence[_Member], span: Span, *, ends_in_comma: bool
    ) -> None:
        one_line = f"{word} {{ {', '.join(member.text for member in members)} }}"
        if self._fits(one_line, span, indent=1):
            self.line(one_line, span, indent=1)
            return
        self.line(f"{word} {{", _head(span, members), indent=1)
        self._members(members, indent=2, ends_in_comma=ends_in_comma)
        self._close("}", _last(span), indent=1)

    def _members(self, members: Sequence[_Member], *, indent: int, ends_in_comma: bool) -> None:
        for index, member in enumerate(members, 1):
            has_comma = ends_in_comma or index < len(members)
            self.line(f"{member.text}," if has_comma else member.text, member.span, indent=indent)

    # ---- clauses ----

    def _clauses(self, clauses: Sequence[Clause], *, indent: int) -> None:
        for clause, following in pairwise((*clauses, None)):
            assert clause is not None
            is_glued = following is not None and _glues(clause, following)
            self._clause(clause, ";" if is_glued else "", indent)

    def _clause(self, clause: Clause, separator: str, indent: int) -> None:
        match clause:
            case Binding():
                self._binding(clause, indent)
            case Traversal():
                self.line(print_traversal(clause), clause.span, indent=indent)
            case Filter():
                self.line(print_filter(clause) + separator, clause.span, indent=indent)
            case NotBlock() | ExistsBlock() | AggregateBlock():
                self._block(clause, separator, indent)
            case _:
                assert_never(clause)

    def _binding(self, clause: Binding, indent: int) -> None:
        head = print_binding_head(clause)
        members = _assignments(clause.matches)
        inner = ", ".join(member.text for member in members)
        one_line = f"{head} {{ {inner} }}" if members else head
        if not members or self._fits(one_line, clause.span, indent=indent):
            self.line(one_line, clause.span, indent=indent)
            return
        self.line(f"{head} {{", _head(clause.span, members), indent=indent)
        self._members(members, indent=indent + 1, ends_in_comma=True)
        self._close("}", _last(clause.span), indent=indent)

    def _block(self, clause: Block, separator: str, indent: int) -> None:
        head, tail, closing = _block_frame(clause)
        if len(clause.clauses) == 1 and not isinstance(clause.clauses[0], Block):
            one_line = f"{head} {{ {_one_line(clause.clauses[0])} }}{tail}{separator}"
            if self._fits(one_line, Span(clause.span.start, closing.start), indent=indent):
                self.line(one_line, clause.span, indent=indent)
                return
        self.line(f"{head} {{", _head(clause.span, clause.clauses), indent=indent)
        self._clauses(clause.clauses, indent=indent + 1)
        self._close(f"}}{tail}{separator}", closing, indent=indent)

    # ---- mutations ----

    def _mutation(self, mutation: Mutation) -> None:
        match mutation:
            case Delete(type_name, condition, span):
                self.line(f"delete {type_name.text} where {print_expr(condition)}", span, indent=1)
            case Insert(type_name, assignments, span):
                closing = _last(span)
                self._assign(mutation, f"insert {type_name.text}", ("", closing), assignments)
            case Update(type_name, assignments, condition, span):
                closing = Span(condition.span.start, span.end)
                tail = f" where {print_expr(condition)}"
                head = f"update {type_name.text} set"
                self._assign(mutation, head, (tail, closing), assignments)
            case _:
                assert_never(mutation)

    def _assign(
        self,
        mutation: Insert | Update,
        head: str,
        ending: tuple[str, Span],
        assignments: tuple[Assignment, ...],
    ) -> None:
        tail, closing = ending
        members = _assignments(assignments)
        one_line = f"{head} {{ {', '.join(member.text for member in members)} }}{tail}"
        if self._fits(one_line, Span(mutation.span.start, closing.start), indent=1):
            self.line(one_line, mutation.span, indent=1)
            return
        self.line(f"{head} {{", _head(mutation.span, members), indent=1)
        self._members(members, indent=2, ends_in_comma=True)
        self._close(f"}}{tail}", closing, indent=1)

    # ---- lines ----

    def _fits(self, text: str, span: Span, *, indent: int) -> bool:
        is_short = 2 * indent + len(text) <= LINE_CHARACTERS_MAX
        return is_short and not self._lines.has_comment(span.start, span.end)

    def _close(self, text: str, span: Span, *, indent: int) -> None:
        self._lines.comments_before(span.start, indent=indent + 1)
        self.line(text, span, indent=indent)


def _annotations(query: Query) -> list[_Member]:
    """The annotations in the order of the source."""
    named = (
        ("description", query.description, query.description_span),
        ("instruction", query.instruction, query.instruction_span),
    )
    found = [
        _Member(f"@{name}({quote(text)})", span) for name, text, span in named if text is not None
    ]
    return sorted(found, key=lambda member: member.span.start)


def _assignments(pairs: Sequence[Assignment | PropertyMatch]) -> list[_Member]:
    return [_Member(f"{pair.property.text}: {print_expr(pair.value)}", pair.span) for pair in pairs]


def _one_line(clause: Binding | Traversal | Filter) -> str:
    match clause:
        case Binding(matches=()):
            return print_binding_head(clause)
        case Binding(matches=matches):
            members = ", ".join(member.text for member in _assignments(matches))
            return f"{print_binding_head(clause)} {{ {members} }}"
        case Traversal():
            return print_traversal(clause)
        case Filter():
            return print_filter(clause)
        case _:
            assert_never(clause)


def _block_frame(clause: Block) -> tuple[str, str, Span]:
    """What stands before and after the braces of a block, and where the end of it stood."""
    match clause:
        case NotBlock():
            return "not", "", _last(clause.span)
        case ExistsBlock():
            return "exists", "", _last(clause.span)
        case AggregateBlock(function, argument, _, op, value, span):
            head = str(function) if argument is None else f"{function}({print_expr(argument)})"
            return head, f" {op} {print_expr(value)}", Span(value.span.start, span.end)
        case _:
            assert_never(clause)


def _glues(clause: Clause, following: Clause) -> bool:
    """Whether two clauses would be read as something else without a `;` between them."""
    if not isinstance(clause, Filter | AggregateBlock) or not isinstance(following, Filter):
        return False
    text = print_filter(following)
    match clause, following:
        case Filter(Identifier()), _:
            return True
        case Filter(Variable()), Filter(StringLiteral()):
            return True
        case Filter(Variable()), _ if _STARTS_WITH_NAME.match(text):
            return True
    last = clause.condition if isinstance(clause, Filter) else clause.value
    is_call = text.startswith("(") and _ENDS_IN_CALL_WORD.search(print_expr(last)) is not None
    return is_call or _STARTS_WITH_OPERATOR.match(text) is not None


def _head(span: Span, members: Sequence[_Member | Clause | Parameter]) -> Span:
    """From the start of a construct to the first thing between its braces."""
    return Span(span.start, members[0].span.start if members else span.end)


def _last(span: Span) -> Span:
    return Span(span.end - 1, span.end)
