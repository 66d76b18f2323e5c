"""Query trees to text, in one layout: a clause per line, short blocks on one line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import assert_never

from omnigraph.errors import CompileError
from omnigraph.lang.diagnostics import Severity
from omnigraph.lang.source_text import NO_SPAN, Span
from omnigraph.lang.text_printer import CommentedLines, quote_string
from omnigraph.query.ast import (
    AggregateBlock,
    AggregateFunction,
    Assignment,
    Binding,
    Clause,
    Delete,
    DeleteVariables,
    ExistsBlock,
    Explain,
    File,
    Filter,
    ForEach,
    ForTable,
    Identifier,
    Insert,
    LateralBlock,
    Let,
    Mutation,
    MutationBody,
    NotBlock,
    Parameter,
    PathClause,
    PatternWrite,
    PropertyMatch,
    Query,
    ReadBody,
    RowsWrite,
    SetOperation,
    StringLiteral,
    TextFunction,
    Traversal,
    Update,
    UpdateVariable,
    Variable,
)
from omnigraph.query.expression_printer import (
    print_binding_head,
    print_block_frame,
    print_clause,
    print_count,
    print_expr,
    print_filter,
    print_order_key,
    print_parameter,
    print_projection,
    print_setting,
    print_statement,
    print_traversal,
)
from omnigraph.query.parser import parse_query_file

__all__ = ["print_expr", "print_file", "print_with_comments"]
LINE_CHARACTERS_MAX = 100
_ENDS_IN_VALUE = (Filter, AggregateBlock, Let, ForEach)
_CALL_WORDS = (
    *AggregateFunction,
    *TextFunction,
    *("bm25", "date", "datetime", "nearest", "now", "rrf"),
)
_ENDS_IN_CALL_WORD = re.compile(rf"(?<![\w$.@])(?:{'|'.join(_CALL_WORDS)})$")
_STARTS_WITH_TAIL = re.compile(r"(having|order|limit|offset)\b")
_STARTS_WITH_NAME = re.compile(r"(?!(?:not|true|false)\b)[a-z_]\w*\b(?!\()")
_STARTS_WITH_OPERATOR = re.compile(r"(?:contains|starts_with)\b(?!\()")
Block = NotBlock | ExistsBlock | AggregateBlock | LateralBlock


def print_file(file: File) -> str:
    """A file; reading the text gives the same tree."""
    return print_with_comments(file, CommentedLines("", ()))


def print_with_comments(file: File, lines: CommentedLines) -> str:
    """A file with the comments of its source between the lines."""
    layout = _QueryPrinter(lines)
    for setting in file.settings:
        layout.add_line(print_setting(setting), setting.span)
    for query in file.queries:
        lines.add_blank()
        layout.print_query(query)
    match file.statement:
        case None:
            pass
        case Explain(query, span):
            lines.add_blank()
            layout.print_query(query, prefix="explain ", start=span.start)
        case statement:
            lines.add_blank()
            layout.add_line(print_statement(statement), statement.span)
    return lines.finish()


@dataclass(frozen=True, slots=True)
class _Member:
    """One of the things between two braces, and where it stood."""

    text: str
    span: Span


class _QueryPrinter:
    """Prints trees to lines."""

    def __init__(self, lines: CommentedLines) -> None:
        self._lines = lines
        # How many braces are open around a read.
        self._depth = 0

    def add_line(self, text: str, span: Span, *, indent: int = 0) -> None:
        """Print one line."""
        indent += self._depth
        self._lines.add_line(text, indent=indent, start=span.start, end=span.end)

    def print_query(self, query: Query, *, prefix: str = "", start: int | None = None) -> None:
        """Print a declaration."""
        first = query.span.start if start is None else start
        self._print_header(query, prefix, Span(first, query.header_span.end))
        match query.body:
            case ReadBody():
                self._print_read(query.body)
            case MutationBody(mutations):
                for mutation in mutations:
                    if isinstance(mutation, RowsWrite):
                        self._print_rows_write(mutation)
                    elif isinstance(mutation, PatternWrite):
                        self._print_pattern_write(mutation)
                    else:
                        self._print_mutation(mutation)
            case _:
                assert_never(query.body)
        self._print_closing("}", Span(query.span.end - 1, query.span.end), indent=0)

    # ---- headers ----

    def _print_header(self, query: Query, prefix: str, span: Span) -> None:
        head = f"{prefix}query {query.name.text}("
        parameters = [print_parameter(parameter) for parameter in query.parameters]
        annotations = _collect_annotations(query)
        notes = [annotation.text for annotation in annotations]
        one_line = " ".join([f"{head}{', '.join(parameters)})", *notes, "{"])
        if self._fits_line(one_line, span, indent=0):
            self.add_line(one_line, span)
            return
        opening = "" if annotations else " {"
        signature = f"{head}{', '.join(parameters)}){opening}"
        closing = query.parameters_span.end
        end = closing if annotations else span.end
        if not parameters or self._fits_line(signature, Span(span.start, closing), indent=0):
            self.add_line(signature, Span(span.start, end))
        else:
            self.add_line(head, _head_span_of(span, query.parameters))
            members = [
                _Member(text, parameter.span)
                for text, parameter in zip(parameters, query.parameters, strict=True)
            ]
            self._print_members(members, indent=1, ends_in_comma=False)
            self._print_closing(f"){opening}", Span(closing - 1, end), indent=0)
        for annotation in annotations:
            self.add_line(annotation.text, annotation.span, indent=1)
        if annotations:
            self._print_closing("{", _last_span_of(span), indent=0)

    # ---- reads ----

    def _print_match(self, clauses: Sequence[Clause], span: Span) -> None:
        self.add_line("match {", _head_span_of(span, clauses), indent=1)
        self._print_clauses(clauses, indent=2)
        self._print_closing("}", _last_span_of(span), indent=1)

    def _print_input(self, source: ReadBody | SetOperation | None) -> None:
        """What stands before the last stage, or what it combines."""
        match source:
            case ReadBody():
                self._print_read(source, word="with")
            case SetOperation(terms, operators, spans):
                self._print_term(terms[0])
                for place, (operator, term) in enumerate(zip(operators, terms[1:], strict=True)):
                    # A tree that was not parsed has no places.
                    self.add_line(operator, spans[place] if spans else NO_SPAN, indent=1)
                    self._print_term(term)
            case None:
                pass
            case _:
                assert_never(source)

    def _print_term(self, term: ReadBody) -> None:
        if not term.needs_braces:
            self._print_read(term)
            return
        span = term.braces_span
        self.add_line("{", Span(span.start, span.start + 1), indent=1)
        self._depth += 1
        self._print_read(term)
        self._depth -= 1
        self._print_closing("}", _last_span_of(span), indent=1)

    def _print_read(self, body: ReadBody, *, word: str = "return") -> None:
        self._print_input(body.input)
        if body.clauses:
            self._print_match(body.clauses, body.match_span)
        if body.projections:
            items = [_Member(print_projection(item), item.span) for item in body.projections]
            head = f"{word} distinct" if body.is_distinct else word
            head = f"{word} graph" if body.is_graph else head
            self._print_braces(head, items, body.return_span, ends_in_comma=True)
        if body.having:
            self._print_having(body)
        if body.order:
            keys = [_Member(print_order_key(key), key.span) for key in body.order]
            self._print_braces("order", keys, body.order_span, ends_in_comma=False)
        if body.limit is not None:
            self.add_line(f"limit {print_count(body.limit)}", body.limit_span, indent=1)
        if body.offset is not None:
            self.add_line(f"offset {print_count(body.offset)}", body.offset_span, indent=1)
        if body.after is not None:
            self.add_line(f"after ${body.after.name}", body.after_span, indent=1)
        if body.has_total:
            self.add_line("total", body.total_span, indent=1)

    def _print_having(self, body: ReadBody) -> None:
        """A condition that could be taken for a part of the one before it follows a `;`."""
        members = [
            _Member(print_expr(each) + (";" if place < len(body.having) else ""), each.span)
            for place, each in enumerate(body.having, 1)
        ]
        one_line = f"having {{ {' '.join(member.text for member in members)} }}"
        if self._fits_line(one_line, body.having_span, indent=1):
            self.add_line(one_line, body.having_span, indent=1)
            return
        self.add_line("having {", _head_span_of(body.having_span, members), indent=1)
        for member in members:
            self.add_line(member.text, member.span, indent=2)
        self._print_closing("}", _last_span_of(body.having_span), indent=1)

    def _print_braces(
        self, word: str, members: Sequence[_Member], span: Span, *, ends_in_comma: bool
    ) -> None:
        one_line = f"{word} {{ {', '.join(member.text for member in members)} }}"
        if self._fits_line(one_line, span, indent=1):
            self.add_line(one_line, span, indent=1)
            return
        self.add_line(f"{word} {{", _head_span_of(span, members), indent=1)
        self._print_members(members, indent=2, ends_in_comma=ends_in_comma)
        self._print_closing("}", _last_span_of(span), indent=1)

    def _print_members(
        self, members: Sequence[_Member], *, indent: int, ends_in_comma: bool
    ) -> None:
        for index, member in enumerate(members, 1):
            has_comma = ends_in_comma or index < len(members)
            self.add_line(
                f"{member.text}," if has_comma else member.text, member.span, indent=indent
            )

    # ---- clauses ----

    def _print_clauses(self, clauses: Sequence[Clause], *, indent: int) -> None:
        for clause, following in pairwise((*clauses, None)):
            assert clause is not None
            is_glued = following is not None and _needs_separator(clause, following)
            self._print_clause(clause, ";" if is_glued else "", indent)

    def _print_clause(self, clause: Clause, separator: str, indent: int) -> None:
        match clause:
            case Binding():
                self._print_binding(clause, indent)
            case Traversal():
                self.add_line(print_traversal(clause), clause.span, indent=indent)
            case Filter():
                self.add_line(print_filter(clause) + separator, clause.span, indent=indent)
            case PathClause():
                self.add_line(print_clause(clause), clause.span, indent=indent)
            case Let() | ForEach() | ForTable():
                self.add_line(print_clause(clause) + separator, clause.span, indent=indent)
            case NotBlock() | ExistsBlock() | AggregateBlock() | LateralBlock():
                self._print_block(clause, separator, indent)
            case _:
                assert_never(clause)

    def _print_binding(self, clause: Binding, indent: int) -> None:
        head = print_binding_head(clause)
        members = _print_pairs(clause.matches)
        inner = ", ".join(member.text for member in members)
        one_line = f"{head} {{ {inner} }}" if members else head
        if not members or self._fits_line(one_line, clause.span, indent=indent):
            self.add_line(one_line, clause.span, indent=indent)
            return
        self.add_line(f"{head} {{", _head_span_of(clause.span, members), indent=indent)
        self._print_members(members, indent=indent + 1, ends_in_comma=True)
        self._print_closing("}", _last_span_of(clause.span), indent=indent)

    def _print_block(self, clause: Block, separator: str, indent: int) -> None:
        (head, tail), closing = print_block_frame(clause), _closing_span_of(clause)
        if len(clause.clauses) == 1 and not isinstance(clause.clauses[0], Block):
            one_line = f"{head} {{ {print_clause(clause.clauses[0])} }}{tail}{separator}"
            if self._fits_line(one_line, Span(clause.span.start, closing.start), indent=indent):
                self.add_line(one_line, clause.span, indent=indent)
                return
        self.add_line(f"{head} {{", _head_span_of(clause.span, clause.clauses), indent=indent)
        self._print_clauses(clause.clauses, indent=indent + 1)
        self._print_closing(f"}}{tail}{separator}", closing, indent=indent)

    # ---- mutations ----

    def _print_pattern_write(self, write: PatternWrite) -> None:
        self._print_input(write.input)
        if write.clauses:
            self._print_match(write.clauses, write.match_span)
        for action in write.actions:
            match action:
                case DeleteVariables(variables, span):
                    names = ", ".join(f"${each.name}" for each in variables)
                    self.add_line(f"delete {names}", span, indent=1)
                case UpdateVariable(variable, assignments, span):
                    head = f"update ${variable.name} set"
                    ending = "", _last_span_of(span)
                    self._print_assignments(action, head, ending, assignments)
                case Insert():
                    self._print_mutation(action)
                case _:
                    assert_never(action)

    def _print_rows_write(self, write: RowsWrite) -> None:
        head = f"for ${write.variable.name} in ${write.source.name} {{"
        self.add_line(head, _head_span_of(write.span, write.statements), indent=1)
        for statement in write.statements:
            self._print_mutation(statement, indent=2)
        self._print_closing("}", _last_span_of(write.span), indent=1)

    def _print_mutation(self, mutation: Mutation, *, indent: int = 1) -> None:
        match mutation:
            case Delete(type_name, condition, span):
                text = f"delete {type_name.text} where {print_expr(condition)}"
                self.add_line(text, span, indent=indent)
            case Insert(type_name, assignments, verb, span):
                head, ending = f"{verb} {type_name.text}", ("", _last_span_of(span))
                self._print_assignments(mutation, head, ending, assignments, indent=indent)
            case Update(type_name, assignments, condition, span):
                closing = Span(condition.span.start, span.end)
                ending = f" where {print_expr(condition)}", closing
                head = f"update {type_name.text} set"
                self._print_assignments(mutation, head, ending, assignments, indent=indent)
            case _:
                assert_never(mutation)

    def _print_assignments(
        self,
        mutation: Insert | Update | UpdateVariable,
        head: str,
        ending: tuple[str, Span],
        assignments: tuple[Assignment, ...],
        *,
        indent: int = 1,
    ) -> None:
        tail, closing = ending
        members = _print_pairs(assignments)
        one_line = f"{head} {{ {', '.join(member.text for member in members)} }}{tail}"
        if self._fits_line(one_line, Span(mutation.span.start, closing.start), indent=indent):
            self.add_line(one_line, mutation.span, indent=indent)
            return
        self.add_line(f"{head} {{", _head_span_of(mutation.span, members), indent=indent)
        self._print_members(members, indent=indent + 1, ends_in_comma=True)
        self._print_closing(f"}}{tail}", closing, indent=indent)

    # ---- lines ----

    def _fits_line(self, text: str, span: Span, *, indent: int) -> bool:
        is_short = 2 * (indent + self._depth) + len(text) <= LINE_CHARACTERS_MAX
        return is_short and not self._lines.has_comment(span.start, span.end)

    def _print_closing(self, text: str, span: Span, *, indent: int) -> None:
        self._lines.add_comments_before(span.start, indent=indent + self._depth + 1)
        self.add_line(text, span, indent=indent)


def _collect_annotations(query: Query) -> list[_Member]:
    """The annotations in the order of the source."""
    named = (
        ("description", query.description, query.description_span),
        ("instruction", query.instruction, query.instruction_span),
    )
    found = [
        _Member(f"@{name}({quote_string(text)})", span)
        for name, text, span in named
        if text is not None
    ]
    return sorted(found, key=lambda member: member.span.start)


def _print_pairs(pairs: Sequence[Assignment | PropertyMatch]) -> list[_Member]:
    return [_Member(f"{pair.property.text}: {print_expr(pair.value)}", pair.span) for pair in pairs]


def _closing_span_of(clause: Block) -> Span:
    """Where the end of a block stood, with what follows its brace."""
    match clause:
        case NotBlock() | ExistsBlock():
            return _last_span_of(clause.span)
        case AggregateBlock(value=value, span=span):
            return Span(value.span.start, span.end)
        case LateralBlock(span=span, block_span=block_span):
            return Span(block_span.end - 1, span.end)
        case _:
            assert_never(clause)


def _needs_separator(clause: Clause, following: Clause) -> bool:
    """Whether two clauses would be read as something else without a `;` between them."""
    if not isinstance(following, Filter):
        return False
    text = print_filter(following)
    if isinstance(clause, LateralBlock):
        return _STARTS_WITH_TAIL.match(text) is not None
    if not isinstance(clause, _ENDS_IN_VALUE):
        return False
    match clause, following:
        case Filter(Identifier()), _:
            return True
        case Filter(Variable()), Filter(StringLiteral()):
            return True
        case Filter(Variable()), _ if _STARTS_WITH_NAME.match(text):
            return True
    match clause:
        case Filter(condition=last) | ForEach(items=last) | Let(value=last):
            pass
        case AggregateBlock(value=last):
            pass
    is_call = text.startswith("(") and _ENDS_IN_CALL_WORD.search(print_expr(last)) is not None
    return is_call or _STARTS_WITH_OPERATOR.match(text) is not None


def _head_span_of(span: Span, members: Sequence[_Member | Clause | Parameter | Mutation]) -> Span:
    """From the start of a construct to the first thing between its braces."""
    return Span(span.start, members[0].span.start if members else span.end)


def _last_span_of(span: Span) -> Span:
    return Span(span.end - 1, span.end)


def format_queries(text: str | bytes, *, name: str = "query.gq") -> str:
    """The text in its one layout; raises CompileError when it cannot be parsed."""
    parsed = parse_query_file(text, name=name)
    if any(found.severity is Severity.ERROR for found in parsed.diagnostics):
        raise CompileError(parsed.diagnostics)
    return print_with_comments(
        parsed.file, CommentedLines(parsed.source.text, parsed.comments, keep_blanks=True)
    )
