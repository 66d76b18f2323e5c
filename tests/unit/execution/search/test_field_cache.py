"""Fields of real tables: read once per version, extended along a branch, bounded by memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from model import ModelGraph
from omnigraph.execution.search import (
    FieldCache,
    FieldRef,
    field_cache,
    field_cache_of,
    share_memory,
)
from omnigraph.execution.search import field_cache as module
from omnigraph.execution.search.bm25 import score_bm25
from omnigraph.execution.search.text_filter import match_rows
from omnigraph.execution.sources.topology.cache_files import CacheFiles
from omnigraph.execution.sources.topology.memory_cache import MemoryCache
from omnigraph.query.ast import TextFunction
from omnigraph.rows.columns import build_table_shape
from omnigraph.rows.text_search import TextQuery
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.storage.tables.pins import Pin
from omnigraph.versioning import MAIN
from omnigraph.versioning.record import CommitRef, Stream
from unit.execution.model_views import add_nodes, physical_rows, view_of
from unit.execution.search.searched import documents, graph_of

DOC = TypeKey(TypeKind.NODE, "Doc")


@pytest.fixture
def graph() -> ModelGraph:
    return graph_of(documents(Random(1), 40))


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """How many rows each read of a column was about; None for all."""
    found: list[int | None] = []
    rows = FieldRef.read_rows

    def counted(asked: FieldRef, row_ids: Any, **options: Any) -> Any:
        found.append(None if row_ids is None else len(row_ids))
        return rows(asked, row_ids, **options)

    monkeypatch.setattr(FieldRef, "read_rows", counted)
    return found


def with_more(graph: ModelGraph, view: View, nodes: list[dict[str, Any]]) -> Pin:
    """The version of the documents with some more."""
    add_nodes(graph, "Doc", nodes)
    entities = [graph.nodes["Doc"][node["k"]] for node in nodes]
    pin = view.snapshot.pins[str(DOC)]
    rows = physical_rows(entities, build_table_shape(graph.accepted, DOC))
    return view.tables.append(pin, [view.tables.write(pin, rows)])


def at(view: View, pin: Pin, *, seq: int, stream: Stream = MAIN) -> View:
    pins = {**view.snapshot.pins, str(DOC): pin}
    return replace(view, snapshot=replace(view.snapshot, pins=pins, seq=seq, stream=stream))


def scores(fields: FieldCache, view: View, query: str = "sea cat") -> dict[str, float]:
    """The scores of documents, by id."""
    field = fields.get_texts(FieldRef(view, "Doc", "t"))
    rows = view.open_table(DOC).scan(columns=["__id", "_rowid"])
    found = score_bm25(field, query).astype(np.float32)
    found = found.take(field.find_row_indices(rows["_rowid"].to_numpy()))
    pairs = zip(rows["__id"].to_pylist(), found.tolist(), strict=True)
    return {id_: score for id_, score in pairs if score}


def test_a_version_is_read_once(graph: ModelGraph, reads: list[int | None]) -> None:
    view = view_of(graph)
    fields = FieldCache()
    asked = FieldRef(view, "Doc", "t")
    assert not fields.has_field(asked)
    assert fields.get_texts(asked) is fields.get_texts(FieldRef(view, "Doc", "t"))
    assert fields.has_field(asked)
    assert fields.get_vectors(FieldRef(view, "Doc", "v")) is fields.get_vectors(
        FieldRef(view, "Doc", "v")
    )
    assert reads == [None, None]


def test_a_later_commit_reads_only_what_is_new(graph: ModelGraph, reads: list[int | None]) -> None:
    view = view_of(graph)
    fields = FieldCache()
    scores(fields, view)
    later = at(view, with_more(graph, view, documents(Random(2), 5, start=40)), seq=7)
    assert scores(fields, later) == scores(FieldCache(), later)
    assert reads == [None, 5, None]
    dead = later.open_table(DOC).scan(columns=["_rowid"])["_rowid"].combine_chunks()[3:20]
    pin = later.tables.replace(later.snapshot.pins[str(DOC)], dead=dead)
    latest = at(later, pin, seq=8)
    reads.clear()
    assert scores(fields, latest) == scores(FieldCache(), latest)
    assert reads == [None], "nothing is new"


def test_another_branch_is_not_taken_for_an_earlier_commit(
    graph: ModelGraph, reads: list[int | None]
) -> None:
    """Two branches give the same row ids to different rows."""
    view = view_of(graph)
    fields = FieldCache()
    here = at(view, with_more(graph, view, documents(Random(2), 5, start=40)), seq=7)
    scores(fields, here)
    origin = CommitRef("main", MAIN.id, 5, "c5")
    branch = Stream("b.1", "b", (origin,))
    there_pin = with_more(graph, view, documents(Random(3), 5, start=50))
    there = at(view, there_pin, seq=9, stream=branch)
    reads.clear()
    assert scores(fields, there) == scores(FieldCache(), there)
    assert reads == [None, None]
    # What both started from is an earlier commit of either.
    fields = FieldCache()
    scores(fields, at(view, view.snapshot.pins[str(DOC)], seq=5))
    reads.clear()
    scores(fields, there)
    assert reads == [5]


def test_an_earlier_commit_is_read_as_it_was(graph: ModelGraph, reads: list[int | None]) -> None:
    view = view_of(graph)
    fields = FieldCache()
    later = at(view, with_more(graph, view, documents(Random(2), 5, start=40)), seq=7)
    scores(fields, later)
    assert scores(fields, view) == scores(FieldCache(), view)
    assert reads == [None, None, None]


def test_few_versions_of_a_field_are_kept(graph: ModelGraph) -> None:
    view = view_of(graph)
    fields = FieldCache()
    views = [view]
    for seq in range(1, 7):
        more = documents(Random(seq), 1, start=100 + seq)
        views.append(at(view, with_more(graph, views[-1], more), seq=seq))
        scores(fields, views[-1])
    kept = [fields.has_field(FieldRef(each, "Doc", "t")) for each in views]
    assert kept == [False] * 4 + [True] * 3


def test_vectors_that_are_too_many_are_not_kept(graph: ModelGraph) -> None:
    view = view_of(graph)
    needed = 40 * 3 * 4
    assert FieldCache(MemoryCache(2 * needed)).get_vectors(FieldRef(view, "Doc", "v")) is not None
    assert FieldCache(MemoryCache(2 * needed - 1)).get_vectors(FieldRef(view, "Doc", "v")) is None


def test_memory_is_bounded_by_what_was_not_used_for_longest(graph: ModelGraph) -> None:
    view = view_of(graph)
    memory = MemoryCache(1)
    fields = FieldCache(memory)
    fields.get_texts(FieldRef(view, "Doc", "t"))
    fields.get_texts(FieldRef(view, "Doc", "k"))
    assert not fields.has_field(FieldRef(view, "Doc", "t"))
    assert fields.has_field(FieldRef(view, "Doc", "k"))


def test_the_fields_of_a_graph_live_as_long_as_its_tables(graph: ModelGraph) -> None:
    first, second = view_of(graph), view_of(graph)
    assert field_cache_of(first) is field_cache_of(replace(first))
    assert field_cache_of(first) is not field_cache_of(second)
    count = len(module._caches)
    del second
    assert len(module._caches) == count - 1
    memory = MemoryCache(10)
    share_memory(first.tables, memory)
    assert field_cache_of(first).memory is memory


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CacheFiles:
    monkeypatch.setattr(field_cache, "ROWS_MIN", 1)
    return CacheFiles(tmp_path, graph="memory://g")


def test_texts_are_saved_for_the_next_process(
    graph: ModelGraph, reads: list[int | None], files: CacheFiles
) -> None:
    view = view_of(graph)
    expected = scores(FieldCache(MemoryCache(), files), view)
    files.flush()
    reads.clear()
    fields = FieldCache(MemoryCache(), files)
    assert scores(fields, view) == expected
    query = TextQuery(TextFunction.FUZZY, "boat", 1)
    found = match_rows(fields.get_texts(FieldRef(view, "Doc", "t")), query)
    assert (
        found.tolist()
        == match_rows(FieldCache().get_texts(FieldRef(view, "Doc", "t")), query).tolist()
    )
    assert reads == [None], "only the fields without files read"


def test_saved_texts_are_extended_along_the_branch(
    graph: ModelGraph, reads: list[int | None], files: CacheFiles
) -> None:
    view = view_of(graph)
    scores(FieldCache(MemoryCache(), files), at(view, view.snapshot.pins[str(DOC)], seq=5))
    files.flush()
    later = at(view, with_more(graph, view, documents(Random(2), 5, start=40)), seq=7)
    other = at(view, later.snapshot.pins[str(DOC)], seq=4)
    expected = scores(FieldCache(), later)
    reads.clear()
    assert scores(FieldCache(MemoryCache(), files), other) == expected
    assert reads == [None], "what was saved at a later commit is of no use"
    reads.clear()
    # What is still being saved has another name for a while.
    files.flush()
    for path in files.folder.glob(f"*{later.snapshot.pins[str(DOC)].version}*"):
        path.unlink()
    assert scores(FieldCache(MemoryCache(), files), later) == expected
    assert reads == [5]


def test_few_texts_are_not_saved(graph: ModelGraph, tmp_path: Path) -> None:
    files = CacheFiles(tmp_path, graph="memory://g")
    scores(FieldCache(MemoryCache(), files), view_of(graph))
    files.flush()
    assert list(tmp_path.iterdir()) == []


def test_a_torn_file_is_as_good_as_none(
    graph: ModelGraph, reads: list[int | None], files: CacheFiles
) -> None:
    view = view_of(graph)
    expected = scores(FieldCache(MemoryCache(), files), view)
    files.flush()
    (path,) = files.folder.iterdir()
    path.write_bytes(path.read_bytes()[:-1])
    reads.clear()
    assert scores(FieldCache(MemoryCache(), files), view) == expected
    assert reads == [None]


def test_rows_in_any_order_are_put_in_order(graph: ModelGraph) -> None:
    view = view_of(graph)
    wanted = np.array([30, 2, 17], np.uint64)
    row_ids, texts = FieldRef(view, "Doc", "t").read_rows(wanted)
    assert row_ids.tolist() == [2, 17, 30]
    table = view.open_table(DOC).scan(columns=["_rowid", "c" + _number(view)])
    known = dict(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))
    assert texts.to_pylist() == [known[row] for row in (2, 17, 30)]


def _number(view: View) -> str:
    return view.get_shape(DOC).columns["t"][1:]


@pytest.fixture(autouse=True)
def _no_leftovers() -> Iterator[None]:
    yield
    module._caches.clear()
