"""`omnigraph fmt`: lay out schema and query files."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.command_errors import FAILED
from omnigraph.cli.command_registry import register_command
from omnigraph.cli.global_options import Capability
from omnigraph.cli.local_files import FileError, read_bytes, replace_text
from omnigraph.cli.shared_options import JSON
from omnigraph.cli.views import print_diagnostics, print_json, print_lines, print_problems
from omnigraph.error_codes import ErrorCode

if TYPE_CHECKING:
    from omnigraph.lang.diagnostics import Diagnostic

_SUFFIXES = (".pg", ".gq")


@dataclass(slots=True)
class _Outcome:
    """What became of the files, gathered while going through them."""

    changed: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
    findings: list[Diagnostic] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def register(app: typer.Typer) -> None:
    """Add the verb to the command tree."""
    register_command(app, Capability.LOCAL)(fmt)


def fmt(
    paths: Annotated[list[Path], typer.Argument(help="Files, or folders to look through.")],
    is_check: Annotated[
        bool, typer.Option("--check", help="Change nothing; exit with 1 if a file would change.")
    ] = False,
    is_diff: Annotated[
        bool, typer.Option("--diff", help="Change nothing; print what would change.")
    ] = False,
    is_json: JSON = False,
) -> None:
    """Format `.pg` and `.gq` files in place; comments are kept.

    Every file is examined, also when another one has errors; then the exit code is 1.
    """
    from omnigraph.errors import CompileError

    outcome = _Outcome()
    is_dry = is_check or is_diff
    for path in _expand_paths(paths, outcome):
        try:
            _format_file(path, outcome, is_dry=is_dry)
        except CompileError as failure:
            outcome.findings.extend(failure.diagnostics)
        except FileError as problem:
            outcome.problems.append(str(problem))
    is_failed = bool(outcome.findings or outcome.problems or (is_check and outcome.changed))
    if is_json:
        code = {"code": str(ErrorCode.BAD_REQUEST)} if is_failed else {}
        print_json(_build_document(outcome) | code)
    else:
        _print_outcome(outcome, is_dry=is_dry, is_diff=is_diff)
    if is_failed:
        raise typer.Exit(FAILED)


def _format_file(path: Path, outcome: _Outcome, *, is_dry: bool) -> None:
    from omnigraph.query import format_queries
    from omnigraph.schema import format_schema

    old = read_bytes(path)
    format_text = format_schema if path.suffix == ".pg" else format_queries
    new = format_text(old, name=str(path))
    if new.encode() == old:
        return
    if not is_dry:
        replace_text(path, new)
    outcome.changed.append(str(path))
    outcome.differences.extend(_diff_texts(path, old.decode(), new))


def _expand_paths(paths: list[Path], outcome: _Outcome) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            found = [each for each in path.rglob("*") if each.suffix in _SUFFIXES]
            files = sorted(each for each in found if not each.is_dir())
            if not files:
                outcome.problems.append(f"{path}: no .pg or .gq files in this folder")
            yield from files
        elif path.suffix in _SUFFIXES or not path.exists():
            yield path
        else:
            outcome.problems.append(f"{path}: not a .pg or .gq file")


def _build_document(outcome: _Outcome) -> dict[str, object]:
    from omnigraph.lang.diagnostic_views import describe_diagnostic

    return {
        "changed": outcome.changed,
        "diagnostics": [describe_diagnostic(found) for found in outcome.findings],
        "problems": outcome.problems,
    }


def _print_outcome(outcome: _Outcome, *, is_dry: bool, is_diff: bool) -> None:
    print_diagnostics(outcome.findings)
    print_problems(outcome.problems)
    if is_diff:
        print_lines(outcome.differences)
    verb = "would change" if is_dry else "formatted"
    print_lines(f"{verb} {path}" for path in outcome.changed)


def _diff_texts(path: Path, old: str, new: str) -> Iterator[str]:
    names = (f"{path} (now)", f"{path} (formatted)")
    return difflib.unified_diff(old.splitlines(), new.splitlines(), *names, lineterm="")
