"""A whole `.gq` file: settings lines, then queries or one statement."""

from __future__ import annotations

from dataclasses import dataclass, field

from omnigraph.diagnostics import Diagnostic, Source, suggest_similar
from omnigraph.diagnostics.diagnostic import Poll
from omnigraph.query.ast import File, Query, Setting, Statement
from omnigraph.query.parser.declarations import parse_query
from omnigraph.query.parser.reader import QueryCursor
from omnigraph.query.parser.statements import (
    SETTING_WORDS,
    STATEMENT_WORDS,
    parse_setting,
    parse_statement,
)
from omnigraph.syntax import Comment, Mode, ParseFailure, TokenKind, decode_source, lex

# Statements people look for; naming them as missing helps more than listing what exists.
_UNSUPPORTED = frozenset(
    {"load", "schema", "snapshot", "commit", "changes", "blob", "optimize", "export", "merge"}
)
_STARTERS = tuple(sorted(SETTING_WORDS | STATEMENT_WORDS))


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """A parsed text; `file` leaves out declarations and statements that have errors."""

    source: Source
    file: File
    diagnostics: tuple[Diagnostic, ...]
    comments: tuple[Comment, ...]


def parse_query_file(
    text: str | bytes,
    *,
    name: str = "query.gq",
    mode: Mode = Mode.LENIENT,
    poll: Poll = lambda: None,
) -> ParsedFile:
    """Read a `.gq` text; every error of the text is among the diagnostics."""
    source, collector = decode_source(name, text, code="Q001", poll=poll)
    if collector.has_errors:
        return ParsedFile(source, File(()), collector.list_diagnostics(), ())
    tokens = lex(source, poll)
    cursor = QueryCursor(tokens, collector, mode=mode)
    file = _FileParser(cursor).parse()
    return ParsedFile(source, file, collector.list_diagnostics(), tokens.comments)


@dataclass(slots=True)
class _FileParser:
    """What has been read of a file so far."""

    cursor: QueryCursor
    settings: list[Setting] = field(default_factory=list)
    queries: list[Query] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    # Whether a query or a statement has begun: settings must stand before it.
    has_query: bool = False
    has_statement: bool = False
    is_misplaced: bool = False

    def parse(self) -> File:
        """Read everything."""
        cursor = self.cursor
        while not cursor.is_at_end:
            is_query = cursor.is_at("query")
            try:
                self._parse_item()
            except ParseFailure:
                # Inside a query, words like `set` at the start of a line mean something else.
                cursor.skip_to_query(*() if is_query else _STARTERS)
        is_whole = cursor.error_count == 0
        statement = self.statements[0] if self.statements and is_whole else None
        return File(tuple(self.settings), tuple(self.queries), statement)

    def _parse_item(self) -> None:
        cursor = self.cursor
        if cursor.is_at("query"):
            self._check_position(is_alone=False)
            self.has_query = True
            query = parse_query(cursor)
            if query is not None:
                self.queries.append(query)
        elif cursor.is_at(*STATEMENT_WORDS):
            self._check_position(is_alone=True)
            self.has_statement = True
            statement = parse_statement(cursor)
            if statement is not None:
                self.statements.append(statement)
        elif cursor.is_at(*SETTING_WORDS):
            if self.has_query or self.has_statement:
                span = cursor.token.span
                cursor.report(span, "settings lines stand before everything else", code="Q003")
            self.settings.append(parse_setting(cursor))
        else:
            self._refuse_item()

    def _check_position(self, *, is_alone: bool) -> None:
        is_beside = self.has_statement or (is_alone and self.has_query)
        if is_beside and not self.is_misplaced:
            self.is_misplaced = True
            self.cursor.report(
                self.cursor.token.span,
                "a statement stands alone in its file, without queries or other statements",
                hint="move it to a file of its own",
                code="Q004",
            )

    def _refuse_item(self) -> None:
        cursor = self.cursor
        token = cursor.token
        if token.kind is TokenKind.WORD and token.text in _UNSUPPORTED:
            with cursor.use_code("Q004"):
                cursor.refuse(token.span, f"'{token.text}' statements are not supported")
        if self.has_statement:
            with cursor.use_code("Q004"):
                cursor.fail("the end of the file after the statement")
        hint = None
        if token.kind is TokenKind.WORD:
            hint = cursor.find_dialect_hint() or suggest_similar(token.text, ("query", *_STARTERS))
            if cursor.is_at("match", "insert", "update", "delete"):
                hint = "wrap it in a query: query name() { … }"
        cursor.fail("'query', a settings line or a statement", hint=hint)
