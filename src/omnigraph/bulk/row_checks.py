"""Rows of one type made ready to be written: identified, and without those that break a rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import Violation
from omnigraph.rows.columns import TableShape
from omnigraph.rows.entity_ids import compute_entity_ids
from omnigraph.schema.accepted_schema import TypeKey
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.default_values import format_unfit_default
from omnigraph.writers.graph_change import NO_IDS, TypeChange, WriteMode
from omnigraph.writers.inputs.input_rows import AbsentColumns
from omnigraph.writers.inputs.required_values import iter_required_columns
from omnigraph.writers.inputs.row_sink import RowNumbers
from omnigraph.writers.key_violations import (
    ID_MISMATCH,
    build_id_mismatch,
    build_missing_entity,
    build_unusable_key,
)
from omnigraph.writers.load_records import fill_ids, replace_ids
from omnigraph.writers.validate.findings import (
    RULES,
    CheckStage,
    Finding,
    Findings,
    Positions,
    RuleSubject,
)
from omnigraph.writers.validate.value_rules import VALUE_CHECKS, check_rules

_Check: TypeAlias = Callable[[RuleSubject, Findings], None]
_Mask = npt.NDArray[np.bool_]
_NULL_TEXT: Final = "null"

# A unit lists so many one by one; the others are counted.
SPLIT_PROBLEMS_MAX: Final = 1_000

# A whole load keeps so many.
LOAD_PROBLEMS_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class IdentifiedRows:
    """Rows under their ids, with their numbers; `is_fresh` says that their ids are new."""

    rows: pa.Table
    numbers: RowNumbers
    is_fresh: bool


@dataclass
class RowChecks:
    """The checks of single rows of one type, and what they found so far."""

    type_key: TypeKey
    type_: NodeType | EdgeType
    shape: TableShape
    problems_max: int
    problems: list[RecordProblem] = field(default_factory=list)
    count: int = 0

    def identify_rows(
        self, rows: pa.Table, numbers: RowNumbers, absent: AbsentColumns
    ) -> IdentifiedRows:
        """The rows that have all required values but absent ones, and ids that fit their keys."""
        rows, numbers = self._filter_complete(rows, numbers, absent)
        is_fresh = not self.shape.key and rows[ID_COLUMN].null_count == rows.num_rows
        if self.shape.key:
            rows, numbers = self._derive_ids(rows, numbers)
        else:
            rows = replace_ids(rows, fill_ids(rows[ID_COLUMN]), self.shape)
        return IdentifiedRows(rows, numbers, is_fresh)

    def reject_unfit(
        self, found: IdentifiedRows, unfit: Iterable[tuple[pa.Array, str]]
    ) -> IdentifiedRows:
        """The rows without those of some ids, for which a default has no value."""
        is_bad = np.zeros(found.rows.num_rows, np.bool_)
        for ids, name in unfit:
            is_unfit = _to_mask(pc.is_in(found.rows[ID_COLUMN], value_set=ids))
            is_bad |= is_unfit
            violation = Violation(
                "value",
                format_unfit_default(self.type_.name, name),
                type_name=self.type_.name,
                property=name,
            )
            self._add_problems(is_unfit, found.numbers, partial(_return_violation, violation))
        rows, numbers = _without_rows(found.rows, found.numbers, is_bad)
        return IdentifiedRows(rows, numbers, found.is_fresh)

    def reject_missing(self, found: IdentifiedRows, is_there: pa.Array) -> IdentifiedRows:
        """The rows of entities that exist; the others are reported."""
        ids, is_missing = found.rows[ID_COLUMN], ~np.asarray(is_there)
        self._add_problems(
            is_missing,
            found.numbers,
            lambda row: build_missing_entity(self.type_.name, ids[row].as_py(), place=None),
        )
        rows, numbers = _without_rows(found.rows, found.numbers, is_missing)
        return IdentifiedRows(rows, numbers, found.is_fresh)

    def filter_valid(self, found: IdentifiedRows) -> IdentifiedRows:
        """The complete rows that break no rule by themselves."""
        is_bad = np.zeros(found.rows.num_rows, np.bool_)
        for check in VALUE_CHECKS:
            is_bad[self._run_check(check, found.rows, found.numbers)] = True
        rows, numbers = _without_rows(found.rows, found.numbers, is_bad)
        return IdentifiedRows(rows, numbers, found.is_fresh)

    def check_rejected_rows(self, rows: pa.Table, numbers: RowNumbers) -> None:
        """Report which rules the records break that are refused for something else."""
        self._run_check(check_rules, rows, numbers)

    def _filter_complete(
        self, rows: pa.Table, numbers: RowNumbers, absent: AbsentColumns
    ) -> tuple[pa.Table, RowNumbers]:
        is_bad = np.zeros(rows.num_rows, np.bool_)
        for column, name, message in iter_required_columns(self.type_, self.shape):
            if column not in absent and rows[column].null_count:
                is_null = _to_mask(rows[column].is_null())
                is_bad |= is_null
                missing = Violation(
                    "required", message, type_name=self.type_.name, property=name, value=_NULL_TEXT
                )
                self._add_problems(is_null, numbers, partial(_return_violation, missing))
        return self._drop_bad_rows(rows, numbers, is_bad)

    def _derive_ids(self, rows: pa.Table, numbers: RowNumbers) -> tuple[pa.Table, RowNumbers]:
        is_bad = np.zeros(rows.num_rows, np.bool_)
        for member, column in self.shape.key.items():
            if pa.types.is_floating(rows[column].type):
                # Nulls are reported as missing; what is left are numbers that are not finite.
                is_unusable = ~_to_mask(pc.fill_null(pc.is_finite(rows[column]), False))
                build_violation = partial(self._build_key_violation, member, rows[column])
                self._add_problems(is_unusable, numbers, build_violation)
                is_bad |= is_unusable
        rows, numbers = self._drop_bad_rows(rows, numbers, is_bad)
        ids, given = compute_entity_ids(rows, self.shape), rows[ID_COLUMN]
        differs = np.zeros(rows.num_rows, np.bool_)
        if given.null_count < rows.num_rows:
            differs = _to_mask(pc.fill_null(pc.not_equal(given, ids), False))
            self._add_problems(
                differs,
                numbers,
                lambda row: build_id_mismatch(
                    self.type_.name,
                    given=given[row].as_py(),
                    derived=ids[row].as_py(),
                    problem=ID_MISMATCH,
                    place=None,
                ),
            )
        return self._drop_bad_rows(replace_ids(rows, ids, self.shape), numbers, differs)

    def _drop_bad_rows(
        self, rows: pa.Table, numbers: RowNumbers, is_bad: _Mask
    ) -> tuple[pa.Table, RowNumbers]:
        """The good ones among some rows; what else is wrong with the bad ones is reported."""
        if is_bad.any():
            self.check_rejected_rows(rows.filter(pa.array(is_bad)), numbers[is_bad])
        return _without_rows(rows, numbers, is_bad)

    def _build_key_violation(self, member: str, values: pa.ChunkedArray, row: int) -> Violation:
        return build_unusable_key(self.type_.name, member, str(values[row].as_py()), place=None)

    def _run_check(self, check: _Check, rows: pa.Table, numbers: RowNumbers) -> Positions:
        """The rows that a check finds something wrong with, which it reports."""
        change = TypeChange(self.shape, WriteMode.UPSERT, rows, NO_IDS)
        findings = RowFindings(self._room)
        check(RuleSubject(self.type_key, self.type_, change), findings)
        self.count += findings.count
        self.problems += [
            RecordProblem(RULES[violation.rule].stage, int(numbers[row]), violation)
            for row, violation in findings.listed
        ]
        return findings.rows

    def _add_problems(
        self, is_bad: _Mask, numbers: RowNumbers, build_violation: Callable[[int], Violation]
    ) -> None:
        bad = np.flatnonzero(is_bad)
        self.count += len(bad)
        self.problems += [
            RecordProblem(CheckStage.READ, int(numbers[row]), build_violation(row))
            for row in bad[: self._room].tolist()
        ]

    @property
    def _room(self) -> int:
        return max(self.problems_max - len(self.problems), 0)


def _return_violation(violation: Violation, _: int) -> Violation:
    return violation


def _to_mask(values: pa.ChunkedArray) -> _Mask:
    return np.asarray(values.to_numpy(), np.bool_)


def _without_rows(
    rows: pa.Table, numbers: RowNumbers, is_bad: _Mask
) -> tuple[pa.Table, RowNumbers]:
    if not is_bad.any():
        return rows, numbers
    return rows.filter(pa.array(~is_bad)), numbers[~is_bad]


@dataclass(frozen=True, slots=True)
class RecordProblem:
    """A violation at a record, by its number in its unit; 0 stands for the file as a whole."""

    stage: CheckStage
    number: int
    violation: Violation
    hint: str | None = None


class RowFindings(Findings):
    """Findings that also know their rows, all of them, so that the rows can be left out."""

    def __init__(self, listed_max: int) -> None:
        super().__init__(listed_max)
        self.listed: list[tuple[int, Violation]] = []
        self._bad: list[Positions] = []

    def add(self, finding: Finding) -> None:
        """Collect what one check found."""
        self.count += len(finding.rows)
        self._bad.append(finding.rows)
        room = max(self._shown_max - len(self.listed), 0)
        self.listed += [(row, finding.build_violation(row)) for row in finding.rows[:room].tolist()]

    def add_by_row(self, findings: Sequence[Finding]) -> None:
        """Collect what several checks found in the same rows."""
        for finding in findings:
            self.add(finding)

    @property
    def rows(self) -> Positions:
        """Every row that something is wrong with, in order."""
        found = np.concatenate([*self._bad, np.empty(0, np.int64)])
        return np.unique(found)
