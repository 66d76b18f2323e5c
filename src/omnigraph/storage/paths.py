"""What the path of an object may be, the same on every store."""

from __future__ import annotations

import re
from dataclasses import dataclass

# The longest file name of ext4, XFS and APFS, and what S3 leaves of its 1,024 bytes for a root.
SEGMENT_BYTES_MAX = 255
PATH_BYTES_MAX = 800
# Local stores write under such a name first; no object may have it.
TEMPORARY_PREFIX = ".tmp-"

# Object stores refuse control characters and what XML cannot say; lone surrogates have no UTF-8.
_FORBIDDEN = re.compile("[\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Entry:
    """One listed object: its path, its size in bytes, and when it was written (epoch seconds)."""

    path: str
    size: int
    modified: float


def require_path(path: str) -> str:
    """The path itself; a path that some store could not hold is a bug of the caller."""
    if _FORBIDDEN.search(path):
        raise ValueError(f"object path {path!r} has a character that stores refuse")
    if len(path.encode()) > PATH_BYTES_MAX:
        raise ValueError(f"object path {path!r} is longer than {PATH_BYTES_MAX} bytes")
    for segment in path.split("/"):
        if segment in ("", ".", ".."):
            raise ValueError(f"object path {path!r} has the segment {segment!r}")
        if len(segment.encode()) > SEGMENT_BYTES_MAX:
            raise ValueError(f"object path {path!r} has a segment over {SEGMENT_BYTES_MAX} bytes")
        if segment.startswith(TEMPORARY_PREFIX):
            raise ValueError(f"object path {path!r} has the name of a temporary file")
    return path


def require_folder(prefix: str) -> str:
    """A folder to list, without its closing slash; the empty folder is the whole store."""
    folder = prefix.removesuffix("/")
    return require_path(folder) if folder else ""
