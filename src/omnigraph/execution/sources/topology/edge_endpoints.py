"""The nodes at the ends of edges: from the ids that a table holds to numbers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from omnigraph.errors import CorruptObjectError
from omnigraph.execution.sources.graph_source import DenseIds
from omnigraph.execution.sources.topology.append_array import AppendArray
from omnigraph.execution.sources.topology.text_arrays import ChainedIndex
from omnigraph.execution.sources.topology.topology_rows import DenseRows, InheritedEntry
from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN

# So many rows are looked up at once: enough to be worth a thread, and little memory.
BLOCK_ROWS: Final = 524_288
# How many look-ups may wait: the table is not read further ahead of them.
_AHEAD_MAX: Final = 4
_THREADS: Final = 2


@dataclass(frozen=True, slots=True)
class EdgeEndpoints:
    """The nodes at both ends of each edge, by the number of the edge; -1 where it is gone."""

    sources: DenseIds
    targets: DenseIds
    # The highest number at each end; -1 without edges.
    highest: tuple[int, int]
    # The same arrays, to be extended.
    append_arrays: tuple[AppendArray, AppendArray]

    @property
    def nbytes(self) -> int:
        """How much memory they take."""
        return self.sources.nbytes + self.targets.nbytes


def read_endpoints(rows: DenseRows, sources: ChainedIndex, targets: ChainedIndex) -> EdgeEndpoints:
    """The ends of all edges of a table, given the ids of the node types they are of."""
    all_sources, all_targets = np.full((2, rows.size), -1, np.int32)
    waiting: deque[Future[None]] = deque()
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="omnigraph-ends") as threads:
        for numbers, block in _read_blocks(rows):
            for column, index, into in (
                (SOURCE_COLUMN, sources, all_sources),
                (TARGET_COLUMN, targets, all_targets),
            ):
                texts = block[column]
                waiting.append(
                    threads.submit(_look_up_nodes, index, texts, numbers=numbers, into=into)
                )
            while len(waiting) > _AHEAD_MAX:
                waiting.popleft().result()
        for each in waiting:
            each.result()
    highest = int(all_sources.max(initial=-1)), int(all_targets.max(initial=-1))
    found = endpoints_of(all_sources, all_targets, highest)
    _require_nodes(rows, found)
    return found


def endpoints_of(sources: DenseIds, targets: DenseIds, highest: tuple[int, int]) -> EdgeEndpoints:
    """The ends in two arrays."""
    return EdgeEndpoints(sources, targets, highest, (AppendArray(sources), AppendArray(targets)))


def extend_endpoints(
    older: EdgeEndpoints,
    rows: DenseRows,
    sources: ChainedIndex,
    targets: ChainedIndex,
    *,
    was: InheritedEntry,
) -> EdgeEndpoints:
    """The ends of all edges, given those of the edges there were."""
    at, new = rows.read_since(was, [SOURCE_COLUMN, TARGET_COLUMN])
    both, highest = [], []
    for column, index, known, top in zip(
        (SOURCE_COLUMN, TARGET_COLUMN),
        (sources, targets),
        older.append_arrays,
        older.highest,
        strict=True,
    ):
        ends = np.full(rows.size - was.size, -1, np.int32)
        ends[at - was.size] = index.find_known(new[column])
        if len(at) and int(ends[at - was.size].min()) < 0:
            raise _make_missing_error(rows, int(np.count_nonzero(ends[at - was.size] < 0)))
        both.append(known.append(ends))
        highest.append(max(top, int(ends.max(initial=-1))))
    return EdgeEndpoints(
        both[0].values, both[1].values, (highest[0], highest[1]), (both[0], both[1])
    )


def _read_blocks(rows: DenseRows) -> Iterator[tuple[DenseIds, pa.Table]]:
    numbers: list[DenseIds] = []
    batches: list[pa.RecordBatch] = []
    for each, batch in rows.read_batches([SOURCE_COLUMN, TARGET_COLUMN]):
        numbers.append(each)
        batches.append(batch)
        if sum(map(len, numbers)) >= BLOCK_ROWS:
            yield np.concatenate(numbers), pa.Table.from_batches(batches)
            numbers, batches = [], []
    if batches:
        yield np.concatenate(numbers), pa.Table.from_batches(batches)


def _look_up_nodes(
    index: ChainedIndex, texts: pa.ChunkedArray, *, numbers: DenseIds, into: DenseIds
) -> None:
    into[numbers] = index.find_known(texts)


def _require_nodes(rows: DenseRows, ends: EdgeEndpoints) -> None:
    missing = (ends.sources < 0) | (ends.targets < 0)
    if rows.is_alive is not None:
        missing &= rows.is_alive
    if missing.any():
        raise _make_missing_error(rows, int(np.count_nonzero(missing)))


def _make_missing_error(rows: DenseRows, count: int) -> CorruptObjectError:
    return CorruptObjectError(
        rows.pin.path,
        f"{count} of its edges end at nodes that do not exist",
        hint="`omnigraph check` names them",
    )
