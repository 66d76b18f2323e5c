"""Exact sums and means of groups: each is rounded once, whatever the order of the rows.

Numbers are cut into integers that cannot overflow when they are added. The sums of these are put
together in limbs of 32 bits, least first, of which each group has a row, divided by the divisor of
the group if there is one, and only then rounded.
"""

from __future__ import annotations

import math
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

_Floats: TypeAlias = npt.NDArray[np.float64]
_Integers: TypeAlias = npt.NDArray[np.int64]

_LIMB_BITS: Final = 32
_LIMB_MASK: Final = np.int64(2**_LIMB_BITS - 1)
_MANTISSA_BITS: Final = 53
_INTEGER_BITS: Final = 62
# Floats this far apart, or this far from one, are rare: their groups are put together one by one.
_PARTS_MAX: Final = 4
_EXPONENT_MAX: Final = 900
# The least bit of a float, and what makes keys of groups and exponents.
_EXPONENT_MIN: Final = -1_126
_EXPONENT_RADIX: Final = 4_096
_LOW_BITS: Final = 26
# Limbs below a number, so that its quotient has more bits than a float.
_QUOTIENT_LIMBS: Final = 3
# A remainder below this, with one more limb, fits 63 bits.
_DIVISOR_MAX: Final = 2**31 - 1
_FLOAT_EXACT: Final = 2**53


def sum_integers(
    values: npt.NDArray[Any], groups: _Integers, count: int, divisors: _Integers | None = None
) -> _Floats:
    """The sums of integers, or those divided by a positive integer each, as the nearest floats."""
    if not len(values):
        return np.zeros(count)
    if max(abs(int(values.min())), abs(int(values.max()))) * len(values) < 2**63:
        sums = np.zeros(count, np.int64)
        np.add.at(sums, groups, values.astype(np.int64, copy=False))
        return _divide_exact_sums(sums, divisors)
    if values.dtype != np.uint64:
        values = values.astype(np.int64, copy=False)
    high, low = np.zeros(count, np.int64), np.zeros(count, np.int64)
    np.add.at(high, groups, (values >> values.dtype.type(_LIMB_BITS)).astype(np.int64))
    np.add.at(low, groups, (values & values.dtype.type(_LIMB_MASK)).astype(np.int64))
    return _divide_limbs(np.stack([low, high, np.zeros_like(high)], axis=1), divisors, exponent=0)


def _divide_exact_sums(sums: _Integers, divisors: _Integers | None) -> _Floats:
    floats = sums.astype(np.float64)
    if divisors is None:
        return floats
    most = max(
        abs(int(sums.min(initial=0))), int(sums.max(initial=0)), int(divisors.max(initial=1))
    )
    if most <= _FLOAT_EXACT:
        # One division of exact numbers rounds once.
        quotients: _Floats = floats / divisors
        return quotients
    limbs = np.stack([sums & _LIMB_MASK, sums >> _LIMB_BITS, np.zeros_like(sums)], axis=1)
    return _divide_limbs(limbs, divisors, exponent=0)


def sum_floats(
    values: _Floats, groups: _Integers, count: int, divisors: _Integers | None = None
) -> _Floats:
    """The sums of floats, or those divided by a positive integer each.

    NaN, and infinities of both signs together, give NaN.
    """
    is_finite = np.isfinite(values)
    if is_finite.all():
        return _sum_finite(values, groups, count, divisors)
    odd = np.zeros(count)
    with np.errstate(invalid="ignore"):
        np.add.at(odd, groups[~is_finite], values[~is_finite])
    sums = _sum_finite(values[is_finite], groups[is_finite], count, divisors)
    return np.where(np.bincount(groups[~is_finite], minlength=count) > 0, odd, sums)


def _sum_finite(
    values: _Floats, groups: _Integers, count: int, divisors: _Integers | None
) -> _Floats:
    exponents = np.frexp(values[values != 0])[1]
    if not len(exponents):
        return np.zeros(count)
    lowest, highest = int(exponents.min()) - _MANTISSA_BITS, int(exponents.max())
    # Parts of so many bits do not overflow, however many rows are added.
    bits = _INTEGER_BITS - len(values).bit_length()
    parts = -(-(highest - lowest) // bits)
    if parts > _PARTS_MAX or max(highest, -lowest) > _EXPONENT_MAX:
        return _sum_one_by_one(values, groups, count, divisors)
    limbs = np.zeros((count, (parts * bits + _INTEGER_BITS) // _LIMB_BITS + 3), np.int64)
    rest = values
    for part in reversed(range(parts)):
        scale = 2.0 ** (lowest + part * bits)
        whole = np.rint(rest * (1 / scale))
        rest = rest - whole * scale
        sums = np.zeros(count, np.int64)
        np.add.at(sums, groups, whole.astype(np.int64))
        _add_shifted(limbs, sums, part * bits)
    return _divide_limbs(limbs, divisors, exponent=lowest)


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


def _divide_limbs(limbs: _Integers, divisors: _Integers | None, *, exponent: int) -> _Floats:
    """The numbers of limbs, times two to the exponent, divided, each as the nearest float."""
    limbs = _normalize_limbs(limbs)
    is_negative = limbs[:, -1] < 0
    if is_negative.any():
        limbs = _normalize_limbs(np.where(is_negative[:, None], -limbs, limbs))
    if divisors is None:
        found = _round_limbs(limbs, exponent=exponent)
    else:
        found = _divide_nonnegative(limbs, divisors, exponent=exponent)
    signed: _Floats = np.where(is_negative, -found, found)
    return signed


def _divide_nonnegative(limbs: _Integers, divisors: _Integers, *, exponent: int) -> _Floats:
    """Numbers that are not negative, divided as on paper: from the highest limb down."""
    width = limbs.shape[1] + _QUOTIENT_LIMBS
    exponent -= _QUOTIENT_LIMBS * _LIMB_BITS
    by = np.minimum(divisors, _DIVISOR_MAX).astype(np.uint64)
    found = np.zeros((width, len(limbs)), np.uint64)
    rest = np.zeros(len(limbs), np.uint64)
    for place in reversed(range(width)):
        rest <<= np.uint64(_LIMB_BITS)
        if place >= _QUOTIENT_LIMBS:
            rest |= limbs[:, place - _QUOTIENT_LIMBS].astype(np.uint64)
        np.floor_divide(rest, by, out=found[place])
        rest -= found[place] * by
    # A last bit says whether anything was cut off.
    found[0] |= rest != 0
    quotients = _round_limbs(np.ascontiguousarray(found.T).astype(np.int64), exponent=exponent)
    for group in np.flatnonzero(divisors > _DIVISOR_MAX):
        places = enumerate(limbs[group].tolist(), _QUOTIENT_LIMBS)
        whole = sum(limb << (_LIMB_BITS * place) for place, limb in places)
        quotients[group] = _round_quotient(whole, int(divisors[group]), exponent)
    return quotients


def _round_limbs(limbs: _Integers, *, exponent: int) -> _Floats:
    """Settled numbers that are not negative, times two to the exponent, as the nearest floats."""
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
        found: _Floats = np.ldexp(exact.astype(np.float64), scale.astype(np.int32))
    return found


def _normalize_limbs(limbs: _Integers) -> _Integers:
    """The same numbers with every limb but the last within its bits."""
    settled = limbs.copy()
    for place in range(settled.shape[1] - 1):
        settled[:, place + 1] += settled[:, place] >> _LIMB_BITS
        settled[:, place] &= _LIMB_MASK
    return settled


def _sum_one_by_one(
    values: _Floats, groups: _Integers, count: int, divisors: _Integers | None
) -> _Floats:
    """The sums of groups one by one: for groups of numbers from very small to very large.

    The numbers of a group that have one exponent are added first, as integers.
    """
    mantissas, exponents = np.frexp(values)
    wholes = np.ldexp(mantissas, _MANTISSA_BITS).astype(np.int64)
    places = exponents.astype(np.int64) - _MANTISSA_BITS - _EXPONENT_MIN
    keys, at = np.unique(groups * _EXPONENT_RADIX + places, return_inverse=True)
    high, low = np.zeros(len(keys), np.int64), np.zeros(len(keys), np.int64)
    np.add.at(high, at, wholes >> _LOW_BITS)
    np.add.at(low, at, wholes & (2**_LOW_BITS - 1))
    totals = [0] * count
    for key, upper, lower in zip(keys.tolist(), high.tolist(), low.tolist(), strict=True):
        group, shift = divmod(key, _EXPONENT_RADIX)
        totals[group] += ((upper << _LOW_BITS) + lower) << shift
    by = [1] * count if divisors is None else divisors.tolist()
    return np.array(
        [
            _round_quotient(total, each, _EXPONENT_MIN)
            for total, each in zip(totals, by, strict=True)
        ]
    )


def _round_quotient(number: int, divisor: int, exponent: int) -> float:
    """The float nearest to a number times two to the exponent, divided."""
    if exponent >= 0:
        number <<= exponent
    else:
        divisor <<= -exponent
    try:
        # Python rounds the quotient of two integers once.
        return number / divisor
    except OverflowError:
        return math.inf if number > 0 else -math.inf
