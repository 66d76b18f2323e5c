"""Violations as they are found: the first ones are listed, all of them are counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import VIOLATIONS_SHOWN_MAX, Violation, WriteRefusedError, format_violations
from omnigraph.rows.json_encoding import encode_json_values
from omnigraph.rows.result_types import to_result_values
from omnigraph.schema.accepted_schema import TypeKey
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.graph_change import TypeChange

# A longer value is cut in messages, so that a refusal stays readable whatever was written.
VALUE_CHARS_MAX: Final = 80


class CheckStage(IntEnum):
    """When a write finds a violation; those of an earlier stage are reported first."""

    READ = 0
    DUPLICATE = 1
    EXISTS = 2
    FORM = 3
    RULES = 4
    GRAPH = 5


class Rule(NamedTuple):
    """A rule of the schema: the stage that checks it, and what to do about a violation."""

    stage: CheckStage
    hint: str


# The rules of every write, by the names that violations have. A load checks them on the image after
# the write, a bulk load row by row and with joins of hashes.
RULES: Final = {
    "required": Rule(CheckStage.FORM, "give the property a value, or declare its type with `?`"),
    "finite": Rule(CheckStage.FORM, "only finite numbers can be stored"),
    "enum": Rule(CheckStage.RULES, "use one of the values that the schema lists"),
    "range": Rule(CheckStage.RULES, "bring the value within the bounds of the schema"),
    "check": Rule(
        CheckStage.RULES, "write values that the pattern or the condition of the schema admits"
    ),
    "unique": Rule(
        CheckStage.GRAPH,
        "give every entity its own value; one that the same write frees may be used",
    ),
    "reference": Rule(
        CheckStage.GRAPH, "write the missing node too, or leave out the edges that name it"
    ),
    "cardinality": Rule(CheckStage.GRAPH, "add or remove edges of the source in the same write"),
}

Positions: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True)
class RuleSubject:
    """A type under validation, with what the write does to it."""

    type_key: TypeKey
    type_: NodeType | EdgeType
    change: TypeChange

    def build_violation(
        self,
        rule: str,
        message: str,
        *,
        row: int | None = None,
        property: str | None = None,  # noqa: A002
        value: str | None = None,
    ) -> Violation:
        """A broken rule at a row of the change."""
        entity_id = None if row is None else self.change.rows[ID_COLUMN][row].as_py()
        origins = self.change.origins
        return Violation(
            rule,
            message,
            type_name=self.type_.name,
            property=property,
            value=value,
            entity_id=entity_id,
            place=None if row is None or origins is None else origins.location_of(row),
        )


@dataclass(frozen=True)
class Finding:
    """The rows, in rising order, that break one rule, and how to report one of them."""

    rows: Positions
    build_violation: Callable[[int], Violation]


class Findings:
    """Everything a validation has found so far; the first `shown_max` are listed."""

    def __init__(self, shown_max: int = VIOLATIONS_SHOWN_MAX) -> None:
        self.violations: list[Violation] = []
        self.count = 0
        self._shown_max = shown_max

    def add(self, finding: Finding) -> None:
        """Collect what one check found, in the order it was found."""
        self.count += len(finding.rows)
        self.violations += [
            finding.build_violation(row) for row in finding.rows[: self._room].tolist()
        ]

    def add_by_row(self, findings: Sequence[Finding]) -> None:
        """Collect what several checks found in the same rows, row by row."""
        if not findings:
            return
        self.count += sum(len(finding.rows) for finding in findings)
        first = [
            (row, order)
            for order, finding in enumerate(findings)
            for row in finding.rows[: self._room].tolist()
        ]
        shown = sorted(first)[: self._room]
        self.violations += [findings[order].build_violation(row) for row, order in shown]

    def raise_if_any(self) -> None:
        """Raise what was found, if anything was."""
        if self.count:
            raise WriteRefusedError(
                format_violations(self.violations, self.count),
                violations=self.violations,
                count=self.count,
                hint=hint_of(self.violations[0].rule),
            )

    @property
    def _room(self) -> int:
        return self._shown_max - len(self.violations)


def hint_of(rule: str) -> str | None:
    """What to do about a broken rule of the schema."""
    return RULES[rule].hint if rule in RULES else None


def to_positions(mask: pa.Array | pa.ChunkedArray) -> Positions:
    """Where a mask is true; nulls are not."""
    found: Positions = pc.indices_nonzero(mask).to_numpy().astype(np.int64)
    return found


def list_shown_values(values: pa.Array | pa.ChunkedArray) -> list[str]:
    """Values for people as JSON has them: a DateTime with its time of day."""
    return list(map(shorten_value, encode_json_values(to_result_values(values))))


# Any: a property value of whatever type.
def shorten_value(value: Any) -> str:
    """A value for people, cut where it would fill the screen."""
    text = str(value)
    return text if len(text) <= VALUE_CHARS_MAX else f"{text[: VALUE_CHARS_MAX - 1]}…"
