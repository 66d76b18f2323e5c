"""Files of pieces that outlive the process: written aside, moved into place, mapped into memory.

They are derived, and no part of a graph. A file that is torn, damaged, foreign, of another format
or of another version of a table is as good as none. Every array has a digest, which is compared
before the array is used: a column is read whole when it is first needed, never the whole cache.
"""

from __future__ import annotations

import json
import mmap
import os
import threading
import zlib
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from xxhash import xxh3_64_hexdigest

from omnigraph.storage.tables.pins import Pin

FORMAT: Final = 2

# All files of all graphs of a user together.
DISK_BYTES_MAX: Final = 16 * 1024**3
SUFFIX: Final = ".piece"
_MAGIC: Final = b"omnigrph"
_ALIGNMENT: Final = 64

# The magic, the checksum and the length of the header.
_PREFIX_BYTES: Final = len(_MAGIC) + 4 + 4

# A temporary file that is older was left by a process that is gone.
_ABANDONED_S: Final = 3600.0
Arrays: TypeAlias = Mapping[str, npt.NDArray[Any]]  # Any: of numbers of any kind


class CacheFiles:
    """The pieces of one graph, below a folder; safe to share between threads and processes.

    A graph is known by its address. Whatever else was or will be there has other versions of its
    tables, which are numbers that are drawn at random.
    """

    def __init__(self, root: Path, *, graph: str, bytes_max: int = DISK_BYTES_MAX) -> None:
        self.folder = root / _hash_text(graph)
        self.bytes_max = bytes_max
        self._graph = graph
        self._lock = threading.Lock()
        self._writer: ThreadPoolExecutor | None = None
        self._waiting: set[Future[None]] = set()

    def load(self, pin: Pin, name: str) -> CacheBlock | None:
        """A piece of a version, mapped into memory."""
        path = self._path_of(pin, name)
        try:
            with path.open("rb") as file:
                data = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
            found = _decode_block(data, self._build_header(pin, name))
            # What is used is kept longest.
            os.utime(path)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return found

    def save(self, pin: Pin, name: str, piece: Callable[[], CacheBlock | None]) -> None:
        """Write a piece in the background; it may fail."""
        with self._lock:
            if self._writer is None:
                self._writer = ThreadPoolExecutor(1, thread_name_prefix="omnigraph-topology")
            try:
                job = self._writer.submit(self._write_block, pin, name, piece)
            except RuntimeError:
                # The program is ending.
                return
            self._waiting.add(job)
        job.add_done_callback(self._waiting.discard)

    def list_versions(self, path: str) -> set[str]:
        """The versions of a table of which there are files."""
        prefix = _hash_text(path)
        with suppress(OSError):
            return {
                parts[1]
                for entry in os.scandir(self.folder)
                if (parts := entry.name.split("-", 2))[0] == prefix and len(parts) > 2
            }
        return set()

    def list_names(self, pin: Pin) -> list[str]:
        """The names of the pieces of a version."""
        prefix = f"{_hash_text(pin.path)}-{pin.version}-"
        with suppress(OSError):
            return [
                entry.name.removeprefix(prefix).removesuffix(SUFFIX)
                for entry in os.scandir(self.folder)
                if entry.name.startswith(prefix) and entry.name.endswith(SUFFIX)
            ]
        return []

    def flush(self) -> None:
        """Wait until everything is written."""
        for job in list(self._waiting):
            with suppress(Exception):
                job.result()

    def close(self) -> None:
        """Begin no other write; those that wait are done before the program ends."""
        with self._lock:
            if self._writer is not None:
                self._writer.shutdown(wait=False)

    def _write_block(self, pin: Pin, name: str, piece: Callable[[], CacheBlock | None]) -> None:
        with suppress(OSError):
            found = piece()
            if found is not None and found.nbytes <= self.bytes_max:
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                _write_file(self._path_of(pin, name), found, self._build_header(pin, name))
                trim_files(self.folder.parent, self.bytes_max)

    def _path_of(self, pin: Pin, name: str) -> Path:
        return self.folder / f"{_hash_text(pin.path)}-{pin.version}-{name}{SUFFIX}"

    def _build_header(self, pin: Pin, name: str) -> dict[str, Any]:
        """What a file must say about itself."""
        return {
            "format": FORMAT,
            "graph": self._graph,
            "path": pin.path,
            "version": pin.version,
            "name": name,
        }


def trim_files(folder: Path, bytes_max: int) -> None:
    """Remove the files that were not used for longest, while there are too many bytes."""
    files = []
    for path in folder.glob(f"*/*{SUFFIX}*"):
        with suppress(OSError):
            status = path.stat()
            files.append((status.st_mtime, status.st_size, path))
    newest = max((used for used, _, _ in files), default=0.0)
    total = sum(size for _, size, _ in files)
    for used, size, path in sorted(files):
        is_abandoned = path.suffix != SUFFIX and used < newest - _ABANDONED_S
        if total <= bytes_max and not is_abandoned:
            continue
        with suppress(OSError):
            path.unlink()
            total -= size


def _hash_text(text: str) -> str:
    return blake2b(text.encode(), digest_size=8).hexdigest()


def _write_file(path: Path, piece: CacheBlock, header: dict[str, Any]) -> None:
    arrays = {name: np.ascontiguousarray(array) for name, array in piece.arrays.items()}
    offset, places = 0, {}
    for name, array in arrays.items():
        digest = xxh3_64_hexdigest(array.data)
        places[name] = (array.dtype.str, len(array), offset, digest)
        offset = _align_offset(offset + array.nbytes)
    said = json.dumps(
        {**header, "notes": piece.metadata, "arrays": places, "bytes": offset}
    ).encode()
    prefix = _MAGIC + zlib.crc32(said).to_bytes(4, "little") + len(said).to_bytes(4, "little")
    temporary = path.with_name(f"{path.name}.{uuid4().hex}")
    try:
        # A user who may not read the graph may not read this either.
        with os.fdopen(
            os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb"
        ) as file:
            file.write(prefix + said)
            start = _align_offset(len(prefix) + len(said))
            for array, (_, _, place, _) in zip(arrays.values(), places.values(), strict=True):
                file.seek(start + place)
                file.write(array.data)
            file.truncate(start + offset)
            file.flush()
            # The name is given last: a file of that name has all its bytes, whatever happens.
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        with suppress(OSError):
            temporary.unlink()
        raise


def _decode_block(
    data: np.ndarray[Any, np.dtype[np.uint8]], header: dict[str, Any]
) -> CacheBlock | None:
    """The piece in the bytes of a file; None if it is not what was asked for."""
    prefix = data[:_PREFIX_BYTES].tobytes()
    magic, checksum, length = prefix[:8], prefix[8:12], int.from_bytes(prefix[12:], "little")
    said = data[_PREFIX_BYTES : _PREFIX_BYTES + length].tobytes()
    if magic != _MAGIC or zlib.crc32(said).to_bytes(4, "little") != checksum:
        return None
    found = json.loads(said)
    start = _align_offset(_PREFIX_BYTES + length)
    if any(found[key] != value for key, value in header.items()):
        return None
    if len(data) != start + found["bytes"]:
        return None
    arrays = {
        name: np.frombuffer(data, np.dtype(kind), count, start + offset)
        for name, (kind, count, offset, _) in found["arrays"].items()
    }
    digests = {name: digest for name, (_, _, _, digest) in found["arrays"].items()}
    if any(xxh3_64_hexdigest(array.data) != digests[name] for name, array in arrays.items()):
        return None
    return CacheBlock(arrays, found["notes"])


def _align_offset(offset: int) -> int:
    return -(-offset // _ALIGNMENT) * _ALIGNMENT


@dataclass(frozen=True, slots=True)
class CacheBlock:
    """Arrays, and what else there is to say about them, as JSON."""

    arrays: Arrays
    metadata: Mapping[str, Any] = field(default_factory=dict)  # Any: JSON

    @property
    def nbytes(self) -> int:
        """How many bytes the arrays take."""
        return sum(each.nbytes for each in self.arrays.values())


class Cacheable(Protocol):
    """What can be kept in memory, and maybe in a file."""

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""

    def to_block(self) -> CacheBlock | None:
        """The same as arrays; None if it is not worth a file."""


def encode_texts(texts: pa.Array) -> dict[str, npt.NDArray[Any]]:
    """Offsets from zero, the bytes of all texts, and which of them are there, unless all are."""
    width = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    _, offsets_buffer, data_buffer = texts.buffers()
    if offsets_buffer is None or offsets_buffer.size == 0:
        return {"offsets": np.zeros(1, width), "bytes": np.zeros(0, np.uint8)}
    offsets = np.frombuffer(offsets_buffer, width)[texts.offset : texts.offset + len(texts) + 1]
    data = np.zeros(0, np.uint8) if data_buffer is None else np.frombuffer(data_buffer, np.uint8)
    arrays = {"offsets": offsets - offsets[0], "bytes": data[offsets[0] : offsets[-1]]}
    if texts.null_count:
        arrays["valid"] = texts.is_valid().to_numpy(zero_copy_only=False)
    return arrays


def decode_texts(arrays: Arrays) -> pa.Array:
    """The texts of `arrays_of_texts`, which share its memory."""
    offsets = arrays["offsets"]
    kind = pa.large_string() if offsets.dtype == np.int64 else pa.utf8()
    valid = arrays.get("valid")
    bits = None if valid is None else pa.array(valid).buffers()[1]
    buffers = [bits, pa.py_buffer(offsets), pa.py_buffer(arrays["bytes"])]
    return pa.Array.from_buffers(kind, len(offsets) - 1, buffers)
