"""`omnigraph fmt`: lay out schema and query files."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from omnigraph.cli.files import read_text, write_text
from omnigraph.cli.views import fail, print_diagnostics, print_json, print_lines
from omnigraph.diagnostics import Diagnostic, to_json
from omnigraph.errors import CompileError
from omnigraph.query import format_queries
from omnigraph.schema import format_schema

_FORMATTERS = {".pg": format_schema, ".gq": format_queries}


def fmt(
    paths: Annotated[list[Path], typer.Argument(help="Files, or folders to look through.")],
    is_check: Annotated[
        bool, typer.Option("--check", help="Change nothing; exit with 1 if a file would change.")
    ] = False,
    is_diff: Annotated[
        bool, typer.Option("--diff", help="Change nothing; print what would change.")
    ] = False,
    is_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Format `.pg` and `.gq` files in place; comments are kept."""
    changed: list[str] = []
    findings: list[Diagnostic] = []
    for path in _expand(paths):
        old = read_text(path)
        try:
            new = _FORMATTERS[path.suffix](old, name=str(path))
        except CompileError as failure:
            findings.extend(failure.diagnostics)
            continue
        if new.encode() != old:
            changed.append(str(path))
            if is_diff and not is_json:
                print_lines(_difference(path, old.decode(), new))
            if not is_check and not is_diff:
                write_text(path, new)
    _report(changed, findings, is_dry=is_check or is_diff, is_json=is_json)
    if findings or (is_check and changed):
        raise typer.Exit(1)


def _report(changed: list[str], findings: list[Diagnostic], *, is_dry: bool, is_json: bool) -> None:
    if is_json:
        print_json({"changed": changed, "diagnostics": [to_json(found) for found in findings]})
        return
    print_diagnostics(findings)
    verb = "would change" if is_dry else "formatted"
    print_lines(f"{verb} {path}" for path in changed)


def _expand(paths: list[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(
                each for each in path.rglob("*.[pg][gq]") if each.suffix in _FORMATTERS
            )
        elif path.suffix in _FORMATTERS:
            yield path
        else:
            fail(f"{path}: not a .pg or .gq file")


def _difference(path: Path, old: str, new: str) -> Iterator[str]:
    lines = difflib.unified_diff(
        old.splitlines(), new.splitlines(), f"{path} (now)", f"{path} (formatted)", lineterm=""
    )
    yield from lines
