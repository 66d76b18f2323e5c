"""Search in sorted arrays: where values are, which of them are there, and how often."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Positions = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]
_Array = TypeVar("_Array", bound=npt.NDArray[Any])


def find_positions(values: npt.NDArray[Any], ordered: npt.NDArray[Any]) -> tuple[Positions, Mask]:
    """Where each value is in a sorted array, or would be put; and which values are there."""
    positions = np.searchsorted(ordered, values)
    if not len(ordered):
        return positions, np.zeros(len(values), np.bool_)
    is_found: Mask = ordered.take(positions, mode="clip") == values
    return positions, is_found


def are_among(values: npt.NDArray[Any], ordered: npt.NDArray[Any]) -> Mask:
    """Which values are in a sorted array."""
    return find_positions(values, ordered)[1]


def count_among(values: npt.NDArray[Any], ordered: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """How often each value is in a sorted array."""
    return np.searchsorted(ordered, values, "right") - np.searchsorted(ordered, values)


def drop_repeated(ordered: _Array) -> _Array:
    """The values of a sorted array, each of them once."""
    if len(ordered) <= 1:
        return ordered
    is_first = np.empty(len(ordered), np.bool_)
    is_first[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first]  # type: ignore[return-value]  # NumPy loses the type of the array
