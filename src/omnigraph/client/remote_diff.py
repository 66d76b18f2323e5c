"""The difference between two states of a graph on a server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.client.document_decoding import decode_change, decode_commit, decode_summary
from omnigraph.client.http_transport import Call, HttpTransport, iter_lines
from omnigraph.engine import arguments
from omnigraph.engine.diff import COLUMNS, Diff, TypeSummary
from omnigraph.engine.entity_changes import EntityChange
from omnigraph.engine.read_requests import build_time_budget
from omnigraph.execution.query_budget import Cancellation
from omnigraph.schema.schema_shape import JsonObject
from omnigraph.wire.protocol_names import LINES

# A line of a change. Quotes in texts are escaped, and no property holds an object: the start of the
# second image is nowhere within the first one.
_CHANGE: Final = (
    r'^\{"kind": ?"(?P<kind>\w+)", ?"type": ?\{"id": ?"(?P<type_id>\w*)",'
    r' ?"name": ?"(?P<type_name>\w+)"\}, ?"id": ?(?P<id>"(?:[^"\\]|\\.)*"),'
    r' ?"op": ?"(?P<op>\w+)"(?:,"before":(?P<before>\{"properties":.*?\}))?'
    r'(?:,"after":(?P<after>\{"properties":.*\}))?\}$'
)


@dataclass(frozen=True, repr=False)
class RemoteDiff(Diff):
    """The same, whose changes are a request each time that they are read."""

    types: tuple[TypeSummary, ...] = ()
    open_lines: Callable[[], Iterator[bytes]] = lambda: iter(())

    @property
    def summary(self) -> tuple[TypeSummary, ...]:
        """The types with changes: nodes by name, then edges by name."""
        return self.types

    def __iter__(self) -> Iterator[EntityChange]:
        for chunk in self.to_json_lines():
            yield from (decode_change(json.loads(line)) for line in chunk.splitlines())

    def to_arrow(self) -> pa.Table:
        """A row per change: kind, type_id, type_name, id, op, and the images as JSON text."""
        batches = (_build_batch(chunk) for chunk in self.to_json_lines())
        return pa.Table.from_batches(batches, schema=COLUMNS)

    def to_json_lines(self) -> Iterator[bytes]:
        """Every change as chunks of whole JSON lines, the documents of `EntityChange.to_json`."""
        for chunk in self.open_lines():
            yield chunk
            self.check_interrupts()


def compute_remote_diff(
    transport: HttpTransport,
    document: JsonObject,
    filters: dict[str, list[str]],
    *,
    segments: tuple[str, ...] = ("diff",),
    timeout: float | None = None,
    cancel: Cancellation | None = None,
) -> RemoteDiff:
    """The diff of two states: its counts now, its changes when they are read."""
    budget = build_time_budget(timeout, cancel)
    asked = {**document, **filters, "summary": True}
    if timeout is not None:
        asked["timeout"] = timeout
    call = Call(
        "POST",
        segments,
        document=asked,
        accept=LINES,
        cancel=arguments.require_cancellation(cancel),
    )
    header = transport.send(call).read_json()
    old, new = decode_commit(header["old"]), decode_commit(header["new"])
    # By its names, a review finds its base also when nothing else keeps that commit any more.
    # Of a proposal, the server finds both.
    later: JsonObject = {**document, **filters}
    if document:
        later["new"] = new.id
    if document and not document.get("review"):
        later["old"] = old.id
    return RemoteDiff(
        old,
        new,
        tuple(header["schema_changes"]),
        check_interrupts=budget.check_interrupts,
        types=tuple(map(decode_summary, header["summary"])),
        open_lines=lambda: _iter_changes(transport, segments, later, (old.id, new.id)),
    )


def _iter_changes(
    transport: HttpTransport,
    segments: tuple[str, ...],
    document: JsonObject,
    states: tuple[str, str],
) -> Iterator[bytes]:
    """The lines after the header; where that has other states by now, those of the old ones."""
    chunks = iter_lines(transport, segments, document)
    header, _, changes = next(chunks).partition(b"\n")
    found = json.loads(header)
    if (found["old"]["graph_commit_id"], found["new"]["graph_commit_id"]) != states:
        filters = {name: value for name, value in document.items() if name != "review"}
        again = {**filters, "old": states[0], "new": states[1]}
        yield from _iter_changes(transport, ("diff",), again, states)
        return
    if changes:
        yield changes
    yield from chunks


def _build_batch(chunk: bytes) -> pa.RecordBatch:
    lines = pc.split_pattern(pa.array([chunk.decode().removesuffix("\n")]), "\n").flatten()
    found = pc.extract_regex(lines, _CHANGE)
    if found.null_count:
        # The same documents, spelled in another way than by this version.
        rows = [_build_row(json.loads(line)) for line in lines.to_pylist()]
        return pa.RecordBatch.from_pylist(rows, schema=COLUMNS)
    columns = [_read_column(field, pc.struct_field(found, field.name)) for field in COLUMNS]
    return pa.record_batch(columns, schema=COLUMNS)


def _read_column(field: pa.Field, texts: pa.Array) -> pa.Array:
    """A column of the texts that stand for it in the lines."""
    if field.name == "id":
        # One text for the decoder: it takes a call for each value where they are many.
        return pa.array(json.loads(f"[{','.join(texts.to_pylist())}]"), field.type)
    if field.name in ("before", "after"):
        texts = pc.if_else(pc.equal(texts, ""), pa.scalar(None, texts.type), texts)
    return texts.cast(field.type)


def _build_row(change: dict[str, Any]) -> dict[str, Any]:  # Any: JSON values
    type_ = change.pop("type")
    for side in {"before", "after"} & change.keys():
        change[side] = json.dumps(change[side], ensure_ascii=False, separators=(",", ":"))
    return change | {"type_id": type_["id"], "type_name": type_["name"]}
