"""Judges the answer to a step against its expectation."""

from __future__ import annotations

from typing import assert_never

from logic.answers import (
    AffectedAnswer,
    Answer,
    FailedAnswer,
    LinesAnswer,
    LoadedAnswer,
    OutcomeAnswer,
    RowsAnswer,
)
from logic.case import (
    ExpectAffected,
    Expectation,
    ExpectError,
    ExpectLines,
    ExpectLoaded,
    ExpectOk,
    ExpectOutcome,
    ExpectPage,
    ExpectRows,
)
from logic.compare import plan_problem, rows_problem, shape_problem
from logic.errors import error_codes, error_text, match_error


def problem(expect: Expectation, answer: Answer) -> str | None:
    """What is wrong with an answer, or None."""
    if isinstance(expect, ExpectError):
        return _error_problem(expect, answer)
    if isinstance(answer, FailedAnswer):
        return f"expected success, failed with: {error_text(answer.error)}"
    match expect:
        case ExpectRows():
            return _rows_problem(expect, answer)
        case ExpectLines(lines):
            assert isinstance(answer, LinesAnswer)
            return None if lines == answer.lines else _lines_problem(lines, answer.lines)
        case ExpectOk():
            return None
        case ExpectAffected(nodes, edges):
            return _equal_problem(AffectedAnswer(nodes, edges), answer)
        case ExpectLoaded(counts):
            return _equal_problem(LoadedAnswer(counts), answer)
        case ExpectOutcome(word):
            return _equal_problem(OutcomeAnswer(word), answer)
        case _:
            assert_never(expect)


def _error_problem(expect: ExpectError, answer: Answer) -> str | None:
    if not isinstance(answer, FailedAnswer):
        return f"expected an error with '{expect.text}', got {answer}"
    if match_error(expect.text, answer.error) is not None:
        return None
    codes = ", ".join(sorted(error_codes(answer.error)))
    return (
        f"expected an error with '{expect.text}', got {type(answer.error).__name__} ({codes}): "
        f"{error_text(answer.error)}"
    )


def _rows_problem(expect: ExpectRows, answer: Answer) -> str | None:
    if not isinstance(answer, RowsAnswer):
        return f"expected rows, got {answer}"
    if expect.is_ordered and not answer.is_ordered:
        return "'expect ordered' needs an order clause"
    shape = expect.shape
    wrong_shape = None if shape is None else shape_problem(shape, answer)
    return (
        wrong_shape
        or rows_problem(expect.lines, answer, is_ordered=expect.is_ordered, shape=shape or ())
        or plan_problem(expect.plan, answer)
        or _page_problem(expect.page, answer)
    )


def _page_problem(expect: ExpectPage, answer: RowsAnswer) -> str | None:
    has_next = answer.cursor is not None if answer.has_cursor else None
    if (has_next, answer.total) == (expect.has_next, expect.total):
        return None
    return f"expected {expect}, got a next page: {has_next}, total: {answer.total}"


def _lines_problem(expected: tuple[str, ...], actual: tuple[str, ...]) -> str:
    lines = ["expected lines", *expected, "got", *actual]
    return "\n  ".join(lines)


def _equal_problem(expected: Answer, actual: Answer) -> str | None:
    return None if expected == actual else f"expected {expected}, got {actual}"
