"""The codes of schema changes that need care, each with its family, tier and severity."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from omnigraph.lang.diagnostic_codes import CODES
from omnigraph.lang.diagnostics import Severity

REQUIRED_PROPERTY = "OG-MF-103"
TYPE_CHANGE = "OG-MF-106"


class Family(StrEnum):
    """What a change puts at risk; the two letters stand in the code."""

    DESTRUCTIVE = "DS"
    MAYBE_FAIL = "MF"
    CONSTRAINT_DELETION = "CD"
    BACKWARD_INCOMPATIBLE = "BC"
    NAMING = "NM"
    OWNERSHIP = "OW"
    NON_LINEAR = "NL"
    VECTOR_EMBEDDING = "VE"
    EDGE_TOPOLOGY = "ED"
    LOCK_COST = "LK"


class Tier(StrEnum):
    """How a change could be applied: at once, after a check of the data, or with loss of data."""

    SAFE = "safe"
    VALIDATED = "validated"
    DESTRUCTIVE = "destructive"


@dataclass(frozen=True, slots=True)
class LintCode:
    """A code of the register, and how the change it names is classified."""

    code: str
    tier: Tier
    severity: Severity = Severity.ERROR
    # A reserved code names a change that the planner reports in another way.
    is_reserved: bool = True

    @property
    def family(self) -> Family:
        """The family in the middle of the code."""
        return Family(self.code.split("-")[1])

    @property
    def meaning(self) -> str:
        """What the code means, in one line."""
        return CODES[self.code].title


LINT_CODES = {
    found.code: found
    for found in (
        LintCode("OG-DS-101", Tier.DESTRUCTIVE),
        LintCode("OG-DS-102", Tier.DESTRUCTIVE),
        LintCode("OG-DS-103", Tier.DESTRUCTIVE),
        LintCode("OG-DS-104", Tier.DESTRUCTIVE),
        LintCode("OG-DS-105", Tier.DESTRUCTIVE),
        LintCode(REQUIRED_PROPERTY, Tier.VALIDATED, is_reserved=False),
        LintCode("OG-MF-104", Tier.VALIDATED),
        LintCode(TYPE_CHANGE, Tier.DESTRUCTIVE, is_reserved=False),
    )
}
