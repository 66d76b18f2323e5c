"""A whole `.gq` file: settings lines, then queries or one statement."""

from __future__ import annotations

from dataclasses import dataclass, field

from omnigraph.lang.diagnostics import Applicability, Diagnostic, Edit, Poll, Suggestion
from omnigraph.lang.lexer import Comment, Mode, TokenKind, decode_source, lex
from omnigraph.lang.quoting import sanitize_text
from omnigraph.lang.source_text import Source, Span
from omnigraph.lang.spellcheck import suggest_similar
from omnigraph.lang.text_printer import quote_string
from omnigraph.lang.token_cursor import ParseFailure
from omnigraph.query.ast import (
    BranchCreate,
    BranchDelete,
    BranchList,
    BranchMerge,
    BranchStatement,
    Explain,
    File,
    MutationBody,
    Query,
    ResetSetting,
    SetSetting,
    Setting,
    Show,
    Statement,
)
from omnigraph.query.parser.parse_declarations import parse_query
from omnigraph.query.parser.parse_patterns import parse_block
from omnigraph.query.parser.query_cursor import QueryCursor
from omnigraph.schema.ast import Name

SETTING_WORDS = frozenset({"set", "reset"})
STATEMENT_WORDS = frozenset({"branch", "show", "explain"})
_BRANCH_WORDS = ("create", "delete", "merge", "list")
_NAME_HINT = "quote a branch name that is not a plain word"


def parse_setting(cursor: QueryCursor) -> Setting:
    """Read `set name = value;` or `reset name;`."""
    with cursor.use_code("Q003"):
        word = cursor.advance()
        if word.text == "reset":
            name = _parse_setting_name(cursor)
            _expect_semicolon(cursor)
            kept = None if name.text == "all" else name
            return ResetSetting(kept, cursor.build_span(word.start))
        name = _parse_setting_name(cursor)
        cursor.expect("=", what=f"'=' and a value after '{name.text}'")
        value, is_word = _parse_setting_value(cursor)
        _expect_semicolon(cursor)
        return SetSetting(name, value, is_word, cursor.build_span(word.start))


def parse_statement(cursor: QueryCursor) -> Statement | None:
    """Read `branch …`, `show …` or `explain query …`; None when the explained query is unusable."""
    with cursor.use_code("Q004"):
        if cursor.is_at("explain"):
            return _parse_explain(cursor)
        if cursor.is_at("branch"):
            statement = _parse_branch(cursor)
            cursor.accept(";")
            return statement
        start = cursor.advance().start
        name = _parse_setting_name(cursor)
        _expect_semicolon(cursor)
        return Show(None if name.text == "all" else name, cursor.build_span(start))


# ---- settings ----


def _parse_setting_name(cursor: QueryCursor) -> Name:
    first = cursor.expect_ident("a setting name")
    words = [first.text]
    while cursor.accept("."):
        words.append(cursor.expect_ident("a word of the setting name after '.'").text)
    return Name(".".join(words), cursor.build_span(first.span.start))


def _parse_setting_value(cursor: QueryCursor) -> tuple[int | str, bool]:
    what = "an integer, a word or a string"
    match cursor.token.kind:
        case TokenKind.INTEGER:
            return cursor.expect_integer(what), False
        case TokenKind.STRING:
            value, _ = cursor.expect_string(what)
            return value, False
        case _:
            return cursor.expect_ident(what).text, True


def _expect_semicolon(cursor: QueryCursor) -> None:
    what = "';' at the end of the line"
    if not (cursor.is_at_end or cursor.is_first_on_line):
        cursor.expect(";", what=what)
    elif not cursor.accept(";"):
        end = cursor.previous.end
        text_end = len(cursor.collector.source.text)
        cursor.report(Span(end, min(end + 1, text_end)), f"expected {what}")


# ---- statements ----


def _parse_explain(cursor: QueryCursor) -> Explain | None:
    start = cursor.advance().start
    if not cursor.is_at("query"):
        cursor.fail("a query declaration after 'explain'")
    with cursor.use_code("Q001"):
        query = parse_query(cursor)
    if query is None:
        return None
    if isinstance(query.body, MutationBody):
        cursor.report(query.name.span, "'explain' takes a query that reads, not a mutation")
    return Explain(query, cursor.build_span(start))


def _parse_branch(cursor: QueryCursor) -> BranchStatement:
    start = cursor.advance().start
    if not cursor.is_at(*_BRANCH_WORDS):
        hint = suggest_similar(cursor.token.text, _BRANCH_WORDS)
        cursor.fail("'create', 'delete', 'merge' or 'list' after 'branch'", hint=hint)
    word = cursor.advance().text
    if word == "list":
        return BranchList(cursor.build_span(start))
    name = _parse_branch_name(cursor)
    if word == "create":
        parent = _parse_branch_name(cursor) if cursor.accept("from") else None
        return BranchCreate(name, parent, cursor.build_span(start))
    if word == "merge":
        target = _parse_branch_name(cursor) if cursor.accept("into") else None
        return BranchMerge(name, target, cursor.build_span(start))
    return BranchDelete(name, cursor.build_span(start))


def _parse_branch_name(cursor: QueryCursor) -> Name:
    token = cursor.token
    if token.kind is TokenKind.STRING:
        text, span = cursor.expect_string("a branch name")
        if problem := _find_branch_name_problem(text):
            cursor.report(span, f"the branch name {problem}")
        return Name(text, span)
    if token.kind is not TokenKind.WORD:
        cursor.fail("a branch name", hint=_NAME_HINT)
    cursor.advance()
    _refuse_unquoted(cursor, token.start)
    return Name(token.text, token.span)


def _find_branch_name_problem(text: str) -> str | None:
    if not text:
        return "is empty"
    if text != text.strip():
        return "starts or ends with a blank"
    if any(ord(character) < 0x20 or 0x7F <= ord(character) < 0xA0 for character in text):
        return "holds a control character"
    return None


def _refuse_unquoted(cursor: QueryCursor, start: int) -> None:
    """Refuse a bare name that has a capital first, or goes on with characters like `/` or `-`."""
    is_plain = not cursor.previous.text[0].isupper()
    while cursor.token.start == cursor.previous.end and not (cursor.is_at_end or cursor.is_at(";")):
        is_plain = False
        cursor.advance()
    if is_plain:
        return
    span = cursor.build_span(start)
    text = cursor.collector.source.text[span.start : span.end]
    cursor.report(
        span,
        f"the branch name '{sanitize_text(text)}' must be quoted",
        hint=_NAME_HINT,
        suggestion=Suggestion(Applicability.MACHINE_APPLICABLE, (Edit(span, quote_string(text)),)),
    )


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
    cursor.read_block = parse_block
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
