from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from omnigraph.errors import SourceFailedError, StorageError
from omnigraph.pipelines.sources import http_source
from omnigraph.pipelines.sources.http_source import Staging, open_staging, read_pieces
from omnigraph.storage.objects.layout import Entry
from omnigraph.storage.objects.local_store import LocalObjects

PAGES = 200
RECORDS = 5_000
TEXT = '{"login": "user-000001", "name": "' + "n" * 60 + '"}'


def _numbers(count: int) -> pa.RecordBatch:
    return pa.record_batch({"id": pa.array(range(count), pa.int64())})


def _read(place: Staging, count: int) -> list[tuple[int, int, str]]:
    batches = read_pieces(place, iter([_numbers(count)]))
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def test_what_is_staged_is_read_again_with_the_numbers_of_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_source, "PIECE_BYTES", 50)
    pages = [["a", "b"], [], ["c"], ["d", "é" * 50]]
    with open_staging(str(tmp_path)) as place:
        count = place.write(pa.array(page, pa.string()) for page in pages)
        assert count == 2
        found = _read(place, count)
    assert [(page, row) for page, row, _ in found] == [(1, 1), (1, 2), (3, 1), (4, 1), (4, 2)]
    assert [text for _, _, text in found] == ["a", "b", "c", "d", "é" * 50]


def test_nothing_is_left_behind_even_after_a_failure(tmp_path: Path) -> None:
    def pages() -> Iterator[pa.Array]:
        yield pa.array([TEXT])
        raise SourceFailedError("gone")

    with pytest.raises(SourceFailedError), open_staging(str(tmp_path)) as place:
        place.write(pages())
    with open_staging(str(tmp_path)) as place:
        assert place.write([pa.array([TEXT])]) == 1
        assert [path for path in tmp_path.rglob("*") if path.is_file()] != []
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    with open_staging(None) as place:
        here = Path(place.uri)
        place.write([pa.array([TEXT])])
        assert here.is_dir()
    assert not here.exists()


def test_memory_follows_a_piece_and_not_all_pages(tmp_path: Path) -> None:
    before, most = pa.total_allocated_bytes(), 0

    def pages() -> Iterator[pa.Array]:
        nonlocal most
        for _ in range(PAGES):
            yield pa.array([TEXT] * RECORDS)
            most = max(most, pa.total_allocated_bytes() - before)

    with open_staging(str(tmp_path)) as place:
        count = place.write(pages())
        assert sum(len(batch) for batch in read_pieces(place, iter([_numbers(count)]))) == (
            PAGES * RECORDS
        )
    assert count > PAGES * RECORDS * len(TEXT) // (2 * http_source.PIECE_BYTES)
    assert most < 3 * http_source.PIECE_BYTES


@pytest.mark.parametrize("failure", [StorageError("list", "x", "no answer"), OSError("no answer")])
def test_pieces_that_cannot_be_removed_hide_no_other_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    class Silent(LocalObjects):
        def list(self, prefix: str, *, after: str | None = None) -> Iterator[Entry]:
            """It fails."""
            del prefix, after
            raise failure

    monkeypatch.setattr(http_source, "_open_objects_at", lambda _: Silent(str(tmp_path)))
    with open_staging(str(tmp_path)) as place:
        assert place.write([pa.array([TEXT])]) == 1
    with (
        pytest.raises(SourceFailedError, match="the service answers 500"),
        open_staging(str(tmp_path)),
    ):
        raise SourceFailedError("the service answers 500")
