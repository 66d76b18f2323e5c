"""Notes of a load are compared with the digests in their names before anything reads them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.bulk.bulk_sources import stage_rows
from omnigraph.bulk.hash_files import read_hashes, write_hashes
from omnigraph.bulk.split_reader import STAGED
from omnigraph.bulk.task_tracking import (
    read_task_input,
    read_task_object,
    read_task_rows,
    write_task_input,
    write_task_rows,
)
from omnigraph.errors import CorruptObjectError
from omnigraph.rows.hashing import Hashes
from omnigraph.storage.objects.object_store import Objects, open_objects

FOLDER = "__manifest/staging/load"
ROWS = pa.table({"name": ["ada", "bob"], "age": [1, 2]})
_stores = count()


@pytest.fixture
def notes() -> Objects:
    return open_objects(f"memory://notes-{next(_stores)}")


def rows_again(notes: Objects) -> pa.Table:
    return read_task_rows(notes, write_task_rows(notes, FOLDER, ROWS))


def question_again(notes: Objects) -> object:
    return read_task_input(notes, write_task_input(notes, FOLDER, ("who", 3)))


def input_again(notes: Objects) -> pa.Table:
    piece = stage_rows(notes, FOLDER, ROWS, type_name="Person")
    return pa.ipc.open_stream(
        read_task_object(notes, piece.file.uri.removeprefix(STAGED))
    ).read_all()


def hashes_again(notes: Objects) -> list[int]:
    hashes: Hashes = np.array([5, 3], np.uint64)
    file = write_hashes(notes, FOLDER, [hashes], parts=1, is_sorted=True)
    return [int(each) for each in read_hashes(notes, [file])]


NOTES: dict[str, tuple[Callable[[Objects], object], object]] = {
    "rows": (rows_again, ROWS),
    "question": (question_again, ("who", 3)),
    "input": (input_again, ROWS),
    "hashes": (hashes_again, [3, 5]),
}


@pytest.mark.parametrize("kind", NOTES)
def test_a_note_is_read_as_it_was_written(notes: Objects, kind: str) -> None:
    again, expected = NOTES[kind]
    assert again(notes) == expected


@pytest.mark.parametrize("kind", NOTES)
def test_a_damaged_note_is_refused_before_anything_reads_it(
    notes: Objects, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    again, _ = NOTES[kind]
    whole = notes.get

    def damaged(path: str) -> bytes | None:
        data = bytearray(whole(path) or b"")
        data[len(data) // 2] ^= 4
        return bytes(data)

    monkeypatch.setattr(notes, "get", damaged)
    with pytest.raises(CorruptObjectError, match="its digest is not the one in its name"):
        again(notes)
