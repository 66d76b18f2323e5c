"""Rewrites the expectations of a case from the answers it got.

Rows, shapes, export lines and counts are replaced where they differ; errors and steps in loops are
left to a person.
"""

from __future__ import annotations

from logic.answers import AffectedAnswer, Answer, LinesAnswer, LoadedAnswer, RowsAnswer
from logic.case import (
    ExpectAffected,
    Expectation,
    ExpectLines,
    ExpectLoaded,
    ExpectRows,
    Place,
)
from logic.compare import as_json_line
from logic.verdict import problem


class Blessing:
    """Collects answers as an observer, then gives the rewritten text."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._changes: dict[Place, list[str]] = {}
        # Wrong answers that a rewrite cannot mend.
        self.problems: list[str] = []

    def observe(self, expect: Expectation, answer: Answer) -> None:
        """Note what has to change for the answer to be the expected one."""
        wrong = problem(expect, answer)
        if wrong is None:
            return
        match expect, answer:
            case ExpectRows(), RowsAnswer() if expect.is_ordered <= answer.is_ordered:
                self._note_rows(expect, answer)
            case ExpectLines(place=place), LinesAnswer(lines):
                self._changes[place] = ["--- expect ordered", *lines]
            case ExpectAffected(place=place), AffectedAnswer(nodes, edges):
                self._changes[place] = [f"--- expect affected: nodes={nodes} edges={edges}"]
            case ExpectLoaded(place=place), LoadedAnswer(counts):
                shown = "".join(f" {name}={count}" for name, count in counts)
                self._changes[place] = [f"--- expect loaded:{shown}"]
            case _:
                self.problems.append(wrong)

    def text(self) -> str:
        """The text with every noted change."""
        lines = list(self._lines)
        for place in sorted(self._changes, key=lambda place: place.header, reverse=True):
            blank = [""] if place.end < len(lines) or lines[-1] == "" else []
            lines[place.header : place.end] = [*self._changes[place], *blank]
        return "\n".join(lines)

    def _note_rows(self, expect: ExpectRows, answer: RowsAnswer) -> None:
        title = self._lines[expect.place.header]
        self._changes[expect.place] = [title, *map(as_json_line, answer.rows)]
        if expect.shape_place is None:
            return
        marks = {column.name: "?" for column in expect.shape or () if column.is_nullable}
        for column in answer.columns:
            if any(row.get(column.name) is None for row in answer.rows):
                marks[column.name] = "?"
        self._changes[expect.shape_place] = ["--- expect shape"] + [
            f"{column.name}: {column.type_name}{marks.get(column.name, '')}"
            for column in answer.columns
        ]
