"""Files of Lance whose names carry the digests of their bytes.

A digest has to last as long as its file, which may outlive the commit that wrote it, and it has to
be at hand where the file is read. Its name is the one place that is both. So a file gets its final
name after it was written and before anything refers to it. A crash in between leaves a file that
nothing refers to. Only files of a disk can be renamed: those of other stores keep their names.

    data/{name}-{digest}.lance                  a data file, with the blobs in the folder beside it
    _deletions/{fragment}-{digest}-{id}.arrow   a deletion file; the low half of `id` says so
    _indices/{digest, id}/                      all files of a segment, by name
"""

from __future__ import annotations

import dataclasses
import math
import os
import re
import threading
from collections.abc import Collection, Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal, assert_never
from uuid import UUID

from lance import LanceDataset
from lance.blob import BlobType
from lance.dataset import Index as Segment
from lance.fragment import DataFile, DeletionFile, FragmentMetadata
from xxhash import xxh3_64_intdigest

from omnigraph.errors import CorruptObjectError
from omnigraph.lru_cache import LruCache
from omnigraph.storage.objects.digests import digest_of, hash_files
from omnigraph.storage.tables.fragments import fragment_of
from omnigraph.storage.tables.pins import Pin, list_file_names
from omnigraph.storage.tables.table_manifests import build_manifest_path

_DATA: Final = re.compile(r".*-([0-9a-f]{16})\.lance")
_HALF_BITS: Final = 32
_HALF: Final = 2**_HALF_BITS - 1
_WHOLE_BITS: Final = 64

# 10 ms for the first look-up in a version; smaller files come first.
LOOKUP_BYTES_MAX: Final = 64 * 1024**2

# A scan reads rows anyway: 10 ns more for each of them. Long vectors are beyond it.
SCAN_BYTES_PER_ROW: Final = 128

# A version costs 200 bytes here, a file 100.
_VERSIONS_MAX: Final = 4_096
_FILES_MAX: Final = 65_536
_HINT: Final = (
    "restore this file from a copy of the graph; `omnigraph repair` names all of its kind, and the"
    " newest commit that is whole without them"
)


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of a version, or a folder with a closing slash, relative to its table.

    `beside` is a folder that belongs to it. Without a digest it is older than digests, or was
    written to a store that cannot rename.
    """

    path: str
    digest: int | None
    beside: str | None = None

    @property
    def is_index(self) -> bool:
        """Whether it is a segment of an index, which is derived from the rows."""
        return self.path.startswith("_indices/")

    def list_files(self, folder: str) -> list[str]:
        """Every file of the disk that the digest is made of, given the folder of the table."""
        if self.path.endswith("/"):
            return _list_files_below(f"{folder}/{self.path}")
        below = [] if self.beside is None else _list_files_below(f"{folder}/{self.beside}")
        return [f"{folder}/{self.path}", *below]


def seal_data(
    folder: str, fragments: Iterable[FragmentMetadata], *, has_blobs: bool
) -> list[FragmentMetadata]:
    """Written fragments whose data files carry their digests; `folder` is that of the table."""
    return [_seal_fragment(folder, fragment, has_blobs=has_blobs) for fragment in fragments]


def seal_deletions(folder: str, fragment: FragmentMetadata) -> FragmentMetadata:
    """A fragment whose deletion file, just written, carries its digest."""
    found = fragment.deletion_file
    if found is None:
        return fragment
    old = f"{folder}/{found.path(fragment.id)}"
    digest = hash_files([old])
    # What Lance calls the version it read is part of a name and nothing else.
    sealed = DeletionFile(
        digest, _embed_digest(digest, found.id), found.file_type, found.num_deleted_rows, None
    )
    os.rename(old, f"{folder}/{sealed.path(fragment.id)}")
    fragment = copy(fragment)
    fragment.deletion_file = sealed
    return fragment


def seal_segment(folder: str, segment: Segment) -> Segment:
    """An index segment, just written, whose folder carries the digest of its files."""
    old = f"{folder}/_indices/{segment.uuid}"
    digest = hash_files(_list_files_below(f"{old}/"))
    marked = _embed_digest(digest, UUID(segment.uuid).int)
    name = str(UUID(int=digest << _WHOLE_BITS | marked))
    os.rename(old, f"{folder}/_indices/{name}")
    return dataclasses.replace(segment, uuid=name)


def list_data_files(
    dataset: LanceDataset, fragment_ids: Collection[int] | None = None
) -> list[StoredFile]:
    """The data files and deletion files of a version, or of some of its fragments."""
    has_blobs = any(isinstance(field.type, BlobType) for field in dataset.schema)
    found = list_deletion_files(dataset, fragment_ids)
    for fragment in _list_fragments(dataset, fragment_ids):
        found += [_parse_data_file(name, has_blobs=has_blobs) for name in list_file_names(fragment)]
    return found


def list_deletion_files(
    dataset: LanceDataset, fragment_ids: Collection[int] | None = None
) -> list[StoredFile]:
    """The deletion files of a version, or of some of its fragments."""
    return [
        _parse_deletion_file(fragment.deletion_file, fragment.id)
        for fragment in _list_fragments(dataset, fragment_ids)
        if fragment.deletion_file is not None
    ]


def list_index_folders(dataset: LanceDataset) -> list[StoredFile]:
    """The folders of all index segments of a version."""
    segments = (part for each in dataset.describe_indices() for part in each.segments)
    return [build_segment_folder(str(part.uuid)) for part in segments]


def build_segment_folder(name: str) -> StoredFile:
    """The folder of an index segment."""
    digest, mark = divmod(UUID(name).int, 2**_WHOLE_BITS)
    return StoredFile(
        f"_indices/{name}/", digest if mark & _HALF == _compute_check(digest) else None
    )


def _list_fragments(
    dataset: LanceDataset, fragment_ids: Collection[int] | None
) -> Iterator[FragmentMetadata]:
    if fragment_ids is None:
        found = dataset.get_fragments()
    else:
        found = [fragment_of(dataset, id_) for id_ in fragment_ids]
    return (fragment.metadata for fragment in found)


def _seal_fragment(folder: str, fragment: FragmentMetadata, *, has_blobs: bool) -> FragmentMetadata:
    fragment = copy(fragment)
    fragment.files = [_seal_file(folder, file, has_blobs=has_blobs) for file in fragment.files]
    return fragment


def _seal_file(folder: str, file: DataFile, *, has_blobs: bool) -> DataFile:
    name = file._path  # noqa: SLF001  # the public property defines a class on every access
    old = f"{folder}/data/{name}"
    blobs = old.removesuffix(".lance")
    digest = hash_files([old, *(_list_files_below(f"{blobs}/") if has_blobs else ())])
    sealed = copy(file)
    sealed._path = f"{name.removesuffix('.lance')}-{digest:016x}.lance"  # noqa: SLF001
    new = f"{folder}/data/{sealed._path}"  # noqa: SLF001
    if has_blobs and os.path.isdir(blobs):
        os.rename(blobs, new.removesuffix(".lance"))
    os.rename(old, new)
    return sealed


def _list_files_below(folder: str) -> list[str]:
    return sorted(
        os.path.join(parent, name) for parent, _, names in os.walk(folder) for name in names
    )


def _embed_digest(digest: int, unique: int) -> int:
    """A number whose high half is as unique as another one, and whose low half knows a digest."""
    return (unique & _HALF) << _HALF_BITS | _compute_check(digest)


def _compute_check(digest: int) -> int:
    return xxh3_64_intdigest(digest.to_bytes(8, "little")) & _HALF


def _parse_data_file(name: str, *, has_blobs: bool) -> StoredFile:
    found = _DATA.fullmatch(name)
    beside = f"data/{name.removesuffix('.lance')}/" if has_blobs else None
    return StoredFile(f"data/{name}", int(found[1], 16) if found else None, beside)


def _parse_deletion_file(file: DeletionFile, fragment_id: int) -> StoredFile:
    is_sealed = file.id & _HALF == _compute_check(file.read_version)
    return StoredFile(file.path(fragment_id), file.read_version if is_sealed else None)


class VersionUse(Enum):
    """What is about to be read of a version, which bounds how much of it is compared."""

    SCAN = "scan"
    LOOKUP = "lookup"
    INDEX = "index"
    COPY = "copy"

    def compute_bytes_max(self, pin: Pin) -> float:
        """How many bytes of files are compared at most."""
        match self:
            case VersionUse.SCAN:
                return LOOKUP_BYTES_MAX + pin.rows * SCAN_BYTES_PER_ROW
            case VersionUse.LOOKUP | VersionUse.INDEX:
                return LOOKUP_BYTES_MAX
            case VersionUse.COPY:
                # A reader of the copy cannot compare it any more.
                return math.inf
        assert_never(self)


class Verifier:
    """What is known to be as it was written, of one graph on a disk; safe to share."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.is_active = os.path.isabs(root)
        self._lock = threading.Lock()
        # Sets, of which the values do not matter.
        self._uses: LruCache[tuple[str, str, VersionUse], Literal[True]] = LruCache(_VERSIONS_MAX)
        self._files: LruCache[str, Literal[True]] = LruCache(_FILES_MAX)
        # Folders of index segments that must not be used.
        self._damaged: LruCache[str, Literal[True]] = LruCache(_FILES_MAX)

    def compute_manifest_digest(self, path: str) -> str | None:
        """The digest of a manifest that was just written; None where files have none."""
        if not self.is_active:
            return None
        with open(f"{self.root}/{path}", "rb") as file:
            return digest_of(file.read())

    def require_manifest(self, pin: Pin) -> None:
        """Refuse a version whose manifest is not the one that was pinned; Lance would panic."""
        if pin.digest is None or not self.is_active:
            return
        path = build_manifest_path(pin)
        try:
            found = self.compute_manifest_digest(path)
        except OSError:
            # Lance says what became of it.
            return
        if found != pin.digest:
            raise CorruptObjectError(path, "its digest is not the one of its record", hint=_HINT)

    def require(
        self,
        pin: Pin,
        dataset: LanceDataset,
        use: VersionUse,
        fragment_ids: Collection[int] | None = None,
    ) -> None:
        """Refuse a version with a damaged file, as far as its use allows to look.

        What is read of some fragments depends on their files alone. Each file is compared once.
        """
        if not self.is_active or self._is_known(pin, use):
            return
        for file in self._select_files(pin, list_data_files(dataset, fragment_ids), use):
            self._require_file(pin.path, file)
            with self._lock:
                self._files.put(f"{pin.path}/{file.path}", True)
        if fragment_ids is None:
            self._add_known(pin, use)

    def find_damaged_segments(
        self, pin: Pin, dataset: LanceDataset, *, is_thorough: bool = False
    ) -> frozenset[str]:
        """The index segments of a version, by name, that are not as they were written.

        An index is derived: what is damaged is as good as absent, and refuses nothing. All of
        them are compared, if asked for, or the smallest.
        """
        if not self.is_active:
            return frozenset()
        is_known = not is_thorough and self._is_known(pin, VersionUse.INDEX)
        with self._lock:
            if is_known and not self._damaged:
                return frozenset()
        folders = list_index_folders(dataset)
        if not is_known:
            use = VersionUse.COPY if is_thorough else VersionUse.INDEX
            for folder in self._select_files(pin, folders, use):
                self._is_segment_sound(pin, folder)
            self._add_known(pin, VersionUse.INDEX)
        with self._lock:
            damaged = [each for each in folders if f"{pin.path}/{each.path}" in self._damaged]
        return frozenset(each.path.rstrip("/").rpartition("/")[2] for each in damaged)

    def require_inputs(self, table: str, files: Iterable[StoredFile]) -> None:
        """Refuse to copy from damaged files: the copy would have a valid digest.

        Nothing is remembered, and nothing that is remembered counts.
        """
        if not self.is_active:
            return
        for file in files:
            if file.digest is not None:
                self._require_file(table, file)

    def find_damaged_inputs(self, pin: Pin, names: Iterable[str]) -> frozenset[str]:
        """Those of some index segments, by name, that must not be copied; all are compared now."""
        if not self.is_active:
            return frozenset()
        folders = {name: build_segment_folder(name) for name in names}
        return frozenset(
            name
            for name, folder in folders.items()
            if folder.digest is not None and not self._is_segment_sound(pin, folder)
        )

    def trust(self, base: Pin, tip: Pin) -> None:
        """A version that this process made of a verified one needs no second look."""
        with self._lock:
            for use in VersionUse:
                if (base.path, base.version, use) in self._uses:
                    self._uses.put((tip.path, tip.version, use), True)

    def _is_known(self, pin: Pin, use: VersionUse) -> bool:
        with self._lock:
            return (pin.path, pin.version, use) in self._uses

    def _add_known(self, pin: Pin, use: VersionUse) -> None:
        with self._lock:
            self._uses.put((pin.path, pin.version, use), True)

    def _is_segment_sound(self, pin: Pin, folder: StoredFile) -> bool:
        """Whether an index segment is as it was written; one that is not is never used again."""
        try:
            is_sound = self.find_problem(pin.path, folder) is None
        except OSError:
            # A disk that cannot read it.
            is_sound = False
        with self._lock:
            (self._files if is_sound else self._damaged).put(f"{pin.path}/{folder.path}", True)
        return is_sound

    def _select_files(
        self, pin: Pin, files: list[StoredFile], use: VersionUse
    ) -> Iterator[StoredFile]:
        """The files to compare that were not compared yet, the smallest first."""
        with self._lock:
            new = [each for each in files if f"{pin.path}/{each.path}" not in self._files]
        sized = [
            (self._measure_file(pin.path, each), each) for each in new if each.digest is not None
        ]
        left = use.compute_bytes_max(pin)
        for size, file in sorted(sized, key=lambda each: (each[0], each[1].path)):
            left -= size
            if left >= 0:
                yield file

    def _require_file(self, table: str, file: StoredFile) -> None:
        if problem := self.find_problem(table, file):
            raise CorruptObjectError(f"{table}/{file.path}", problem, hint=_HINT)

    def find_problem(self, table: str, file: StoredFile) -> str | None:
        """What is wrong with a file that has a digest; None if nothing is, or if it is gone."""
        try:
            found = hash_files(file.list_files(f"{self.root}/{table}"))
        except FileNotFoundError:
            # Reading it raises an error; a collector may be at work.
            return None
        return None if found == file.digest else "its digest is not the one in its name"

    def _measure_file(self, table: str, file: StoredFile) -> int:
        try:
            return sum(map(os.path.getsize, file.list_files(f"{self.root}/{table}")))
        except FileNotFoundError:
            return 0
