"""Splits that are written by one task: those whose rules map the same records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from omnigraph.bulk.mapped_records import RecordReader
from omnigraph.bulk.split_reader import STAGED, SplitSink, read_mapped_splits
from omnigraph.bulk.split_writer import SplitResult, SplitWriter, write_split
from omnigraph.bulk.splits import InputSplit, get_stores
from omnigraph.bulk.task_runner import Runner


@dataclass(frozen=True, slots=True)
class SplitGroup:
    """Splits that are written by one task."""

    splits: tuple[InputSplit, ...]

    @property
    def staged_bytes(self) -> int | None:
        """The size of its rows, if they were staged beside the graph."""
        files = [split.file_range.file for split in self.splits]
        are_staged = all(file.uri.startswith(STAGED) for file in files)
        return sum(file.size for file in files) if are_staged else None


def write_splits(
    runner: Runner, splits: Sequence[InputSplit], *, stage: str
) -> tuple[SplitResult, ...]:
    """Write splits, each reading of records once; their results in the order of the splits."""
    groups = _group_splits(splits)
    answers = runner.run(groups, write_group, stage=stage)
    found = {
        split.number: result
        for group, results in zip(groups, answers, strict=True)
        for split, result in zip(group.splits, results, strict=True)
    }
    return tuple(found[split.number] for split in splits)


def _group_splits(splits: Sequence[InputSplit]) -> list[SplitGroup]:
    groups: dict[RecordReader | int, list[InputSplit]] = {}
    for split in splits:
        mapped = split.file_range.mapped
        groups.setdefault(split.number if mapped is None else mapped.reader, []).append(split)
    return [SplitGroup(tuple(group)) for group in groups.values()]


def write_group(group: SplitGroup) -> tuple[SplitResult, ...]:
    """Read the records that some splits share, and write the good rows of each."""
    splits = group.splits
    mapped = splits[0].file_range.mapped
    if mapped is None:
        (split,) = splits
        return (write_split(split),)
    writers = [SplitWriter(split, get_stores(split.job.location)) for split in splits]
    sinks = [
        SplitSink(writer.accepted, split, writer.write_rows, writer.check_rejected_rows)
        for split, writer in zip(splits, writers, strict=True)
    ]
    records = read_mapped_splits(mapped.reader, splits, sinks)
    return tuple(
        writer.build_result(sink, records=records)
        for writer, sink in zip(writers, sinks, strict=True)
    )
