"""The difference between two states of a graph on a server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from omnigraph.client.document_decoding import decode_change, decode_commit, decode_summary
from omnigraph.client.http_transport import Call, HttpTransport, iter_lines
from omnigraph.engine import arguments
from omnigraph.engine.diff import COLUMNS, Diff, TypeSummary
from omnigraph.engine.entity_changes import EntityChange
from omnigraph.engine.read_requests import build_time_budget
from omnigraph.execution.query_budget import Cancellation
from omnigraph.schema.schema_shape import JsonObject
from omnigraph.wire.protocol_names import LINES


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
        ("diff",),
        document=asked,
        accept=LINES,
        cancel=arguments.require_cancellation(cancel),
    )
    header = transport.send(call).read_json()
    old, new = decode_commit(header["old"]), decode_commit(header["new"])
    # By its names, a review finds its base also when nothing else keeps that commit any more.
    later = {**document, **filters, "new": new.id}
    if not document.get("review"):
        later["old"] = old.id
    return RemoteDiff(
        old,
        new,
        tuple(header["schema_changes"]),
        check_interrupts=budget.check_interrupts,
        types=tuple(map(decode_summary, header["summary"])),
        open_lines=lambda: _iter_changes(transport, later, old.id),
    )


def _iter_changes(transport: HttpTransport, document: JsonObject, old: str) -> Iterator[bytes]:
    """The lines after the header; of a review with a newer base by now, those since the old one."""
    chunks = iter_lines(transport, ("diff",), document)
    header, _, changes = next(chunks).partition(b"\n")
    if json.loads(header)["old"]["graph_commit_id"] != old:
        states = {name: value for name, value in document.items() if name != "review"}
        yield from _iter_changes(transport, {**states, "old": old}, old)
        return
    if changes:
        yield changes
    yield from chunks


def _build_batch(chunk: bytes) -> pa.RecordBatch:
    rows = [_build_row(json.loads(line)) for line in chunk.splitlines()]
    return pa.RecordBatch.from_pylist(rows, schema=COLUMNS)


def _build_row(change: dict[str, Any]) -> dict[str, Any]:  # Any: JSON values
    type_ = change.pop("type")
    for side in {"before", "after"} & change.keys():
        change[side] = json.dumps(change[side], ensure_ascii=False, separators=(",", ":"))
    return change | {"type_id": type_["id"], "type_name": type_["name"]}
