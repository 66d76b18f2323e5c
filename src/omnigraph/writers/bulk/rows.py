"""Rows of one type made ready to be written: identified, and without those that break a rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import Violation
from omnigraph.execution.columns import TableShape
from omnigraph.execution.entity_ids import compute_entity_ids
from omnigraph.schema.accepted import TypeKey
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.bulk.problems import CheckStage, RecordProblem, RowFindings
from omnigraph.writers.change import NO_IDS, TypeChange, WriteMode
from omnigraph.writers.inputs.data import AbsentColumns
from omnigraph.writers.inputs.reading import RowNumbers
from omnigraph.writers.inputs.required import iter_required_columns
from omnigraph.writers.load import fill_ids, replace_ids
from omnigraph.writers.refusals import ID_MISMATCH, build_id_mismatch, build_unusable_key
from omnigraph.writers.validate.findings import Findings, Positions, RuleSubject
from omnigraph.writers.validate.values import check_form, check_rules

_Check: TypeAlias = Callable[[RuleSubject, Findings], None]
_Mask = npt.NDArray[np.bool_]
_NULL_TEXT: Final = "null"


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

    def filter_valid(self, found: IdentifiedRows) -> IdentifiedRows:
        """The complete rows that break no rule by themselves."""
        is_bad = np.zeros(found.rows.num_rows, np.bool_)
        for step, check in ((CheckStage.FORM, check_form), (CheckStage.RULES, check_rules)):
            is_bad[self._run_check(step, check, found.rows, found.numbers)] = True
        rows, numbers = _without_rows(found.rows, found.numbers, is_bad)
        return IdentifiedRows(rows, numbers, found.is_fresh)

    def check_rejected_rows(self, rows: pa.Table, numbers: RowNumbers) -> None:
        """Tell which rules break what there is of records that are refused for something else."""
        self._run_check(CheckStage.RULES, check_rules, rows, numbers)

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
                # Nulls are told as missing; what is left are numbers that are not finite.
                is_unusable = ~_to_mask(pc.fill_null(pc.is_finite(rows[column]), False))
                tell = partial(self._build_key_violation, member, rows[column])
                self._add_problems(is_unusable, numbers, tell)
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
        """The good ones among some rows; what else is wrong with the bad ones is told."""
        if is_bad.any():
            self.check_rejected_rows(rows.filter(pa.array(is_bad)), numbers[is_bad])
        return _without_rows(rows, numbers, is_bad)

    def _build_key_violation(self, member: str, values: pa.ChunkedArray, row: int) -> Violation:
        return build_unusable_key(self.type_.name, member, str(values[row].as_py()), place=None)

    def _run_check(
        self, step: CheckStage, check: _Check, rows: pa.Table, numbers: RowNumbers
    ) -> Positions:
        """The rows that a check finds something wrong with, which is told."""
        change = TypeChange(self.shape, WriteMode.UPSERT, rows, NO_IDS)
        findings = RowFindings(self._room)
        check(RuleSubject(self.type_key, self.type_, change), findings)
        self.count += findings.count
        self.problems += [
            RecordProblem(step, int(numbers[row]), violation) for row, violation in findings.told
        ]
        return findings.rows

    def _add_problems(
        self, is_bad: _Mask, numbers: RowNumbers, tell: Callable[[int], Violation]
    ) -> None:
        bad = np.flatnonzero(is_bad)
        self.count += len(bad)
        self.problems += [
            RecordProblem(CheckStage.READ, int(numbers[row]), tell(row))
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
