"""Reads stored JSON objects: unknown fields are ignored, a wrong one is named with its path.

An object begins with the digest of its path and of all that follows, so that flipped bits and
objects that changed places are found before anything is believed. Objects of graphs that were not
upgraded may have none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from os import PathLike
from typing import Final, NoReturn

from omnigraph.errors import CorruptObjectError, FormatTooNewError, InvalidArgumentError
from omnigraph.storage.objects.digests import digest_of

# The format of one object, written into each of ours; a higher number is refused, so that an
# old program never misreads a new object. That of the whole graph is in `graph_format`.
FORMAT: Final = 1
_SEALED: Final = re.compile(rb'\{"digest":"(xxh3:[0-9a-f]{16})",')
# How objects began before they had digests, and how those begin whose name is their digest.
_PLAIN: Final = re.compile(rb'\s*\{\s*"format"\s*:')
_HINT: Final = "restore this object from a copy of the graph, or report it"


class Fields:
    """The fields of one JSON object, read with their expected types."""

    __slots__ = ("_data", "_path")

    def __init__(self, path: str, data: object) -> None:
        self._path = path
        if not isinstance(data, dict):
            self.raise_corrupt("is not a JSON object")
        self._data: Mapping[str, object] = data

    def get_text(self, name: str) -> str:
        """A field that must be a string."""
        value = self._data.get(name)
        return value if isinstance(value, str) else self._raise_bad_field(name, "a string")

    def get_optional_text(self, name: str) -> str | None:
        """A string field that may be absent or null."""
        return None if self._data.get(name) is None else self.get_text(name)

    def get_integer(self, name: str, default: int | None = None) -> int:
        """An integer field, not negative."""
        value = self._data.get(name, default)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        return self._raise_bad_field(name, "an integer")

    def get_flag(self, name: str) -> bool:
        """A Boolean field; absent is False."""
        value = self._data.get(name, False)
        return value if isinstance(value, bool) else self._raise_bad_field(name, "true or false")

    def get_texts(self, name: str) -> tuple[str, ...]:
        """A list of strings; absent is empty."""
        value = self._data.get(name, [])
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
        return self._raise_bad_field(name, "a list of strings")

    def get_child(self, name: str) -> Fields:
        """A field that must be an object."""
        if name not in self._data:
            self._raise_bad_field(name, "an object")
        return Fields(self._path, self._data[name])

    def get_children(self, name: str) -> tuple[Fields, ...]:
        """A list of objects; absent is empty."""
        value = self._data.get(name, [])
        if not isinstance(value, list):
            self._raise_bad_field(name, "a list of objects")
        return tuple(Fields(self._path, item) for item in value)

    def iter_children(self) -> Iterator[tuple[str, Fields]]:
        """Every field as an object, by name."""
        return ((name, Fields(self._path, value)) for name, value in self._data.items())

    def get_child_or_empty(self, name: str) -> Fields:
        """A field that is an object; absent is an empty one."""
        return Fields(self._path, self._data.get(name, {}))

    def get_texts_by_name(self) -> dict[str, str]:
        """Every field, all of them strings."""
        return {name: self.get_text(name) for name in self._data}

    def has_field(self, name: str) -> bool:
        """Whether a field is present and not null."""
        return self._data.get(name) is not None

    def require(self, name: str, expected: str | int) -> None:
        """Refuse an object that says it is another one: it was copied or overwritten."""
        if self._data.get(name) != expected:
            self.raise_corrupt(f"'{name}' is {self._data.get(name)!r}, expected {expected!r}")

    def _raise_bad_field(self, name: str, expected: str) -> NoReturn:
        self.raise_corrupt(f"'{name}' is not {expected}")

    def raise_corrupt(self, reason: str) -> NoReturn:
        """Raise the error that names this object and says what is wrong with it."""
        raise CorruptObjectError(self._path, reason, hint=_HINT)


def decode_fields(path: str, data: bytes, *, known: int = FORMAT) -> Fields:
    """The fields of a stored object of ours, after its digest and its format were compared."""
    try:
        fields = Fields(path, json.loads(data))
    except (ValueError, RecursionError) as error:
        raise CorruptObjectError(path, f"is not JSON ({len(data)} bytes)", hint=_HINT) from error
    sealed = _SEALED.match(data)
    if sealed is not None and _compute_digest(path, data[sealed.end() :]) != sealed[1].decode():
        fields.raise_corrupt("its digest does not match its content")
    if sealed is None and _PLAIN.match(data) is None:
        fields.raise_corrupt("it begins with neither a digest nor a format")
    found = fields.get_integer("format")
    if found > known:
        raise FormatTooNewError(path, found=found, known=known)
    return fields


def encode_fields(path: str, fields: Mapping[str, object]) -> bytes:
    """An object of ours, to be stored at a path, as compact JSON that begins with its digest."""
    rest = encode_plain_fields(fields)[1:]
    return b'{"digest":"%s",' % _compute_digest(path, rest).encode() + rest


def encode_plain_fields(fields: Mapping[str, object]) -> bytes:
    """An object without a digest; fields that are None, False or empty are left out."""
    kept = {name: value for name, value in fields.items() if not _is_empty_value(value)}
    document = {"format": FORMAT, **kept}
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def seal_bytes(path: str, data: bytes) -> bytes:
    """The bytes of an object that was written without a digest, with one in front."""
    found = _PLAIN.match(data)
    if found is None:
        raise CorruptObjectError(path, "it begins with neither a digest nor a format", hint=_HINT)
    rest = data[data.index(b"{") + 1 :]
    return b'{"digest":"%s",' % _compute_digest(path, rest).encode() + rest


def has_digest(data: bytes) -> bool:
    """Whether an object begins with a digest."""
    return _SEALED.match(data) is not None


def require_digest(path: str, data: bytes) -> None:
    """Refuse an object without a digest, in a graph that says that all of its objects have one."""
    if not has_digest(data):
        raise CorruptObjectError(path, "it has no digest", hint=_HINT)


def _compute_digest(path: str, rest: bytes) -> str:
    return digest_of(path.encode() + b"\n" + rest)


def require_storable_text(name: str, value: object) -> str:
    """A text that can be stored and read back; anything else is refused by the name it has."""
    if not isinstance(value, str):
        hint = "pass what is in the file: its read_text()" if isinstance(value, PathLike) else None
        raise InvalidArgumentError(name, f"a {type(value).__name__} is not a text", hint=hint)
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(
            name, f"character {error.start} is half of a surrogate pair, which no text can hold"
        ) from None
    return value


def _is_empty_value(value: object) -> bool:
    return value is None or value is False or (isinstance(value, tuple | list | dict) and not value)
