"""Exact sums of groups: every sum is rounded once, whatever the order of the rows.

Numbers are cut into integers that cannot overflow when they are added. The sums of these are put
together in limbs of 32 bits, least first, of which each group has a row, and only then rounded.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

_Floats: TypeAlias = npt.NDArray[np.float64]
_Integers: TypeAlias = npt.NDArray[np.int64]

_LIMB_BITS: Final = 32
_LIMB_MASK: Final = np.int64(2**_LIMB_BITS - 1)
_MANTISSA_BITS: Final = 53
_INTEGER_BITS: Final = 62
# Floats this far apart, or this far from one, are rare: their groups are summed one by one.
_PARTS_MAX: Final = 4
_EXPONENT_MAX: Final = 900


def integer_sums(values: npt.NDArray[Any], groups: _Integers, count: int) -> _Floats:
    """The sums of integers, each as the nearest float."""
    if not len(values):
        return np.zeros(count)
    if max(abs(int(values.min())), abs(int(values.max()))) * len(values) < 2**63:
        sums = np.zeros(count, np.int64)
        np.add.at(sums, groups, values.astype(np.int64, copy=False))
        return sums.astype(np.float64)
    if values.dtype != np.uint64:
        values = values.astype(np.int64, copy=False)
    high, low = np.zeros(count, np.int64), np.zeros(count, np.int64)
    np.add.at(high, groups, (values >> values.dtype.type(_LIMB_BITS)).astype(np.int64))
    np.add.at(low, groups, (values & values.dtype.type(_LIMB_MASK)).astype(np.int64))
    return _rounded(np.stack([low, high, np.zeros_like(high)], axis=1), exponent=0)


def float_sums(values: _Floats, groups: _Integers, count: int) -> _Floats:
    """The sums of floats; NaN, and infinities of both signs together, give NaN."""
    is_finite = np.isfinite(values)
    if is_finite.all():
        return _finite_sums(values, groups, count)
    odd = np.zeros(count)
    with np.errstate(invalid="ignore"):
        np.add.at(odd, groups[~is_finite], values[~is_finite])
    sums = _finite_sums(values[is_finite], groups[is_finite], count)
    return np.where(np.bincount(groups[~is_finite], minlength=count) > 0, odd, sums)


def _finite_sums(values: _Floats, groups: _Integers, count: int) -> _Floats:
    exponents = np.frexp(values[values != 0])[1]
    if not len(exponents):
        return np.zeros(count)
    lowest, highest = int(exponents.min()) - _MANTISSA_BITS, int(exponents.max())
    # Parts of so many bits do not overflow, however many rows are added.
    bits = _INTEGER_BITS - len(values).bit_length()
    parts = -(-(highest - lowest) // bits)
    if parts > _PARTS_MAX or max(highest, -lowest) > _EXPONENT_MAX:
        return _summed_singly(values, groups, count)
    limbs = np.zeros((count, (parts * bits + _INTEGER_BITS) // _LIMB_BITS + 3), np.int64)
    rest = values
    for part in reversed(range(parts)):
        scale = 2.0 ** (lowest + part * bits)
        whole = np.rint(rest * (1 / scale))
        rest = rest - whole * scale
        sums = np.zeros(count, np.int64)
        np.add.at(sums, groups, whole.astype(np.int64))
        _add_shifted(limbs, sums, part * bits)
    return _rounded(limbs, exponent=lowest)


def _add_shifted(limbs: _Integers, numbers: _Integers, shift: int) -> None:
    """Add an integer, shifted to the left, to the limbs of each group."""
    first, bits = divmod(shift, _LIMB_BITS)
    signs, magnitudes = np.sign(numbers), np.abs(numbers)
    low = (magnitudes & _LIMB_MASK).astype(np.uint64) << np.uint64(bits)
    high = (magnitudes >> _LIMB_BITS) << bits
    limbs[:, first] += signs * (low & np.uint64(_LIMB_MASK)).astype(np.int64)
    limbs[:, first + 1] += signs * (low >> np.uint64(_LIMB_BITS)).astype(np.int64)
    limbs[:, first + 1] += signs * (high & _LIMB_MASK)
    limbs[:, first + 2] += signs * (high >> _LIMB_BITS)


def _rounded(limbs: _Integers, *, exponent: int) -> _Floats:
    """The numbers of limbs, times two to the exponent, each as the nearest float."""
    limbs = _settled(limbs)
    is_negative = limbs[:, -1] < 0
    limbs = _settled(np.where(is_negative[:, None], -limbs, limbs))
    rows = np.arange(len(limbs))
    # The highest limb that is not zero, with two below it: at least 65 bits.
    padded = np.pad(limbs, ((0, 0), (2, 0)))
    top = padded.shape[1] - 1 - np.argmax(padded[:, ::-1] != 0, axis=1)
    top = np.maximum(top, 2)
    highest = padded[rows, top]
    room = _LIMB_BITS - np.frexp(highest.astype(np.float64))[1]
    room = np.clip(room, 0, _LIMB_BITS).astype(np.uint64)
    upper = (highest.astype(np.uint64) << np.uint64(_LIMB_BITS)) | padded[rows, top - 1].astype(
        np.uint64
    )
    lower = padded[rows, top - 2].astype(np.uint64)
    bits = (upper << room) | (lower >> (np.uint64(_LIMB_BITS) - room))
    rest = lower & ((np.uint64(1) << (np.uint64(_LIMB_BITS) - room)) - np.uint64(1))
    is_below = np.cumsum(padded != 0, axis=1)[rows, top - 2] > (lower != 0)
    # The conversion rounds once: a last bit says whether anything was cut off.
    exact = bits | ((rest != 0) | is_below).astype(np.uint64)
    with np.errstate(over="ignore"):
        scale = exponent + (top - 3) * _LIMB_BITS - room.astype(np.int64)
        found = np.ldexp(exact.astype(np.float64), scale.astype(np.int32))
    signed: _Floats = np.where(is_negative, -found, found)
    return signed


def _settled(limbs: _Integers) -> _Integers:
    """The same numbers with every limb but the last within its bits."""
    settled = limbs.copy()
    for place in range(settled.shape[1] - 1):
        settled[:, place + 1] += settled[:, place] >> _LIMB_BITS
        settled[:, place] &= _LIMB_MASK
    return settled


def _summed_singly(values: _Floats, groups: _Integers, count: int) -> _Floats:
    """The sums of groups one by one: for many groups of numbers from very small to very large."""
    counts = np.bincount(groups, minlength=count)
    ordered = values[np.argsort(groups, kind="stable")]
    ends = np.cumsum(counts)
    starts = ends - counts
    sums = np.zeros(count)
    sums[counts == 1] = ordered[starts[counts == 1]]
    pairs = starts[counts == 2]
    with np.errstate(over="ignore"):
        # One addition rounds once.
        sums[counts == 2] = ordered[pairs] + ordered[pairs + 1]
    for place in np.flatnonzero(counts > 2):
        sums[place] = _float_sum(ordered[starts[place] : ends[place]].tolist())
    # One zero, as in sums that are made together.
    return sums + 0.0


def _float_sum(values: list[float]) -> float:
    try:
        return math.fsum(values)
    except OverflowError:
        total = sum(map(Fraction, values), Fraction())
        try:
            return float(total)
        except OverflowError:
            return math.inf if total > 0 else -math.inf
