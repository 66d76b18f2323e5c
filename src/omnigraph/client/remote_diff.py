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
        is_first = True
        for chunk in self.open_lines():
            # The first line of all is the header.
            changes = chunk.partition(b"\n")[2] if is_first else chunk
            is_first = False
            if changes:
                yield changes
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
    states = {"old": old.id, "new": new.id, **filters}
    return RemoteDiff(
        old,
        new,
        tuple(header["schema_changes"]),
        check_interrupts=budget.check_interrupts,
        types=tuple(map(decode_summary, header["summary"])),
        open_lines=lambda: iter_lines(transport, ("diff",), states),
    )


def _build_batch(chunk: bytes) -> pa.RecordBatch:
    rows = [_build_row(json.loads(line)) for line in chunk.splitlines()]
    return pa.RecordBatch.from_pylist(rows, schema=COLUMNS)


def _build_row(change: dict[str, Any]) -> dict[str, Any]:  # Any: JSON values
    type_ = change.pop("type")
    for side in {"before", "after"} & change.keys():
        change[side] = json.dumps(change[side], ensure_ascii=False, separators=(",", ":"))
    return change | {"type_id": type_["id"], "type_name": type_["name"]}
