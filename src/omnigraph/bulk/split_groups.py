"""Splits that are written by one task: those whose rules map the same records."""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.bulk.mapped_records import RecordReader
from omnigraph.bulk.split_reader import SplitSink, read_mapped_splits
from omnigraph.bulk.split_writer import SplitResult, SplitWriter, write_split
from omnigraph.bulk.splits import InputSplit, get_stores
from omnigraph.bulk.task_runner import Runner


def write_splits(
    runner: Runner, splits: Sequence[InputSplit], *, stage: str
) -> tuple[SplitResult, ...]:
    """Write splits, each reading of records once; their results in the order of the splits."""
    groups = _group_splits(splits)
    answers = runner.run(groups, write_group, stage=stage)
    found = {
        split.number: result
        for group, results in zip(groups, answers, strict=True)
        for split, result in zip(group, results, strict=True)
    }
    return tuple(found[split.number] for split in splits)


def _group_splits(splits: Sequence[InputSplit]) -> list[tuple[InputSplit, ...]]:
    groups: dict[RecordReader | int, list[InputSplit]] = {}
    for split in splits:
        mapped = split.file_range.mapped
        groups.setdefault(split.number if mapped is None else mapped.reader, []).append(split)
    return [tuple(group) for group in groups.values()]


def write_group(group: tuple[InputSplit, ...]) -> tuple[SplitResult, ...]:
    """Read the records that some splits share, and write the good rows of each."""
    mapped = group[0].file_range.mapped
    if mapped is None:
        (split,) = group
        return (write_split(split),)
    writers = [SplitWriter(split, get_stores(split.job.location)) for split in group]
    sinks = [
        SplitSink(writer.accepted, split, writer.write_rows, writer.check_rejected_rows)
        for split, writer in zip(group, writers, strict=True)
    ]
    records = read_mapped_splits(mapped.reader, group, sinks)
    return tuple(
        writer.build_result(sink, records=records)
        for writer, sink in zip(writers, sinks, strict=True)
    )
