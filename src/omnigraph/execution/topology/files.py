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
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import numpy as np
from xxhash import xxh3_64_hexdigest

from omnigraph.execution.topology.piece import CacheBlock
from omnigraph.storage.pins import Pin

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
        """Write a piece some time later; nobody waits for it, and it may fail."""
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
        # Whoever may not read the graph may not read this either.
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
