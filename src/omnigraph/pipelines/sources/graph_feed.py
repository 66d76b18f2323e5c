"""The change feed of another graph: what its commits changed behind the last run.

A record has `op`, `kind`, `type`, `id`, `commit`, of an edge `from` and `to`, and the properties
after the change in `properties`; those of a deletion are the last ones it had.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

import omnigraph
from omnigraph.engine.entity_change import EntityChange
from omnigraph.engine.feed import Block
from omnigraph.pipelines.definition import FeedSource
from omnigraph.pipelines.sources.json_lines import frame_of_texts
from omnigraph.schema.shape import JsonObject

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from omnigraph import Branch

_PAGE_CHANGES: Final = 8192
_COLUMNS: Final = "op string, kind string, type string, id string, commit string"
_ENDS: Final = "`from` string, `to` string"


def position(source: FeedSource, after: Any) -> JsonObject:  # Any: a position, or None
    """From the end of the last position to about as many changes behind it as a run takes.

    It ends behind a commit that it names, so that it is read again exactly.
    """
    with omnigraph.open(source.uri) as graph:
        branch = graph.branch(source.branch)
        start: str | None = None if after is None else after["to"]
        if after is None and source.start == "now":
            start = branch.changes(types=list(source.types) or None, ops=source.ops).cursor
            return {"kind": "graph", "from": start, "to": start, "commit": None}
        last, commit, told = start, None, 0
        for block in _blocks(branch, source, start):
            told += len(block.changes)
            if block.cursor is not None:
                last, commit = block.cursor, block.cause.commit_id
                if told >= source.changes_max:
                    break
    return {"kind": "graph", "from": start, "to": last, "commit": commit}


def frame(source: FeedSource, position: JsonObject, spark: SparkSession) -> DataFrame:
    """The changes between the two ends of a position."""
    with omnigraph.open(source.uri) as graph:
        branch = graph.branch(source.branch)
        texts = [json.dumps(record) for record in _records(branch, source, position)]
    columns = None
    if source.columns is not None:
        columns = f"{_COLUMNS}, {_ENDS}, properties struct<{source.columns}>"
    elif not texts:
        columns = f"{_COLUMNS}, {_ENDS}"
    return frame_of_texts(pa.chunked_array([texts], pa.large_string()), columns, spark)


def _records(branch: Branch, source: FeedSource, position: JsonObject) -> Iterator[JsonObject]:
    if position["commit"] is None:
        return
    for block in _blocks(branch, source, position["from"]):
        commit = block.cause.commit_id
        yield from (_record(change, commit) for change in block.changes)
        if block.is_complete and commit == position["commit"]:
            return


def _blocks(branch: Branch, source: FeedSource, cursor: str | None) -> Iterator[Block]:
    """What every commit behind a cursor changed, as far as there is any now."""
    types = list(source.types) or None
    page = branch.changes(
        cursor=cursor,
        start="beginning" if cursor is None else None,
        limit=_PAGE_CHANGES,
        types=types,
        ops=source.ops,
    )
    while True:
        yield from page.blocks
        token = page.next_page_token
        if token is None and (page.caught_up or page.cursor is None):
            return
        page = branch.changes(
            cursor=page.cursor if token is None else None,
            page_token=token,
            limit=_PAGE_CHANGES,
            types=types,
            ops=source.ops,
        )


def _record(change: EntityChange, commit: str) -> JsonObject:
    image = change.after or change.before or {}
    return {
        "op": change.op,
        "kind": change.kind,
        "type": change.type_name,
        "id": change.id,
        "commit": commit,
        **image.get("endpoints", {}),
        "properties": image.get("properties", {}),
    }
