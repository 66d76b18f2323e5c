from __future__ import annotations

import io
from functools import partial
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from omnigraph.writers.inputs import InputOptions, csv_ranges
from omnigraph.writers.inputs.csv_ranges import RecordRange, find_quoted_starts
from omnigraph.writers.inputs.csv_records import CsvRecords
from omnigraph.writers.inputs.row_sink import RowSink
from unit.writers.loaded_rows import accept

SCHEMA = accept("node P { name: String @key }")


def borders_of(data: bytes, size: int) -> list[int]:
    return [*range(0, max(len(data), 1), size), len(data)]


def records_of(stream: io.BytesIO | RecordRange) -> list[str]:
    reading = RowSink(SCHEMA, InputOptions())
    blocks = CsvRecords(stream, reading, b"head").iter_blocks()
    return [
        block.format_record(record) for block in blocks for record in range(len(block.frame.lines))
    ]


@given(
    st.lists(st.sampled_from(["a", ",", "\n", "\r\n", '"', '""', '"b', ',"', '"\n']), max_size=16),
    st.integers(1, 9),
)
@settings(deadline=None, max_examples=500)
@example(['"', "a", "\n", '""', "\r\n", '"', "\r\n", "a"], 3)
def test_ranges_have_every_record_once(parts: list[str], size: int) -> None:
    data = "".join(parts).encode()
    borders = borders_of(data, size)
    with (
        patch.object(csv_ranges, "_COUNT_BYTES", 2),
        patch.object(csv_ranges, "_RECORD_PROBE_BYTES", 2),
    ):
        starts = find_quoted_starts(lambda: io.BytesIO(data), borders)
        if starts is None:
            return
        found = [
            RecordRange(io.BytesIO(data), start, end, is_within=is_within)
            for start, end, is_within in zip(borders[:-1], borders[1:], starts, strict=True)
        ]
        texts = [b"".join(iter(partial(part.read, 4), b"")) for part in found]
    assert b"".join(texts) == data
    assert [text for part in texts for text in records_of(io.BytesIO(part))] == records_of(
        io.BytesIO(data)
    )


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        ("a,b\nc,d\n", [False, False]),
        ('a,"b\nc"\nd', [False, True, False]),
        ('"a""b"', [False, True]),
        ('\ufeff"a,\n"', [False, True]),
        ('5" x\ny\n', None),
        ('a,b"c"', None),
        ("a,b\rc,d", None),
        ("a,b\r\nc,d", [False, False]),
    ],
)
def test_a_range_may_start_within_quotes(text: str, starts: list[bool] | None) -> None:
    data = text.encode()
    assert find_quoted_starts(lambda: io.BytesIO(data), borders_of(data, 4)) == starts
