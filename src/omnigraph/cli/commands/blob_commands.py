"""`omnigraph blob`: the bytes of one property."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from omnigraph.cli.command_errors import fail
from omnigraph.cli.command_registry import READ_FLAGS, add_group, register_command
from omnigraph.cli.global_options import Capability, Scope
from omnigraph.cli.graph_access import open_graph
from omnigraph.cli.shared_options import JSON, ReadTarget
from omnigraph.cli.views import print_bytes
from omnigraph.cli.views.answer_views import Fields, show

if TYPE_CHECKING:
    from omnigraph import Snapshot
    from omnigraph.engine import Blob

CHUNK_BYTES_MAX: Final = 4 * 1024 * 1024
# The largest position that other programs can count to.
_POSITION_MAX: Final = 2**64 - 1


class Kind(StrEnum):
    """What has the property."""

    NODE = "node"
    EDGE = "edge"


@dataclass(frozen=True, slots=True)
class BlobSelector:
    """Which blob is meant."""

    entity: Annotated[Kind, typer.Argument(help="What has the property.")]
    type_name: Annotated[str, typer.Argument(metavar="TYPE", help="Its type.")]
    entity_id: Annotated[str, typer.Argument(metavar="ID", help="Its id.")]
    property_name: Annotated[str, typer.Argument(metavar="PROPERTY", help="The property.")]

    def open(self, snapshot: Snapshot) -> Blob:
        """The blob at a snapshot."""
        return snapshot.blob(self.entity.value, self.type_name, self.entity_id, self.property_name)

    def to_json(self) -> dict[str, str]:
        """The selector of a document."""
        return {
            "entity": self.entity.value,
            "type": self.type_name,
            "id": self.entity_id,
            "property": self.property_name,
        }

    def __str__(self) -> str:
        return f"{self.entity.value} {self.type_name} {self.entity_id} {self.property_name}"


@dataclass(frozen=True, slots=True)
class ByteRange:
    """Which bytes are wanted."""

    offset: Annotated[
        int | None, typer.Option("--offset", metavar="N", min=0, help="Skip the first bytes.")
    ] = None
    length: Annotated[
        int | None, typer.Option("--length", metavar="N", min=0, help="At most so many bytes.")
    ] = None

    def require_valid(self) -> None:
        """Refuse a range that no blob could satisfy."""
        if self.length == 0:
            fail("--length 0 asks for nothing", hint="`blob stat` shows whether the blob exists")
        if (self.offset or 0) + (self.length or 0) > _POSITION_MAX:
            fail("--offset and --length reach beyond any blob")

    def resolve_bounds(self, size: int) -> tuple[int, int]:
        """The first position and the one after the last; the end of the blob is never passed."""
        start = self.offset or 0
        if start >= size and start + size > 0:
            fail(f"the range starts at byte {start}, and the blob has {size} bytes")
        return start, size if self.length is None else min(size, start + self.length)


def register(app: typer.Typer) -> None:
    """Add the verbs to the command tree."""
    below = add_group(app, "blob", "Read blobs: bytes of any length that a property holds.")
    register_command(below, Capability.DATA, takes=READ_FLAGS)(get)
    register_command(below, Capability.DATA, takes=READ_FLAGS)(stat)


def get(
    scope: Scope,
    selector: BlobSelector,
    wanted: ByteRange,
    target: ReadTarget,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="PATH", help="Write to a file.")
    ] = None,
) -> None:
    """Print the bytes of a blob, or write them to a file."""
    wanted.require_valid()
    with open_graph(scope, scope.resolve_address()) as graph:
        blob = selector.open(target.open(graph))
        start, end = wanted.resolve_bounds(blob.size)
        _write_chunks(_read_chunks(blob, start, end), out)


def stat(scope: Scope, selector: BlobSelector, target: ReadTarget, is_json: JSON = False) -> None:
    """Say how large a blob is."""
    with open_graph(scope, scope.resolve_address()) as graph:
        snapshot = target.open(graph)
        blob = selector.open(snapshot)
        place = {name: value for name, value in target.to_json().items() if value is not None}
        document = {
            "selector": selector.to_json(),
            "kind": "managed",
            "size": blob.size,
            "etag": blob.etag,
            "target": {**place, "resolved_snapshot": snapshot.commit.id},
        }
    sentence = f"{selector}: {blob.size} bytes, etag {blob.etag}"
    show(Fields(document, sentence), is_json=is_json)


def _read_chunks(blob: Blob, start: int, end: int) -> Iterator[bytes]:
    for position in range(start, end, CHUNK_BYTES_MAX):
        yield blob.read(position, min(end, position + CHUNK_BYTES_MAX))


def _write_chunks(chunks: Iterator[bytes], out: Path | None) -> None:
    # The first chunk is read before the file is opened: a failure must not empty the file.
    first = next(chunks, b"")
    whole = chain([first], chunks)
    if out is None:
        print_bytes(whole)
        return
    try:
        with out.open("wb") as file:
            file.writelines(whole)
    except OSError as failure:
        fail(f"{out}: {failure.strerror or failure}")
