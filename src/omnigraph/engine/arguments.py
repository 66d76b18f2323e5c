"""What callers pass: checked where it enters, and values of Python as values of the language."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Final

import numpy as np

from omnigraph.errors import InvalidArgument
from omnigraph.versioning.fields import check_text

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NO_TIME: Final = "NaT"
_MICROSECOND: Final = timedelta(microseconds=1)

# Longer than any name of a request; records carry it.
KEY_CHARACTERS_MAX: Final = 1_000


def text(argument: str, value: object) -> str:
    """A text: a name, a declaration, a message."""
    return check_text(argument, value)


def text_or_none(argument: str, value: object) -> str | None:
    """A text that may be left out."""
    return None if value is None else check_text(argument, value)


def key_or_none(value: object) -> str | None:
    """An idempotency key; an empty one is most often a variable that is not set."""
    key = text_or_none("key", value)
    if key is not None and not 0 < len(key) <= KEY_CHARACTERS_MAX:
        reason = "it is empty" if not key else f"it has more than {KEY_CHARACTERS_MAX} characters"
        raise InvalidArgument("key", reason, hint="use a word of its own for every request")
    return key


def texts_or_none(argument: str, value: object) -> list[str] | None:
    """Several texts; one alone is no collection of its letters."""
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, Collection):
        raise InvalidArgument(argument, f"a {type(value).__name__} is not a list of texts")
    return [check_text(argument, each) for each in value]


def address(uri: object) -> str:
    """Where a graph is: a text or a path."""
    found = check_text("uri", os.fspath(uri) if isinstance(uri, os.PathLike) else uri)
    if "\0" in found:
        raise InvalidArgument("uri", "it holds a NUL character, which no path has")
    return found


def options(given: object) -> dict[str, str]:
    """How a store is reached."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidArgument("storage_options", f"a {type(given).__name__} is not a mapping")
    return {
        text("storage_options", name): text(f"storage_options[{name!r}]", value)
        for name, value in given.items()
    }


def count_or_none(argument: str, value: object) -> int | None:
    """How many there may be; None for all."""
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidArgument(argument, f"a {type(value).__name__} is not a number of things")
    if value < 0:
        raise InvalidArgument(argument, f"{value} is negative")
    # More than a machine can count are all there are.
    return min(value, sys.maxsize)


def plain_parameters(params: object) -> object:
    """Parameters as JSON would bring them, and bytes; unknown ones stay."""
    if not isinstance(params, Mapping):
        return params
    return {name: _plain(value) for name, value in params.items()}


def microseconds(at: datetime) -> int:
    """A time as records carry it; a time without a zone could be anywhere within a day."""
    if at.tzinfo is None:
        raise InvalidArgument(
            "at", f"{at.isoformat()} has no time zone", hint="pass a datetime with tzinfo=UTC"
        )
    return (at - _EPOCH) // _MICROSECOND


def datetime_of(time_us: int) -> datetime:
    """The time in a record."""
    return _EPOCH + timedelta(microseconds=time_us)


def _plain(value: object) -> object:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case datetime():
            # Pandas has its missing times among the times.
            return None if str(value) == _NO_TIME else _datetime_text(value)
        case np.datetime64():
            # Its own text: as Python has it, a time finer than microseconds is just a number.
            return None if str(value) == _NO_TIME else str(value)
        case date():
            return value.isoformat()
        case bytes() | bytearray() | memoryview():
            # Not as text: only a Blob may be spelled so, and the declared type is not known here.
            return bytes(value)
        case np.ndarray() if value.dtype.kind == "M":
            return [_plain(item) for item in value]
        case list() | tuple():
            return [_plain(item) for item in value]
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
            return value if convert is None else _plain(convert())


def _datetime_text(value: datetime) -> str:
    if value.tzinfo is None:
        return value.isoformat()
    return value.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"
