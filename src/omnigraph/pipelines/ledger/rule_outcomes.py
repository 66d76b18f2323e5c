"""What became of the rules of a target: their rows, and whether their expectations are met."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph.schema.schema_shape import JsonObject


@dataclass(frozen=True, slots=True)
class ExpectationOutcome:
    """An expectation and what was counted for it.

    `found` is the number of rows that break a condition, of all rows, or of rejected ones.
    """

    name: str
    action: str
    found: int
    is_met: bool

    def to_json(self) -> JsonObject:
        """The part of a rule's document about an expectation."""
        return {
            "name": self.name,
            "action": self.action,
            "found": self.found,
            "met": self.is_met,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> ExpectationOutcome:  # Any: JSON
        """An expectation, read from its document."""
        return cls(document["name"], document["action"], document["found"], document["met"])


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """The rows that a rule gave, those of them that were rejected, and its expectations."""

    rule: str
    rows: int
    rejected: int
    expectations: tuple[ExpectationOutcome, ...] = ()

    @property
    def broken(self) -> tuple[ExpectationOutcome, ...]:
        """The expectations that are not met."""
        return tuple(each for each in self.expectations if not each.is_met)

    def to_json(self) -> JsonObject:
        """The part of a target's document about a rule."""
        return {
            "rule": self.rule,
            "rows": self.rows,
            "rejected": self.rejected,
            "expectations": [each.to_json() for each in self.expectations],
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> RuleOutcome:  # Any: JSON
        """A rule, read from its document."""
        expectations = map(ExpectationOutcome.from_json, document["expectations"])
        return cls(document["rule"], document["rows"], document["rejected"], tuple(expectations))


def format_broken(rules: Iterable[RuleOutcome], *, action: str) -> list[str]:
    """The expectations with an action that are not met, for people."""
    return [
        f"{rule.rule}: expected {each.name}, found {each.found} of {rule.rows} rows"
        for rule in rules
        for each in rule.broken
        if each.action == action
    ]
