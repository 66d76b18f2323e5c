"""How a query is answered, for people and as a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from omnigraph.cli.views.alignment import align_columns

if TYPE_CHECKING:
    from omnigraph.execution.planner.explain import Explained

_TITLES: Final = ("operator", "access", "index", "estimated", "rows", "ms", "detail")
_NUMBERS: Final = (3, 4, 5)


@dataclass(frozen=True, slots=True)
class Explanation:
    """The operators of a query, from its result down."""

    query_name: str
    target: Mapping[str, str | None]
    explained: Explained
    commit_id: str

    def to_json(self) -> dict[str, Any]:  # Any: a JSON document
        """The document of `explain`."""
        return {
            "query_name": self.query_name,
            "target": dict(self.target),
            "operators": self.explained.to_dicts(),
            "graph_commit_id": self.commit_id,
        }

    def to_lines(self) -> Iterator[str]:
        """An operator per line, under titles."""
        place = next(f"{kind} {name}" for kind, name in self.target.items() if name is not None)
        yield f"plan of {self.query_name} on {place}"
        rows = [
            (
                row.operator,
                row.access,
                row.index,
                _format_number(row.estimated_rows),
                _format_number(row.actual_rows),
                "" if row.time_ms is None else f"{row.time_ms:.2f}",
                row.detail,
            )
            for row in self.explained.rows
        ]
        yield from align_columns([_TITLES, *rows], right=_NUMBERS)


def _format_number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"
