"""Settings lines, and the statements that stand alone in a file."""

from __future__ import annotations

from omnigraph.diagnostics import (
    Applicability,
    Edit,
    Span,
    Suggestion,
    sanitize_text,
    suggest_similar,
)
from omnigraph.query.ast import (
    BranchCreate,
    BranchDelete,
    BranchList,
    BranchMerge,
    BranchStatement,
    Explain,
    MutationBody,
    ResetSetting,
    SetSetting,
    Setting,
    Show,
    Statement,
)
from omnigraph.query.parser.declarations import parse_query
from omnigraph.query.parser.reader import QueryCursor
from omnigraph.schema.ast import Name
from omnigraph.syntax import TokenKind
from omnigraph.syntax.printing import quote_string

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
