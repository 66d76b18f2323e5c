from __future__ import annotations

import io
from functools import partial
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from omnigraph.writers.inputs import InputOptions, csv_ranges
from omnigraph.writers.inputs.csv_ranges import CsvRange, RecordRange, cut_csv
from omnigraph.writers.inputs.csv_records import CsvRecords
from omnigraph.writers.inputs.row_sink import RowSink
from unit.writers.loaded_rows import accept

SCHEMA = accept("node P { name: String @key }")


def records_of(stream: io.BytesIO | RecordRange) -> list[str]:
    reading = RowSink(SCHEMA, InputOptions())
    blocks = CsvRecords(stream, reading.build_failure, b"head").iter_blocks()
    return [
        block.format_record(record) for block in blocks for record in range(len(block.frame.lines))
    ]


@given(
    st.lists(st.sampled_from(["a", ",", "\n", "\r\n", '"', '""', '"b', ',"', '"\n']), max_size=16),
    st.integers(1, 9),
)
@example(['"', "a", "\n", '""', "\r\n", '"', "\r\n", "a"], 3)
def test_ranges_have_every_record_once(parts: list[str], size: int) -> None:
    data = "".join(parts).encode()
    with (
        patch.object(csv_ranges, "_COUNT_BYTES", 2),
        patch.object(csv_ranges, "_RECORD_PROBE_BYTES", 2),
    ):
        ranges = cut_csv(lambda: io.BytesIO(data), len(data), size)
        found = [RecordRange(io.BytesIO(data), each) for each in ranges]
        texts = [b"".join(iter(partial(part.read, 4), b"")) for part in found]
    assert b"".join(texts) == data
    before = [b"".join(texts[:number]).count(b"\n") for number in range(len(texts))]
    assert [part.lines_before for part in found] == before
    assert [text for part in texts for text in records_of(io.BytesIO(part))] == records_of(
        io.BytesIO(data)
    )


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        ("a,b\nc,d\n", [(False, 0), (False, 1)]),
        ('a,"b\nc"\nd', [(False, 0), (True, 0), (False, 2)]),
        ('"a""b"', [(False, 0), (True, 0)]),
        ('\ufeff"a,\n"', [(False, 0), (True, 0)]),
        ('5" x\ny\n', [(False, 0)]),
        ('a,b"c"', [(False, 0)]),
        ("a,b\rc,d", [(False, 0)]),
        ("a,b\r\nc,d", [(False, 0), (False, 0)]),
    ],
)
def test_a_range_may_start_within_quotes(text: str, starts: list[tuple[bool, int]]) -> None:
    data = text.encode()
    found = cut_csv(lambda: io.BytesIO(data), len(data), 4)
    assert [(each.is_within_quotes, each.lines_before) for each in found] == starts
    assert found[0].start == 0
    assert found[-1] == CsvRange(found[-1].start, len(data), *starts[-1])
