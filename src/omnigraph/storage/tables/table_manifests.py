"""Lists every object that one version of a table needs, so that a collector keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from lance import LanceDataset
from lance.blob import BlobType

from omnigraph.storage.tables.pins import Pin, list_file_names

# Lance names linear manifests by the distance to the highest number, so that the newest is first.
_LINEAR_1 = f"_versions/{2**64 - 2:020}.manifest"

# Lance names linear manifests by the distance to the highest number, so that the newest is first.
_HIGHEST: Final = 2**64 - 1

# What leaves every row as it is.
_MAINTENANCE: Final = frozenset({"Rewrite", "ReserveFragments"})


def manifest_of(dataset: LanceDataset) -> str:
    """The manifest of a version, relative to the table."""
    return _LINEAR_1 if dataset.version == 1 else f"_versions/d{dataset.version}.manifest"


def build_manifest_path(pin: Pin) -> str:
    """The manifest of a pinned version, relative to the graph's root."""
    number = int(pin.version, 16)
    return f"{pin.path}/{_LINEAR_1 if number == 1 else f'_versions/d{number}.manifest'}"


def references_of(dataset: LanceDataset) -> set[str]:
    """Paths relative to the table; one with a closing slash means everything below it."""
    # The linear version is not needed to read this one, but a table without it looks damaged.
    found = {_LINEAR_1, manifest_of(dataset)}
    has_blobs = any(isinstance(field.type, BlobType) for field in dataset.schema)
    for fragment in dataset.get_fragments():
        metadata = fragment.metadata
        if metadata.deletion_file is not None:
            found.add(metadata.deletion_file.path(metadata.id))
        for name in list_file_names(metadata):
            found.add(f"data/{name}")
            if has_blobs:
                found.add(sidecars_of(f"data/{name}"))
    for description in dataset.describe_indices():
        found.update(f"_indices/{part.uuid}/" for part in description.segments)
    return found


def sidecars_of(file: str) -> str:
    """The folder where large blobs of a data file are."""
    return f"{file.removesuffix('.lance')}/"


@dataclass(frozen=True, slots=True)
class LinearHistory:
    """The newest linear version of a table, and what the versions above the first one did.

    `operations` is None where that cannot be read.
    """

    version: int
    operations: tuple[str, ...] | None = ()

    @property
    def is_foreign(self) -> bool:
        """Whether a program that does not know of graphs wrote to the table."""
        return self.version > 1

    @property
    def is_maintenance(self) -> bool:
        """Whether all that was done left the rows as they were."""
        return self.operations is not None and set(self.operations) <= _MAINTENANCE

    @property
    def manifests(self) -> tuple[str, ...]:
        """The manifests above the first one, relative to the table."""
        versions = range(2, self.version + 1)
        return tuple(f"_versions/{_HIGHEST - version:020}.manifest" for version in versions)


def linear_of(latest: LanceDataset) -> LinearHistory:
    """The linear history of a table, opened at its newest linear version."""
    version = int(latest.version)
    try:
        done = [latest.read_transaction(each) for each in range(2, version + 1)]
    except (OSError, ValueError, RuntimeError):
        return LinearHistory(version, None)
    known = [type(each.operation).__name__ for each in done if each is not None]
    return LinearHistory(version, tuple(known) if len(known) == len(done) else None)
