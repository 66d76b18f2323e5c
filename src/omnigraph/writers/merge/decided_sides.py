"""Decisions on entities that both sides changed: whose state, or whose value, is taken first.

A decision for a value that no side has starts from the entity as a side has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import InvalidArgumentError
from omnigraph.rows.comparison import to_numpy
from omnigraph.writers.merge.conflict_decisions import Decision, Take
from omnigraph.writers.merge.conflict_kinds import OURS, THEIRS
from omnigraph.writers.merge.located_rows import Mask
from omnigraph.writers.merge.merged_schema import MergedType
from omnigraph.writers.merge.property_rules import MixedRows, ThreeRows, name_columns

_Sides = npt.NDArray[np.str_]


def _require_one_side(decisions: Sequence[Decision]) -> None:
    """Refuse to divide properties that are one value: their sides differ as a whole."""
    takes: dict[str, Decision] = {}
    for each in decisions:
        known = takes.setdefault(each.entity_id, each)
        if {known.take, each.take} == {Take.OURS, Take.THEIRS}:
            raise InvalidArgumentError(
                "resolve",
                f"{known} and {each} are one value: '{known.take}' or '{each.take}' is for both",
            )


class DecidedSides:
    """The sides that decisions take for entities of one type, by row."""

    def __init__(self, decisions: Sequence[Decision], ids: pa.Array, rows: ThreeRows) -> None:
        self._parts = [each for each in decisions if each.property is not None]
        self._ids = ids
        # Whole entities: the side of each row, empty where none is decided.
        self.whole: _Sides = np.full(len(ids), "", dtype="<U6")
        whole = [each for each in decisions if each.property is None]
        is_ours = rows.ours.is_there
        of_take: dict[Take, _Sides] = {
            Take.OURS: np.full(len(ids), OURS),
            Take.THEIRS: np.full(len(ids), THEIRS),
            # What is deleted is first as the side without it has it, and what is kept the reverse.
            Take.DELETE: np.where(is_ours, THEIRS, OURS),
            Take.BASE: np.where(is_ours, OURS, THEIRS),
            Take.VALUE: np.where(is_ours, OURS, THEIRS),
        }
        for take, side in of_take.items():
            chosen = [each.entity_id for each in whole if each.take is take]
            self.whole = np.where(self._are_among(chosen), side, self.whole)

    def decide_parts(self, mixed: MixedRows, type_: MergedType) -> MixedRows:
        """The rows of both sides with single properties decided."""
        names = name_columns(type_.shape)
        parts = []
        for part in mixed.parts:
            own = [each for each in self._parts if each.property in map(names.get, part.columns)]
            _require_one_side(own)
            is_decided = self._are_among([each.entity_id for each in own])[mixed.places]
            theirs = [each.entity_id for each in own if each.take is Take.THEIRS]
            is_theirs = self._are_among(theirs)[mixed.places]
            parts.append(
                replace(
                    part,
                    is_taken=part.is_taken | (part.is_open & is_theirs),
                    is_open=part.is_open & ~is_decided,
                )
            )
        return replace(mixed, parts=tuple(parts))

    def _are_among(self, ids: list[str]) -> Mask:
        if not ids:
            return np.zeros(len(self._ids), np.bool_)
        found: Mask = to_numpy(pc.is_in(self._ids, value_set=pa.array(ids, self._ids.type)))
        return found
