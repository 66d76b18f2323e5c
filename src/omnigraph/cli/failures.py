"""What a failed command prints, and its exit code."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import asdict
from types import FrameType
from typing import Final

import typer

from omnigraph.cli.views import print_diagnostics, print_hint, print_json, print_problems
from omnigraph.cli.views.merges import conflict_lines
from omnigraph.cli.views.streams import counted
from omnigraph.errors import (
    CompileError,
    MergeConflict,
    OmnigraphError,
    PreconditionFailed,
    WriteRefused,
)

FAILED: Final = 1
LOST_PRECONDITION: Final = 4
# What shells report of a program that Ctrl-C ended, or that was asked to end.
INTERRUPTED: Final = 130
TERMINATED: Final = 143
_PREFER_HINT: Final = "change one side, or say which one counts: --prefer ours, or --prefer theirs"
_PICK_HINT: Final = (
    "keep what the branch has with --prefer ours, or take what the {} makes of it with"
    " --prefer theirs"
)


class Terminated(KeyboardInterrupt):
    """Somebody asks this process to end: `kill`, or a system that stops its services."""


def answer_termination() -> None:
    """Let a command that is asked to end do what it does on Ctrl-C."""
    signal.signal(signal.SIGTERM, _terminate)


def stopped_code(stop: KeyboardInterrupt) -> int:
    """The exit code of a command that was stopped."""
    return TERMINATED if isinstance(stop, Terminated) else INTERRUPTED


def _terminate(_number: int, _frame: FrameType | None) -> None:
    raise Terminated


def report(error: OmnigraphError, *, is_json: bool) -> int:
    """Say why a command failed; with `is_json`, some errors are a document on standard output."""
    code = LOST_PRECONDITION if isinstance(error, PreconditionFailed) else FAILED
    document = _document(error) if is_json else None
    if document is not None:
        print_json(document)
        return code
    match error:
        case CompileError():
            print_diagnostics(error.diagnostics)
        case WriteRefused() if error.violations:
            _print_violations(error)
        case MergeConflict():
            conflicts = counted(error.count, f"{error.operation} conflict")
            print_problems([f"{conflicts}: nothing was written"])
            typer.echo("\n".join(conflict_lines(error.conflicts, error.count)), err=True)
        case _:
            print_problems([error.message])
    hint = _hint(error)
    if hint is not None:
        print_hint(hint)
    return code


def _hint(error: OmnigraphError) -> str | None:
    """What to do, in the options of the command line."""
    if not isinstance(error, MergeConflict) or not error.is_preferable:
        return error.hint
    is_merge = error.operation == "merge"
    return _PREFER_HINT if is_merge else _PICK_HINT.format(error.operation)


def _document(error: OmnigraphError) -> dict[str, object] | None:
    match error:
        case PreconditionFailed():
            detail = {"expected": error.expected, "actual": error.actual}
            return {"error": error.message, "precondition_failure": detail}
        case MergeConflict():
            return {
                "error": error.message,
                "code": error.code,
                "merge_conflicts": [each.to_json() for each in error.conflicts],
                "count": error.count,
            }
        case WriteRefused():
            return {
                "error": error.message,
                "code": error.code,
                "violations": [asdict(violation) for violation in error.violations],
                "count": error.count,
            }
        case _:
            return None


def _print_violations(error: WriteRefused) -> None:
    print_problems(_violation_lines(error))
    more = error.count - len(error.violations)
    if more > 0:
        typer.echo(f"… and {more} more", err=True)
    typer.echo("nothing was written", err=True)


def _violation_lines(error: WriteRefused) -> Iterator[str]:
    for violation in error.violations:
        yield f"{violation} [{violation.rule}]"
