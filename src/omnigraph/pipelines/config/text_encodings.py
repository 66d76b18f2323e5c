"""Bytes of files as text: decoded strictly, so that what is not text is found, never replaced.

A record with bytes that are not text in the encoding of its source is a record that cannot be read,
like a line that is not JSON. Its text shows `�` in their place.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pyarrow as pa

if TYPE_CHECKING:
    from typing import BinaryIO

UTF_8: Final = "utf-8"
ENCODINGS: Final = (
    UTF_8,
    "utf-16",
    "utf-16-le",
    "utf-16-be",
    "ascii",
    "iso-8859-1",
    "iso-8859-2",
    "iso-8859-15",
    "windows-1250",
    "windows-1251",
    "windows-1252",
    "shift_jis",
    "euc-jp",
    "euc-kr",
    "gb18030",
    "big5",
)
REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
# Stands for bytes that are not text while they are read: no text has it, Unicode forbids to pass it
# on, whereas a file may well hold a replacement character.
UNDECODABLE: Final = "\ufdd0"
_ERROR_HANDLER: Final = "omnigraph-mark-undecodable"
_BLOCK_BYTES: Final = 8 * 1024**2
# Of a line, so much is shown.
_SHOWN_CHARACTERS: Final = 4096
# JSON up to the first escape that stands for half of a character, or for nothing.
_WHOLE_ESCAPES: Final = re.compile(
    rb"(?:[^\\]++|\\[^u]|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4}"
    rb"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})*+",
    re.DOTALL,
)
# So long are the escapes of one character.
_ESCAPES_BYTES: Final = 12


def _mark_undecodable(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError), "only decoders use this handler"
    return UNDECODABLE, error.end


codecs.register_error(_ERROR_HANDLER, _mark_undecodable)


def normalize_encoding(name: str) -> str:
    """The name that an encoding has here, of those that Python knows it by; others stay."""
    try:
        return _NAMES.get(codecs.lookup(name).name, name)
    except LookupError:
        return name


_NAMES: Final = {codecs.lookup(name).name: name for name in ENCODINGS}


def mark_undecodable(data: bytes) -> bytes:
    """Bytes as they are if they are text in UTF-8; else with `UNDECODABLE` where they are not."""
    try:
        data.decode(UTF_8)
    except UnicodeDecodeError:
        return data.decode(UTF_8, _ERROR_HANDLER).encode(UTF_8)
    return data


def decompress_stream(stream: pa.NativeFile, uri: str) -> pa.NativeFile:
    """What is in a file that may be compressed."""
    for ending, name in ((".gz", "gzip"), (".zst", "zstd"), (".bz2", "bz2")):
        if uri.lower().endswith(ending):
            return pa.CompressedInputStream(stream, name)
    return stream


def has_half_characters(stream: pa.NativeFile) -> bool:
    """Whether JSON in a stream escapes half of a character, such as `\\ud800` alone.

    Java has a sign for it, and writes a question mark in its place.
    """
    rest = b""
    while data := stream.read(_BLOCK_BYTES):
        block = rest + data
        found = _WHOLE_ESCAPES.match(block)
        rest = block[found.end() if found else 0 :]
        if len(rest) >= _ESCAPES_BYTES:
            return True
    return bool(rest)


def find_first_line(stream: BinaryIO, encoding: str) -> tuple[int, str] | None:
    """The number and the beginning of the first line that is not blank, as it can be shown."""
    number, is_start = 0, True
    with _open_text(stream, encoding) as text:
        while line := text.readline(_SHOWN_CHARACTERS):
            number += is_start
            if line.strip():
                return number, line.strip().replace(UNDECODABLE, REPLACEMENT)
            is_start = line.endswith("\n")
    return None


def iter_text_lines(stream: BinaryIO, encoding: str) -> Iterator[list[str]]:
    """The lines of a stream, many at a time; one that is not text cannot be read as JSON."""
    with _open_text(stream, encoding) as text:
        while lines := text.readlines(_BLOCK_BYTES):
            yield [_invalidate_undecodable(line) for line in lines if line.strip()]


def read_whole_text(stream: BinaryIO, encoding: str) -> str:
    """All of a stream as one text; one that is not text cannot be read as JSON."""
    with _open_text(stream, encoding) as text:
        return _invalidate_undecodable(text.read())


def find_absent_names(stream: BinaryIO, wanted: dict[str, bytes]) -> dict[str, bytes]:
    """Those of some names whose bytes are nowhere in a stream."""
    missing, rest = dict(wanted), b""
    longest = max(map(len, wanted.values()), default=0)
    while missing and (data := stream.read(_BLOCK_BYTES)):
        block = rest + data
        missing = {name: text for name, text in missing.items() if text not in block}
        rest = block[-longest:]
    return missing


def decode_text(data: bytes) -> tuple[str, bool]:
    """Bytes as a text that can be shown, and whether they are text in UTF-8 at all."""
    text = data.decode(UTF_8, _ERROR_HANDLER)
    return text.replace(UNDECODABLE, REPLACEMENT), UNDECODABLE not in text


def _open_text(stream: BinaryIO, encoding: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(stream, encoding=encoding, errors=_ERROR_HANDLER)


def _invalidate_undecodable(text: str) -> str:
    if UNDECODABLE not in text:
        return text
    return REPLACEMENT + text.replace(UNDECODABLE, REPLACEMENT)


class TranscodedStream(io.RawIOBase):
    """A stream in UTF-8 of one in another encoding, in which `UNDECODABLE` is what is not text."""

    def __init__(self, stream: BinaryIO, encoding: str) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder(encoding)(_ERROR_HANDLER)
        self._waiting = b""
        self._is_over = False

    def to_arrow_file(self) -> pa.NativeFile:
        """The stream as Arrow reads it, which takes a short read for the end of a block."""
        return pa.PythonFile(io.BufferedReader(self), mode="r")

    def readable(self) -> bool:
        """It can be read."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # any buffer of bytes
        """Fill a buffer with what comes next."""
        while not self._waiting and not self._is_over:
            data = self._stream.read(_BLOCK_BYTES)
            self._is_over = not data
            text = self._decoder.decode(data, final=self._is_over)
            self._waiting = text.encode(UTF_8)
        count = min(len(buffer), len(self._waiting))
        buffer[:count] = self._waiting[:count]
        self._waiting = self._waiting[count:]
        return count
