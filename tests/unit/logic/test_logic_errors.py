"""Portable matching of error messages."""

from __future__ import annotations

import pytest

from logic.errors import Level, error_codes, match_error
from omnigraph.errors import (
    CompileError,
    ExecutionError,
    KeyConflictError,
    LoadError,
    OmnigraphError,
    ParameterError,
)
from omnigraph.lang.diagnostics import Diagnostic, Severity
from omnigraph.lang.source_text import Source, Span


def compile_error(code: str, message: str = "something is wrong") -> CompileError:
    source = Source("query.gq", "query q() { }")
    return CompileError([Diagnostic(code, Severity.ERROR, message, Span(0, 5), source)])


class Conflicts(OmnigraphError):
    code = "merge_conflicts"


@pytest.mark.parametrize(
    ("expected", "error", "level"),
    [
        ("already exists", KeyConflictError("P", "a"), Level.TEXT),
        ("use mode 'merge'", KeyConflictError("P", "a"), Level.TEXT),
        ("something is", compile_error("T7"), Level.TEXT),
        ("T7", compile_error("T7"), Level.TEXT),
        ("T7: other words", compile_error("T7"), Level.CODE),
        ("Q004 other words", compile_error("Q004"), Level.CODE),
        ("OG-MF-106", compile_error("OG-MF-106"), Level.TEXT),
        ("parse error: expected }", compile_error("Q001"), Level.FRAGMENT),
        ("`null` is a reserved word", compile_error("Q001"), Level.FRAGMENT),
        ("membership needs equal types", compile_error("T7"), Level.FRAGMENT),
        ("merge conflicts: P a", Conflicts("both sides changed P"), Level.FRAGMENT),
        ("exceeds F32 range", ParameterError("1e39 is too large"), Level.FRAGMENT),
        ("exceeds F32 range", LoadError("1e39 is too large", record=1), Level.FRAGMENT),
    ],
)
def test_an_error_matches_by_text_then_code_then_fragment(
    expected: str, error: OmnigraphError, level: Level
) -> None:
    assert match_error(expected, error) is level


@pytest.mark.parametrize(
    ("expected", "error"),
    [
        ("T4", compile_error("T41")),
        ("T41", compile_error("T4")),
        ("T7", ExecutionError("the text T7 is in the message")),
        ("membership", compile_error("T6")),
        ("not in the message", ExecutionError("something else")),
        ("merge conflicts", ExecutionError("something else")),
    ],
)
def test_an_error_that_means_something_else_does_not_match(
    expected: str, error: OmnigraphError
) -> None:
    assert match_error(expected, error) is None


def test_warnings_are_no_codes_of_an_error() -> None:
    source = Source("query.gq", "query q() { }")
    found = [
        Diagnostic("T7", Severity.ERROR, "wrong", Span(0, 5), source),
        Diagnostic("L310", Severity.WARNING, "odd", Span(0, 5), source),
    ]
    assert error_codes(CompileError(found)) == {"T7"}
