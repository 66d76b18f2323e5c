"""Old ids of keyed nodes: another spelling of the key, or one member of it, for the derived id.

Only compatible records may bring them. The node gets its derived id, and the edges of the same load
follow, per type of their ends.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.execution.columns import TableShape
from omnigraph.execution.entity_ids import format_canonical_texts
from omnigraph.schema.types import INTEGER_RANGES, PropertyType, Scalar
from omnigraph.writers.inputs.temporal_texts import parse_dates, parse_datetimes
from omnigraph.writers.inputs.value_reading import MisfitError, make_coercer

_Mask = np.ndarray[Any, np.dtype[np.bool_]]


class LegacyIds:
    """Which old ids stand for which derived ones, by node type."""

    def __init__(self) -> None:
        self._renames: dict[str, tuple[pa.Array, pa.Array]] = {}

    def add_renames(self, type_name: str, old: pa.Array, new: pa.Array) -> _Mask:
        """Remember old ids and what each stands for; the mask says which stand for several."""
        pairs = pa.table({"old": old, "new": new}).group_by(["old", "new"]).aggregate([])
        times = pairs.group_by("old").aggregate([([], "count_all")])
        ambiguous = times.filter(pc.greater(times["count_all"], 1))["old"]
        self._renames[type_name] = (
            pairs["old"].combine_chunks(),
            pairs["new"].combine_chunks(),
        )
        found = pc.is_in(old, value_set=ambiguous.combine_chunks())
        return np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)

    def rename_ends(self, ends: pa.ChunkedArray, type_name: str) -> pa.ChunkedArray:
        """The ends of edges at a node type, under the ids its nodes now have."""
        if type_name not in self._renames:
            return ends
        old, new = self._renames[type_name]
        places = pc.index_in(ends, value_set=old)
        return pc.coalesce(new.take(places.combine_chunks()), ends)


def match_key_spellings(
    given: pa.Array, rows: pa.Table, shape: TableShape, types: Mapping[str, PropertyType]
) -> _Mask:
    """Which of the given ids are a member of their row's key, in any spelling of its value."""
    spells = np.zeros(len(given), np.bool_)
    for member, column in shape.key.items():
        values = rows[column].combine_chunks()
        spells |= _match_usual_spelling(given, values, types[member])
    odd = np.flatnonzero(~spells)
    # What is left is spelled as no writer spells it, or wrong.
    for member, column in shape.key.items():
        read = make_coercer(types[member], is_strict=True)
        values = _to_integers(rows[column].combine_chunks()).take(pa.array(odd)).to_pylist()
        for row, text, value in zip(
            odd, given.take(pa.array(odd)).to_pylist(), values, strict=True
        ):
            spells[row] |= _is_spelling(text, value, read)
    return spells


def _match_usual_spelling(given: pa.Array, values: pa.Array, type_: PropertyType) -> _Mask:
    spells = pc.equal(given, format_canonical_texts(values))
    if type_.scalar is Scalar.DATE:
        texts = parse_dates(given).values.cast(pa.int32())
        spells = pc.or_(spells, pc.fill_null(pc.equal(texts, _to_integers(values)), False))
    elif type_.scalar in INTEGER_RANGES:
        # Writers pad numbers with zeros; JSON has no such numbers.
        padless = pc.replace_substring_regex(given, "^(-?)0+([0-9])", r"\1\2")
        spells = pc.or_(spells, pc.equal(padless, format_canonical_texts(values)))
    elif type_.scalar is Scalar.DATETIME:
        texts = parse_datetimes(given, is_strict=True).values
        spells = pc.or_(spells, pc.fill_null(pc.equal(texts, _to_integers(values)), False))
    return np.asarray(pc.fill_null(spells, False).to_numpy(zero_copy_only=False), np.bool_)


def _to_integers(values: pa.Array) -> pa.Array:
    if pa.types.is_date32(values.type):
        return values.cast(pa.int32())
    return values.cast(pa.int64()) if pa.types.is_date64(values.type) else values


def _is_spelling(text: str, value: Any, read: Any) -> bool:
    candidates: list[Any] = [text]
    with suppress(ValueError, RecursionError):
        candidates.append(json.loads(text))
    for candidate in candidates:
        with suppress(MisfitError):
            if read(candidate) == value:
                return True
    return False
