"""Parquet files, cut between their row groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate

import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.bulk.splits import SPLIT_ROWS
from omnigraph.errors import SourceRefusedError
from omnigraph.storage.objects.source_files import SourceFile, open_source_file


@dataclass(frozen=True, slots=True)
class RowGroups:
    """Consecutive row groups of a file; `first` is the number of their first row."""

    start: int
    end: int
    first: int


def plan_row_groups(
    file: SourceFile, options: Mapping[str, str]
) -> Iterator[tuple[RowGroups, int]]:
    """The parts of a file, each with the number of its rows."""
    try:
        with open_source_file(file, options) as stream:
            metadata = pq.read_metadata(stream)
    except pa.ArrowException as failure:
        raise SourceRefusedError(f"{file.uri}: {failure}") from failure
    counts = [metadata.row_group(each).num_rows for each in range(metadata.num_row_groups)]
    firsts = list(accumulate(counts, initial=0))
    start = 0
    for number in range(len(counts)):
        if number > start and firsts[number + 1] - firsts[start] > SPLIT_ROWS:
            yield RowGroups(start, number, firsts[start]), firsts[number] - firsts[start]
            start = number
    if counts:
        yield RowGroups(start, len(counts), firsts[start]), firsts[-1] - firsts[start]
