"""Decisions on entities that both sides changed: whose state, or whose value, is taken first.

A decision for a value that no side has starts from the entity as it is merged, or as the only side
with it has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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


def _require_one_take(decisions: Sequence[Decision], members: Sequence[str]) -> None:
    """Refuse to divide properties that are one value: it is taken, or given, as a whole."""
    groups: dict[str, list[Decision]] = {}
    for each in decisions:
        groups.setdefault(each.entity_id, []).append(each)
    for first, *others in groups.values():
        for each in others:
            if each.take is not first.take:
                what = f"'{first.take}' or '{each.take}' is for both"
                raise InvalidArgumentError("resolve", f"{first} and {each} are one value: {what}")
        given = {each.property for each in (first, *others)}
        if first.take is Take.VALUE and (
            missing := [each for each in members if each not in given]
        ):
            raise InvalidArgumentError(
                "resolve",
                f"{first} is one value with {', '.join(missing)}: a value is for all of them",
                hint="give each of them a value, or take a side for one of them",
            )


def _iter_parts(decisions: Sequence[Decision]) -> Iterator[Decision]:
    """The decisions on properties; a value of an entity is one for each property that it has."""
    for each in decisions:
        if each.property is not None:
            yield each
        elif isinstance(each.value, Mapping):
            for name, value in each.value.items():
                yield replace(each, property=name, value=value)


class DecidedSides:
    """The sides that decisions take for entities of one type, by row."""

    def __init__(
        self, decisions: Sequence[Decision], ids: pa.Array, rows: ThreeRows, mixed: MixedRows
    ) -> None:
        self._parts = list(_iter_parts(decisions))
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
            is_chosen = self._are_among(chosen)
            if take is Take.VALUE:
                # Merged by property, an entity leaves what the value lacks to the property rules.
                is_chosen[mixed.places] = False
            self.whole = np.where(is_chosen, side, self.whole)

    def decide_parts(self, mixed: MixedRows, type_: MergedType) -> MixedRows:
        """The rows of both sides with single properties decided."""
        names, keys = name_columns(type_.shape), type_.shape.key.values()
        parts = []
        for part in mixed.parts:
            own = [each for each in self._parts if each.property in map(names.get, part.columns)]
            is_decided = self._are_among([each.entity_id for each in own])[mixed.places]
            places = mixed.places[part.is_open & is_decided]
            open_ids = set(self._ids.take(pa.array(places)).to_pylist())
            members = [names[each] for each in part.columns if each not in keys]
            _require_one_take([each for each in own if each.entity_id in open_ids], members)
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
