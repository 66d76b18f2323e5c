"""Vectors that a provider made before, in a file of the user: no text is asked for twice.

The file holds no texts, but hashes of them. Nothing depends on it: a file that cannot be read or
written is as good as an empty one.
"""

from __future__ import annotations

import hashlib
import logging
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from omnigraph.embedding.embedder import BatchEmbedder, Task, Vectors

_log = logging.getLogger(__name__)

BYTES_MAX: Final = 1024**3
FILE: Final = "vectors.sqlite"
# As many keys as a statement may name, in any build of SQLite.
_KEYS_AT_ONCE: Final = 500
# Of a full file, the share of entries that make room: the oldest ones.
_EVICTED_SHARE: Final = 10
_WAIT_S: Final = 10.0
# A vector takes its bytes, its key twice, and what a row costs.
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS vectors (
    id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, vector BLOB, failure TEXT
);
"""


@dataclass(frozen=True, slots=True)
class Remembered:
    """What is known of some texts: the vectors of those that have one, and why others have none."""

    vectors: dict[int, bytes]
    failures: dict[int, str]


@dataclass(frozen=True, slots=True)
class VectorCache:
    """The file in a folder; safe to share between threads and processes."""

    folder: Path
    bytes_max: int = BYTES_MAX

    def find(self, keys: Sequence[bytes]) -> Remembered:
        """What is known of the texts with some keys, by their places."""
        found = Remembered({}, {})
        places = {key: place for place, key in enumerate(keys)}
        try:
            with closing(self._open()) as connection:
                for start in range(0, len(keys), _KEYS_AT_ONCE):
                    for key, vector, failure in _select(
                        connection, keys[start : start + _KEYS_AT_ONCE]
                    ):
                        if vector is not None:
                            found.vectors[places[key]] = vector
                        else:
                            found.failures[places[key]] = failure
        except (OSError, sqlite3.Error) as failure:
            self._report(failure)
        return found

    def put_vectors(self, keys: Sequence[bytes], vectors: Vectors) -> None:
        """Remember the vectors of texts."""
        self._put([(key, each.tobytes(), None) for key, each in zip(keys, vectors, strict=True)])

    def put_failures(self, keys: Sequence[bytes], reasons: Sequence[str]) -> None:
        """Remember why texts have no vector."""
        self._put([(key, None, each) for key, each in zip(keys, reasons, strict=True)])

    def _put(self, rows: list[tuple[bytes, bytes | None, str | None]]) -> None:
        try:
            with closing(self._open()) as connection, connection:
                connection.executemany(
                    "INSERT OR REPLACE INTO vectors (key, vector, failure) VALUES (?, ?, ?)", rows
                )
                if _measure(connection) > self.bytes_max:
                    (count,) = connection.execute("SELECT COUNT(*) FROM vectors").fetchone()
                    oldest = "SELECT id FROM vectors ORDER BY id LIMIT ?"
                    connection.execute(
                        f"DELETE FROM vectors WHERE id IN ({oldest})",  # noqa: S608 — a constant
                        (count // _EVICTED_SHARE + 1,),
                    )
        except (OSError, sqlite3.Error) as failure:
            self._report(failure)

    def _open(self) -> sqlite3.Connection:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        connection = sqlite3.connect(self.folder / FILE, timeout=_WAIT_S)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(_SCHEMA)
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _report(self, failure: Exception) -> None:
        """What goes wrong with the file ends what is done with it, and no more."""
        _log.warning("the cache of vectors in %s is not used: %s", self.folder, failure)


def _select(connection: sqlite3.Connection, keys: Sequence[bytes]) -> sqlite3.Cursor:
    marks = ",".join("?" * len(keys))
    text = f"SELECT key, vector, failure FROM vectors WHERE key IN ({marks})"  # noqa: S608 — marks
    return connection.execute(text, keys)


def _measure(connection: sqlite3.Connection) -> int:
    """How many bytes of the file are in use."""
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    return int((pages - free) * size)


def compute_keys(
    embedder: BatchEmbedder, texts: Sequence[str], dimension: int, task: Task
) -> list[bytes]:
    """The keys of texts: of the model, what its vectors are like and for, and the text."""
    parts = (embedder.kind, embedder.model, str(dimension), task.value)
    start = hashlib.blake2b("\0".join(parts).encode() + b"\0", digest_size=16)
    found = []
    for text in texts:
        digest = start.copy()
        digest.update(text.encode(errors="surrogatepass"))
        found.append(digest.digest())
    return found


def decode_vectors(found: dict[int, bytes], dimension: int) -> Vectors:
    """Remembered vectors, in the order of their places."""
    data = np.frombuffer(b"".join(found[place] for place in sorted(found)), np.float32)
    return data.reshape(len(found), dimension)
