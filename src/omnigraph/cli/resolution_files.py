"""Files of conflicts: written for people and programs to decide, and read as decisions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from omnigraph.engine import MergePlan


@dataclass(frozen=True, slots=True)
class ResolutionFiles:
    """Where the conflicts of a merge are written, and where they are decided."""

    open_path: Annotated[
        Path | None,
        typer.Option(
            "--conflicts",
            metavar="PATH",
            help="Where the merge conflicts, write a line for each conflict there, to decide it.",
        ),
    ] = None
    decided_path: Annotated[
        Path | None,
        typer.Option("--resolve", metavar="PATH", help="Decide conflicts by the lines of a file."),
    ] = None

    @property
    def are_wanted(self) -> bool:
        """Whether conflicts are to be written."""
        return self.open_path is not None

    def write_conflicts(self, plan: MergePlan) -> None:
        """Write the conflicts of a merge to a new file, a line each."""
        if self.open_path is None or not plan.conflict_count:
            return
        lines = (json.dumps(line, ensure_ascii=False) for line in plan.iter_decision_lines())
        try:
            with self.open_path.open("x", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in lines)
        except OSError as error:
            problem = f"--conflicts: {self.open_path}: {error.strerror}"
            raise typer.BadParameter(problem) from error
        hint = "decide each conflict by its `take`, then merge with --resolve"
        typer.echo(f"{self.open_path}: {hint}", err=True)

    def read_decisions(self) -> list[dict[str, object]] | None:
        """The lines of the file of decisions, if there is one."""
        path = self.decided_path
        if path is None:
            return None
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise typer.BadParameter(f"--resolve: {path}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise typer.BadParameter(f"--resolve: {path}: {error}") from error
        return [_parse_line(path, number, line) for number, line in enumerate(lines, 1)]


def _parse_line(path: Path, number: int, line: str) -> dict[str, object]:
    try:
        found = json.loads(line)
    except ValueError as error:
        problem = f"--resolve: {path}, line {number}: it is not JSON: {error}"
        raise typer.BadParameter(problem) from error
    if not isinstance(found, dict):
        raise typer.BadParameter(f"--resolve: {path}, line {number}: it is not an object")
    return found
