"""Values of Python as values of the language: what callers pass beside a text."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Final

from omnigraph.errors import InvalidArgument

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def plain_parameters(params: object) -> object:
    """Parameters as JSON would bring them; what JSON knows, and what nobody knows, stays."""
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
            return _datetime_text(value)
        case date():
            return value.isoformat()
        case bytes() | bytearray() | memoryview():
            return "base64:" + base64.b64encode(value).decode("ascii")
        case list() | tuple():
            return [_plain(item) for item in value]
        case _:
            # Scalars and arrays of numpy, pandas and Arrow say themselves what they are in Python.
            convert = next(
                (
                    found
                    for name in ("tolist", "to_pylist", "as_py")
                    if callable(found := getattr(value, name, None))
                ),
                None,
            )
            return value if convert is None else convert()


def _datetime_text(value: datetime) -> str:
    if value.tzinfo is None:
        return value.isoformat()
    return value.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"
