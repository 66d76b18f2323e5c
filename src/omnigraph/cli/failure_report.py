"""What a failed command prints; loaded when a command fails."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import typer

from omnigraph.cli.command_errors import FAILED, LOST_PRECONDITION, CommandError
from omnigraph.cli.views import print_diagnostics, print_hint, print_json, print_problems
from omnigraph.cli.views.merge_views import format_conflicts
from omnigraph.cli.views.output_streams import format_count
from omnigraph.error_codes import ErrorCode
from omnigraph.errors import (
    CompileError,
    MergeConflictError,
    OmnigraphError,
    PreconditionFailedError,
    WriteRefusedError,
)
from omnigraph.errors.error_documents import describe_error

_PREFER_HINT: Final = "change one side, or say which one counts: --prefer ours, or --prefer theirs"
_PICK_HINT: Final = (
    "keep what the branch has with --prefer ours, or take what the {} makes of it with"
    " --prefer theirs"
)


class UsageError(CommandError):
    """A command line that cannot be parsed."""

    reason = "usage_error"


class SystemFailureError(CommandError):
    """The operating system refused a step, such as writing a file."""

    code = ErrorCode.INTERNAL
    reason = "system_error"


class UnexpectedError(CommandError):
    """A mistake of this program."""

    code = ErrorCode.INTERNAL
    reason = "unexpected_error"


def report_failure(error: Exception, *, is_json: bool) -> int:
    """Report why a command line failed, and return the exit code; raises an unexpected error."""
    match error:
        case typer.TyperException():
            return _report_usage_error(error, is_json=is_json)
        case OmnigraphError() | CommandError():
            return _report_error(error, is_json=is_json)
        case OSError():
            return _report_error(SystemFailureError(str(error)), is_json=is_json)
        case typer.Abort():
            print_problems(["aborted"])
            return FAILED
        case _:
            # The traceback is for people; a program gets its document all the same.
            if is_json:
                _report_error(UnexpectedError(f"{type(error).__name__}: {error}"), is_json=True)
            raise error


def _report_error(error: OmnigraphError | CommandError, *, is_json: bool) -> int:
    """Say why a command failed, in words or as one document, and return the exit code."""
    if is_json:
        print_json(_build_document(error))
    else:
        _print_error(error)
    return LOST_PRECONDITION if isinstance(error, PreconditionFailedError) else FAILED


def _report_usage_error(error: typer.TyperException, *, is_json: bool) -> int:
    """Say what is wrong with a command line, and return the exit code."""
    # The library names the exception of a check before what it says.
    message = " ".join(error.format_message().split()).replace(": Value error, ", ": ")
    if not message.strip():
        # A command without arguments: its help is printed already.
        return error.exit_code
    context: typer.Context | None = getattr(error, "ctx", None)
    hint = None
    if context is not None:
        hint = f"try '{context.command_path} {context.help_option_names[-1]}'"
        if not is_json:
            typer.echo(context.get_usage(), err=True)
    _report_error(UsageError(message, hint=hint), is_json=is_json)
    return error.exit_code


def _print_error(error: OmnigraphError | CommandError) -> None:
    match error:
        case CompileError():
            print_diagnostics(error.diagnostics)
        case WriteRefusedError() if error.violations:
            _print_violations(error)
        case MergeConflictError():
            conflicts = format_count(error.count, f"{error.operation} conflict")
            print_problems([f"{conflicts}: nothing was written"])
            typer.echo("\n".join(format_conflicts(error.conflicts, error.count)), err=True)
        case _:
            print_problems([error.message])
    hint = _build_hint(error)
    if hint is not None:
        print_hint(hint)


def _build_hint(error: OmnigraphError | CommandError) -> str | None:
    """What to do, in the options of the command line."""
    if not isinstance(error, MergeConflictError) or not error.is_preferable:
        return error.hint
    is_merge = error.operation == "merge"
    return _PREFER_HINT if is_merge else _PICK_HINT.format(error.operation)


def _build_document(error: OmnigraphError | CommandError) -> dict[str, object]:
    if isinstance(error, OmnigraphError):
        document = describe_error(error)
    else:
        code, reason = str(error.code), error.reason
        document = {"error": error.message, "code": code, "reason": reason, "retryable": False}
    hint = _build_hint(error)
    return document if hint is None else document | {"hint": hint}


def _print_violations(error: WriteRefusedError) -> None:
    print_problems(_format_violations(error))
    more = error.count - len(error.violations)
    if more > 0:
        typer.echo(f"… and {more} more", err=True)
    typer.echo("nothing was written", err=True)


def _format_violations(error: WriteRefusedError) -> Iterator[str]:
    for violation in error.violations:
        yield f"{violation} [{violation.rule}]"
