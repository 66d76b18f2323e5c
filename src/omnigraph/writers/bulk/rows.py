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
from omnigraph.execution.entity_ids import entity_ids
from omnigraph.schema.accepted import TypeKey
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.bulk.problems import Problem, RowFindings, Step
from omnigraph.writers.change import NO_IDS, TypeChange, WriteMode
from omnigraph.writers.inputs.data import AbsentColumns
from omnigraph.writers.inputs.reading import Numbers
from omnigraph.writers.inputs.required import required_columns
from omnigraph.writers.load import filled_ids, identified
from omnigraph.writers.refusals import MISMATCH, unfit_id, unusable_key
from omnigraph.writers.validate.findings import Findings, Positions, Subject
from omnigraph.writers.validate.values import check_form, check_rules

_Check: TypeAlias = Callable[[Subject, Findings], None]
_Mask = npt.NDArray[np.bool_]
_NULL: Final = "null"


@dataclass(frozen=True, slots=True)
class Identified:
    """Rows under their ids, with their numbers; `is_fresh` says that their ids are new."""

    rows: pa.Table
    numbers: Numbers
    is_fresh: bool


@dataclass
class RowChecks:
    """The checks of single rows of one type, and what they found so far."""

    type_key: TypeKey
    type_: NodeType | EdgeType
    shape: TableShape
    told_max: int
    problems: list[Problem] = field(default_factory=list)
    count: int = 0

    def identify(self, rows: pa.Table, numbers: Numbers, absent: AbsentColumns) -> Identified:
        """The rows that have all required values but absent ones, and ids that fit their keys."""
        rows, numbers = self._with_required(rows, numbers, absent)
        is_fresh = not self.shape.key and rows[ID_COLUMN].null_count == rows.num_rows
        if self.shape.key:
            rows, numbers = self._keyed(rows, numbers)
        else:
            rows = identified(rows, filled_ids(rows[ID_COLUMN]), self.shape)
        return Identified(rows, numbers, is_fresh)

    def within_rules(self, found: Identified) -> Identified:
        """The complete rows that break no rule by themselves."""
        is_bad = np.zeros(found.rows.num_rows, np.bool_)
        for step, check in ((Step.FORM, check_form), (Step.RULES, check_rules)):
            is_bad[self._told(step, check, found.rows, found.numbers)] = True
        rows, numbers = _without(found.rows, found.numbers, is_bad)
        return Identified(rows, numbers, found.is_fresh)

    def tell_rules(self, rows: pa.Table, numbers: Numbers) -> None:
        """Tell which rules break what there is of records that are refused for something else."""
        self._told(Step.RULES, check_rules, rows, numbers)

    def _with_required(
        self, rows: pa.Table, numbers: Numbers, absent: AbsentColumns
    ) -> tuple[pa.Table, Numbers]:
        is_bad = np.zeros(rows.num_rows, np.bool_)
        for column, name, message in required_columns(self.type_, self.shape):
            if column not in absent and rows[column].null_count:
                is_null = _mask(rows[column].is_null())
                is_bad |= is_null
                missing = Violation(
                    "required", message, type_name=self.type_.name, property=name, value=_NULL
                )
                self._note(is_null, numbers, partial(_always, missing))
        return self._left(rows, numbers, is_bad)

    def _keyed(self, rows: pa.Table, numbers: Numbers) -> tuple[pa.Table, Numbers]:
        is_bad = np.zeros(rows.num_rows, np.bool_)
        for member, column in self.shape.key.items():
            if pa.types.is_floating(rows[column].type):
                # Nulls are told as missing; what is left are numbers that are not finite.
                is_unusable = ~_mask(pc.fill_null(pc.is_finite(rows[column]), False))
                tell = partial(self._unusable, member, rows[column])
                self._note(is_unusable, numbers, tell)
                is_bad |= is_unusable
        rows, numbers = self._left(rows, numbers, is_bad)
        ids, given = entity_ids(rows, self.shape), rows[ID_COLUMN]
        differs = np.zeros(rows.num_rows, np.bool_)
        if given.null_count < rows.num_rows:
            differs = _mask(pc.fill_null(pc.not_equal(given, ids), False))
            self._note(
                differs,
                numbers,
                lambda row: unfit_id(
                    self.type_.name,
                    given=given[row].as_py(),
                    derived=ids[row].as_py(),
                    problem=MISMATCH,
                    place=None,
                ),
            )
        return self._left(identified(rows, ids, self.shape), numbers, differs)

    def _left(self, rows: pa.Table, numbers: Numbers, is_bad: _Mask) -> tuple[pa.Table, Numbers]:
        """The good ones among some rows; what else is wrong with the bad ones is told."""
        if is_bad.any():
            self.tell_rules(rows.filter(pa.array(is_bad)), numbers[is_bad])
        return _without(rows, numbers, is_bad)

    def _unusable(self, member: str, values: pa.ChunkedArray, row: int) -> Violation:
        return unusable_key(self.type_.name, member, str(values[row].as_py()), place=None)

    def _told(self, step: Step, check: _Check, rows: pa.Table, numbers: Numbers) -> Positions:
        """The rows that a check finds something wrong with, which is told."""
        change = TypeChange(self.shape, WriteMode.UPSERT, rows, NO_IDS)
        findings = RowFindings(self._room)
        check(Subject(self.type_key, self.type_, change), findings)
        self.count += findings.count
        self.problems += [
            Problem(step, int(numbers[row]), violation) for row, violation in findings.told
        ]
        return findings.rows

    def _note(self, is_bad: _Mask, numbers: Numbers, tell: Callable[[int], Violation]) -> None:
        bad = np.flatnonzero(is_bad)
        self.count += len(bad)
        self.problems += [
            Problem(Step.READ, int(numbers[row]), tell(row)) for row in bad[: self._room].tolist()
        ]

    @property
    def _room(self) -> int:
        return max(self.told_max - len(self.problems), 0)


def _always(violation: Violation, _: int) -> Violation:
    return violation


def _mask(values: pa.ChunkedArray) -> _Mask:
    return np.asarray(values.to_numpy(), np.bool_)


def _without(rows: pa.Table, numbers: Numbers, is_bad: _Mask) -> tuple[pa.Table, Numbers]:
    if not is_bad.any():
        return rows, numbers
    return rows.filter(pa.array(~is_bad)), numbers[~is_bad]
