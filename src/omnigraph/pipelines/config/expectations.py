"""Expectations of rules: what rows must be like, and what happens where they are not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import yaml

from omnigraph.config.yaml_reader import Findings, Position, Section, read_section
from omnigraph.lang.quoting import sanitize_text
from omnigraph.pipelines.config.operations_schema import EXPECTATION

FAIL: Final = "fail"
REJECT: Final = "reject"
WARN: Final = "warn"

_PERCENT: Final = re.compile(r"(\d+(?:\.\d+)?) ?%")
_PERCENT_MAX: Final = 100
# The fields of which an expectation has those of one line.
_WAYS: Final = (("that",), ("min_rows", "max_rows"), ("max_rejected",))


@dataclass(frozen=True, slots=True)
class RejectLimit:
    """How many rows of a load may be left out: so many, or such a share of all rows."""

    count: int | None = None
    percent: float = 0.0

    def allows_rejected(self, rejected: int, rows: int) -> bool:
        """Whether so many of all rows may be left out; never all of them."""
        if not rejected:
            return True
        return rejected < rows and self.allows_missing(rejected, rows)

    def allows_missing(self, missing: int, rows: int) -> bool:
        """Whether so many of all entities may be deleted: all of them, if the limit says so."""
        most = rows * self.percent / 100 if self.count is None else self.count
        return missing <= most

    def __str__(self) -> str:
        return f"{self.percent:g}%" if self.count is None else str(self.count)


# Records are quarantined to go on without a few of them, not without most.
DEFAULT_REJECT_LIMIT: Final = RejectLimit(percent=10.0)


@dataclass(frozen=True, slots=True)
class RowCondition:
    """A condition over the columns of a mapped row; a row for which it is null meets it."""

    sql: str

    def __str__(self) -> str:
        return self.sql


@dataclass(frozen=True, slots=True)
class RowRange:
    """How many rows a rule gives."""

    minimum: int = 0
    maximum: int | None = None

    def __str__(self) -> str:
        most = "" if self.maximum is None else f" and at most {self.maximum}"
        return f"at least {self.minimum}{most} rows"


@dataclass(frozen=True, slots=True)
class Expectation:
    """What is expected of the rows of a rule, and what happens where it is not met."""

    name: str
    check: RowCondition | RowRange | RejectLimit
    action: str
    position: Position


Check: TypeAlias = RowCondition | RowRange | RejectLimit


def read_expectations(nodes: Iterable[yaml.Node], findings: Findings) -> Iterator[Expectation]:
    """The expectations of a rule; what is wrong with one goes to the findings."""
    for node in nodes:
        section = read_section(node, EXPECTATION, findings)
        check = _read_check(section, findings)
        action = section.get_text("action")
        if action == REJECT and not isinstance(check, RowCondition):
            message = "expectation: 'action: reject' needs 'that', which says which rows"
            findings.add_problem(section.position_of("action"), message, hint="use fail or warn")
        if check is not None:
            name = section.find_text("name") or _format_check(check)
            yield Expectation(name, check, action, section.position)


def _format_check(check: Check) -> str:
    return f"at most {check} rejected" if isinstance(check, RejectLimit) else str(check)


def _read_check(section: Section, findings: Findings) -> Check | None:
    given = [way for way in _WAYS if any(map(section.has_field, way))]
    if len(given) != 1:
        message = "expectation: expects one of 'that', 'min_rows' and 'max_rows', 'max_rejected'"
        findings.add_problem(section.position, message)
        return None
    match given[0]:
        case ("that",):
            return RowCondition(section.get_text("that"))
        case ("max_rejected",):
            return read_reject_limit(section, findings)
    rows = RowRange(section.values["min_rows"] or 0, section.values["max_rows"])
    if rows.maximum is not None and rows.maximum < rows.minimum:
        message = "expectation: 'max_rows' is less than 'min_rows'"
        findings.add_problem(section.position_of("max_rows"), message)
    return rows


def read_reject_limit(section: Section, findings: Findings) -> RejectLimit:
    """The limit in the field `max_rejected` of a section."""
    return read_share("max_rejected", section, findings) or DEFAULT_REJECT_LIMIT


def read_share(
    name: str, section: Section, findings: Findings, *, of: str = "rows"
) -> RejectLimit | None:
    """The number, or the share of all, in a field of a section; None if it has none."""
    text = (section.find_text(name) or "").strip()
    if text.isdecimal():
        return RejectLimit(count=int(text))
    share = _PERCENT.fullmatch(text)
    if share is not None and float(share[1]) <= _PERCENT_MAX:
        return RejectLimit(percent=float(share[1]))
    if text:
        message = f"'{sanitize_text(text)}' is not a number of {of} or a share of them"
        findings.add_problem(section.position_of(name), message, hint="write 100, or 5%")
    return None
