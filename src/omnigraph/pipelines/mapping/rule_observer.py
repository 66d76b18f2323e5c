"""Counting the rows of rules while Spark reads them, and checking what is expected of them.

A rule without expectations is not observed, because counting costs a step for every row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, assert_never

from pyspark.sql import Observation, functions

from omnigraph.errors import ExpectationFailedError
from omnigraph.pipelines.config.expectations import (
    FAIL,
    REJECT,
    Expectation,
    RejectLimit,
    RowCondition,
    RowRange,
)
from omnigraph.pipelines.ledger.rule_outcomes import (
    ExpectationOutcome,
    RuleOutcome,
    format_broken,
)
from omnigraph.pipelines.mapping.mapping_sql import MappingSteps, quote_name
from omnigraph.pipelines.mapping.row_guards import RowGuard, build_failure_condition
from omnigraph.writers.inputs.input_tables import DELETED, ORIGIN, REFUSED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BROKEN: Final = "__broken"
_ROWS: Final = "rows"
_REJECTED: Final = "rejected"


@dataclass(frozen=True, slots=True)
class _ObservedRule:
    """A rule whose rows are counted when they are read."""

    type_name: str
    expectations: tuple[Expectation, ...]
    counts: Observation


class RuleObserver:
    """What was counted of the rules of one load; `observes_all` counts those of all rules."""

    def __init__(self, *, observes_all: bool = False) -> None:
        self._observes_all = observes_all
        self._rules: list[_ObservedRule] = []

    def observe_rows(self, rows: DataFrame, steps: MappingSteps, guard: RowGuard) -> DataFrame:
        """The rows of a rule, which are counted and rejected as its expectations say."""
        if not (steps.expectations or self._observes_all):
            return rows
        kind = "edge" if steps.is_edge else "node"
        observed = _ObservedRule(f"{kind}:{steps.type_name}", steps.expectations, Observation())
        self._rules.append(observed)
        marked = mark_broken_rows(rows, steps.expectations, guard)
        refused = _is_refused(marked)
        sums = [
            functions.expr(f"count_if({name})").alias(name)
            for name in marked.columns
            if name.startswith(_BROKEN)
        ]
        counted = marked.observe(
            observed.counts,
            functions.count(functions.lit(1)).alias(_ROWS),
            functions.expr(f"count_if({refused})").alias(_REJECTED),
            *sums,
        )
        return counted.drop(*(name for name in marked.columns if name.startswith(_BROKEN)))

    def check_expectations(self, rejected: Mapping[str, int]) -> list[RuleOutcome]:
        """What was counted of rules; raises for rows that are not as expected.

        `rejected` counts those of each type. All rows were read by now: counts wait for that.
        """
        outcomes = list(self._iter_outcomes(rejected))
        failed = format_broken(outcomes, action=FAIL)
        if failed:
            raise ExpectationFailedError(failed, rules=[each.to_json() for each in outcomes])
        return outcomes

    def _iter_outcomes(self, rejected: Mapping[str, int]) -> Iterator[RuleOutcome]:
        counts = [each.counts.get for each in self._rules]
        rows: Counter[str] = Counter()
        for rule, found in zip(self._rules, counts, strict=True):
            rows[rule.type_name] += found[_ROWS]
        seen: Counter[str] = Counter()
        shared = Counter(rule.type_name for rule in self._rules)
        for rule, found in zip(self._rules, counts, strict=True):
            name = rule.type_name
            seen[name] += 1
            of_type = rejected.get(name, 0)
            judged = tuple(
                judge_expectation(each, number, found, rejected=(of_type, rows[name]))
                for number, each in enumerate(rule.expectations)
            )
            # The load finds more reasons than a mapping, but does not know of rules.
            own = of_type if shared[name] == 1 else found[_REJECTED]
            title = name if seen[name] == 1 else f"{name} {seen[name]}"
            yield RuleOutcome(title, found[_ROWS], own, judged)


def judge_expectation(
    expectation: Expectation, number: int, counts: Mapping[str, int], *, rejected: tuple[int, int]
) -> ExpectationOutcome:
    """Whether an expectation is met; `rejected` are rejected rows of the type, and all of them."""
    check = expectation.check
    match check:
        case RowCondition():
            found = counts[f"{_BROKEN}{number}"]
            is_met = not found
        case RowRange(minimum, maximum):
            found = counts[_ROWS]
            is_met = minimum <= found and (maximum is None or found <= maximum)
        case RejectLimit():
            found = rejected[0]
            is_met = check.allows_rejected(*rejected)
        case _:
            assert_never(check)
    return ExpectationOutcome(expectation.name, expectation.action, found, is_met)


def build_broken_condition(sql: str) -> str:
    """A condition: whether a row breaks another one, which has no result for it or is false."""
    failed = build_failure_condition(f"({sql})")
    return f"CASE WHEN {failed} THEN true ELSE NOT coalesce(({sql}), true) END"


def mark_broken_rows(
    rows: DataFrame, expectations: tuple[Expectation, ...], guard: RowGuard
) -> DataFrame:
    """Rows with a column for each condition; one that rejects says so in the row."""
    conditions = {
        f"{_BROKEN}{number}": each
        for number, each in enumerate(expectations)
        if isinstance(each.check, RowCondition)
    }
    if not conditions:
        return rows
    accepted = f"NOT ({_is_refused(rows)})"
    if DELETED in rows.columns:
        accepted += f" AND NOT {quote_name(DELETED)}"
    marked = rows.selectExpr(
        "*",
        *(
            f"{accepted} AND ({build_broken_condition(str(each.check))}) AS {name}"
            for name, each in conditions.items()
        ),
    )
    columns = [name for name in rows.columns if name not in (REFUSED, ORIGIN, DELETED)]
    reasons = [
        guard.build_unmet(name, each.name, each.position, columns=columns)
        for name, each in conditions.items()
        if each.action == REJECT
    ]
    if not reasons:
        return marked
    if REFUSED in rows.columns:
        reasons.insert(0, quote_name(REFUSED))
    names = [quote_name(name) for name in marked.columns if name != REFUSED]
    why = reasons[0] if len(reasons) == 1 else f"coalesce({', '.join(reasons)})"
    return marked.selectExpr(*names, f"{why} AS {quote_name(REFUSED)}")


def _is_refused(rows: DataFrame) -> str:
    return f"{quote_name(REFUSED)} IS NOT NULL" if REFUSED in rows.columns else "false"
