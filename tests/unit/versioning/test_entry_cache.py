"""The records in memory stay within their bounds, however large each of them is."""

from __future__ import annotations

import pytest

from omnigraph.versioning import MAIN, Changed, IdSet, Record, record_codec
from omnigraph.versioning.record_codec import EntryCache, encode_entry


def _record(seq: int, ids: int = 1, stream: str = MAIN.id) -> Record:
    inserted = IdSet(f"some-entity-{number:06}" for number in range(ids))
    changes = {"node:Person": Changed(inserted=inserted)}
    return Record(stream, "main", seq, f"C{seq}", "P", 1, "s", {}, changes=changes)


def _kept(cache: EntryCache, seqs: range) -> list[int]:
    return [seq for seq in seqs if cache.get(MAIN.id, seq) is not None]


def test_large_records_are_bounded_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(encode_entry(_record(10, ids=500)))
    monkeypatch.setattr(record_codec, "CACHED_BYTES_MAX", 4 * size)
    cache = EntryCache()
    for seq in range(10, 30):
        cache.keep(_record(seq, ids=500), size)
    assert _kept(cache, range(10, 30)) == [26, 27, 28, 29]
    # One that was just made has no bytes at hand, and counts as much.
    cache.keep(_record(30, ids=500))
    assert _kept(cache, range(10, 31)) == [27, 28, 29, 30]


def test_small_records_are_bounded_by_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_codec, "CACHED_ENTRIES_MAX", 3)
    cache = EntryCache()
    for seq in (1, 2, 3):
        cache.keep(_record(seq), 100)
    cache.get(MAIN.id, 1)
    cache.keep(_record(4), 100)
    assert _kept(cache, range(5)) == [1, 3, 4]


def test_a_record_that_is_kept_again_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_codec, "CACHED_BYTES_MAX", 200)
    cache = EntryCache()
    for seq in (1, 2, 2, 2, 1):
        cache.keep(_record(seq), 100)
    assert _kept(cache, range(5)) == [1, 2]


def test_the_stored_ends_of_streams_are_bounded_by_their_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    streams = [f"review.{number}" for number in range(10)]
    ends = {stream: _record(1, stream=stream) for stream in streams}
    size = len(encode_entry(ends[streams[0]]))
    monkeypatch.setattr(record_codec, "CACHED_END_BYTES_MAX", 2 * size)
    cache = EntryCache()
    for entry in ends.values():
        cache.keep_end(entry, encode_entry(entry))
    found = [
        stream
        for stream, entry in ends.items()
        if cache.decode(stream, 1, encode_entry(entry)) is entry
    ]
    assert found == streams[-2:]
