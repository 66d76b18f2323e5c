"""Checks arguments where they enter, and converts Python values to values of the language."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from enum import Enum
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa

from omnigraph.errors import InvalidArgumentError
from omnigraph.execution.query_budget import Cancellation
from omnigraph.rows.comparison import Poll, skip_poll
from omnigraph.versioning.json_fields import require_storable_text

_Choice = TypeVar("_Choice", bound=Enum)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NO_TIME: Final = "NaT"
_MICROSECOND: Final = timedelta(microseconds=1)
# Types of values that JSON brings as they are.
_PLAIN: Final = frozenset({int, float, str, bool, type(None)})
# Items of a list that are examined between two polls: 10 milliseconds, one by one.
_ITEMS_PER_POLL: Final = 2**13

# Longer than any name of a request; records carry it.
KEY_CHARACTERS_MAX: Final = 1_000


def require_text(argument: str, value: object) -> str:
    """A text: a name, a declaration, a message."""
    return require_storable_text(argument, value)


def require_optional_text(argument: str, value: object) -> str | None:
    """A text that may be left out."""
    return None if value is None else require_storable_text(argument, value)


def require_optional_key(value: object) -> str | None:
    """An idempotency key; an empty one is most often a variable that is not set."""
    key = require_optional_text("key", value)
    if key is not None and not 0 < len(key) <= KEY_CHARACTERS_MAX:
        reason = "it is empty" if not key else f"it has more than {KEY_CHARACTERS_MAX} characters"
        raise InvalidArgumentError("key", reason, hint="use a word of its own for every request")
    return key


def require_optional_texts(argument: str, value: object) -> list[str] | None:
    """Several texts; a single text is rejected, although it is a collection of letters."""
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, Collection):
        raise InvalidArgumentError(argument, f"a {type(value).__name__} is not a list of texts")
    return [require_storable_text(argument, each) for each in value]


def require_address(uri: object) -> str:
    """Where a graph is: a text or a path."""
    found = require_storable_text("uri", os.fspath(uri) if isinstance(uri, os.PathLike) else uri)
    if "\0" in found:
        raise InvalidArgumentError("uri", "it holds a NUL character, which no path has")
    return found


def require_options(given: object) -> dict[str, str]:
    """How a store is reached."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidArgumentError("storage_options", f"a {type(given).__name__} is not a mapping")
    return {
        require_text("storage_options", name): require_text(f"storage_options[{name!r}]", value)
        for name, value in given.items()
    }


def require_optional_count(argument: str, value: object) -> int | None:
    """How many there may be; None for all."""
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidArgumentError(argument, f"a {type(value).__name__} is not a whole number")
    if value < 0:
        raise InvalidArgumentError(argument, f"{value} is negative")
    # More than a machine can count are all there are.
    return min(value, sys.maxsize)


def require_count(argument: str, value: object) -> int:
    """How many there may be."""
    found = require_optional_count(argument, value)
    if found is None:
        raise InvalidArgumentError(argument, "it is None, not a number")
    return found


def normalize_parameters(params: object, *, poll: Poll = skip_poll) -> object:
    """Parameters as JSON would bring them, and bytes; unknown ones stay."""
    if not isinstance(params, Mapping):
        return params
    return {name: _normalize_value(value, poll) for name, value in params.items()}


def hold_streams(params: Mapping[str, object] | None) -> Mapping[str, object] | None:
    """Parameters of which all can be read again, as a write that is retried reads them."""
    if not isinstance(params, Mapping):
        return params
    return {name: _hold_stream(value) for name, value in params.items()}


def _hold_stream(value: object) -> object:
    if isinstance(value, pa.RecordBatchReader):
        return value.read_all()
    return list(value) if isinstance(value, Iterator) else value


def to_microseconds(at: datetime) -> int:
    """A time as records carry it; a time without a zone could be anywhere within a day."""
    if at.tzinfo is None:
        raise InvalidArgumentError(
            "at", f"{at.isoformat()} has no time zone", hint="pass a datetime with tzinfo=UTC"
        )
    return (at - _EPOCH) // _MICROSECOND


def datetime_of(time_us: int) -> datetime:
    """The time in a record."""
    return _EPOCH + timedelta(microseconds=time_us)


def _normalize_value(value: object, poll: Poll) -> object:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case datetime():
            # Pandas has its missing times among the times.
            return None if str(value) == _NO_TIME else _format_datetime(value)
        case np.datetime64():
            # Its own text: as Python has it, a time finer than microseconds is just a number.
            return None if str(value) == _NO_TIME else str(value)
        case date():
            return value.isoformat()
        case bytes() | bytearray() | memoryview():
            # Not as text: only a Blob may be spelled so, and the declared type is not known here.
            return bytes(value)
        case np.ndarray() if value.dtype.kind == "M":
            return _normalize_items(value, poll)
        case list() | tuple():
            return _normalize_items(value, poll)
        case _:
            # Scalars and arrays of numpy, pandas and Arrow say themselves what they are in Python.
            convert = next(
                (
                    found
                    for name in ("tolist", "to_list", "to_pylist", "as_py")
                    if callable(found := getattr(value, name, None))
                ),
                None,
            )
            return value if convert is None else _normalize_value(convert(), poll)


def _normalize_items(items: Any, poll: Poll) -> list[object]:  # Any: a list, or numpy's times
    found: list[object] = []
    for start in range(0, len(items), _ITEMS_PER_POLL):
        poll()
        part = items[start : start + _ITEMS_PER_POLL]
        is_plain = _PLAIN.issuperset(map(type, part))
        found += part if is_plain else [_normalize_value(item, poll) for item in part]
    return found


def _format_datetime(value: datetime) -> str:
    if value.tzinfo is None:
        return value.isoformat()
    return value.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def parse_choice(kind: type[_Choice], argument: str, value: str) -> _Choice:
    """The member of an enumeration that a caller names."""
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(f"'{each.value}'" for each in kind)
        raise InvalidArgumentError(argument, f"'{value}' is not one of {known}") from None


def require_cancellation(cancel: object) -> Cancellation | None:
    """What stops a query from another thread, if the caller gave it."""
    if cancel is not None and not isinstance(cancel, Cancellation):
        raise InvalidArgumentError(
            "cancel", f"a {type(cancel).__name__} is not an omnigraph.Cancellation"
        )
    return cancel
