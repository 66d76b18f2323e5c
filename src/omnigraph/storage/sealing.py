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
import os
import re
from collections.abc import Collection, Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from lance import LanceDataset
from lance.blob import BlobType
from lance.dataset import Index as Segment
from lance.fragment import DataFile, DeletionFile, FragmentMetadata
from xxhash import xxh3_64_intdigest

from omnigraph.storage.digests import hash_files
from omnigraph.storage.fragments import fragment_of
from omnigraph.storage.pins import list_file_names

_DATA: Final = re.compile(r".*-([0-9a-f]{16})\.lance")
_HALF_BITS: Final = 32
_HALF: Final = 2**_HALF_BITS - 1
_WHOLE_BITS: Final = 64


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of a version, or a folder with a closing slash, relative to its table.

    `beside` is a folder that belongs to it. Without a digest it is older than digests, or was
    written to a store that cannot rename.
    """

    path: str
    digest: int | None
    beside: str | None = None

    def list_files(self, folder: str) -> list[str]:
        """Every file of the disk that the digest is made of, given the folder of the table."""
        if self.path.endswith("/"):
            return _list_files_below(f"{folder}/{self.path}")
        below = [] if self.beside is None else _list_files_below(f"{folder}/{self.beside}")
        return [f"{folder}/{self.path}", *below]


def seal_data(folder: str, fragments: Iterable[FragmentMetadata]) -> list[FragmentMetadata]:
    """Written fragments whose data files carry their digests; `folder` is that of the table."""
    return [_seal_fragment(folder, fragment) for fragment in fragments]


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
    found = deletion_files(dataset, fragment_ids)
    for fragment in _fragments(dataset, fragment_ids):
        found += [_parse_data_file(name, has_blobs=has_blobs) for name in list_file_names(fragment)]
    return found


def deletion_files(
    dataset: LanceDataset, fragment_ids: Collection[int] | None = None
) -> list[StoredFile]:
    """The deletion files of a version, or of some of its fragments."""
    return [
        _parse_deletion_file(fragment.deletion_file, fragment.id)
        for fragment in _fragments(dataset, fragment_ids)
        if fragment.deletion_file is not None
    ]


def list_index_folders(dataset: LanceDataset) -> list[StoredFile]:
    """The folders of all index segments of a version."""
    segments = (part for each in dataset.describe_indices() for part in each.segments)
    return [segment_folder(str(part.uuid)) for part in segments]


def segment_folder(name: str) -> StoredFile:
    """The folder of an index segment."""
    digest, mark = divmod(UUID(name).int, 2**_WHOLE_BITS)
    return StoredFile(
        f"_indices/{name}/", digest if mark & _HALF == _compute_check(digest) else None
    )


def _fragments(
    dataset: LanceDataset, fragment_ids: Collection[int] | None
) -> Iterator[FragmentMetadata]:
    if fragment_ids is None:
        found = dataset.get_fragments()
    else:
        found = [fragment_of(dataset, id_) for id_ in fragment_ids]
    return (fragment.metadata for fragment in found)


def _seal_fragment(folder: str, fragment: FragmentMetadata) -> FragmentMetadata:
    fragment = copy(fragment)
    fragment.files = [_seal_file(folder, file) for file in fragment.files]
    return fragment


def _seal_file(folder: str, file: DataFile) -> DataFile:
    name = file._path  # noqa: SLF001  # the public property defines a class on every access
    old = f"{folder}/data/{name}"
    blobs = old.removesuffix(".lance")
    digest = hash_files([old, *_list_files_below(f"{blobs}/")])
    sealed = copy(file)
    sealed._path = f"{name.removesuffix('.lance')}-{digest:016x}.lance"  # noqa: SLF001
    new = f"{folder}/data/{sealed._path}"  # noqa: SLF001
    if os.path.isdir(blobs):
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
