"""Damage beyond what reads compare: whatever copies a graph out compares all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import CorruptObjectError
from omnigraph.exports import file_export
from omnigraph.exports.export_formats import Format
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.spark.type_scans import build_type_scan
from omnigraph.storage.tables import file_digests
from omnigraph.storage.tables.file_digests import StoredFile
from omnigraph.storage.tables.store_address import StoreAddress

pytestmark = pytest.mark.on_disk

SCHEMA = (
    "node Item { name: String @key  n: I64  vec: Vector(8) }\nnode Other { name: String @key }\n"
)
COUNT = 400
ITEM = TypeKey(TypeKind.NODE, "Item")


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Graph]:
    """A graph whose two data files of items are larger than what reads compare."""
    place = tmp_path / "graph"
    with omnigraph.create(str(place), schema=SCHEMA, durable=False) as made:
        for start in (0, COUNT):
            numbers = range(start, start + COUNT)
            vectors = pa.array(
                [[0.5 + number] * 8 for number in numbers], pa.list_(pa.float32(), 8)
            )
            rows = pa.table(
                {"name": [f"i{number:05}" for number in numbers], "n": numbers, "vec": vectors}
            )
            made.branch().load(rows, type="Item", mode="append")
        made.branch().load([{"type": "Other", "data": {"name": "x"}}], mode="append")
    monkeypatch.setattr(file_digests, "LOOKUP_BYTES_MAX", 0)
    monkeypatch.setattr(file_digests, "SCAN_BYTES_PER_ROW", 0)
    with omnigraph.open(str(place), durable=False) as opened:
        yield opened


def damage(graph: Graph, fragment: int = 0) -> Path:
    """Flip one bit of a vector, in the second of two files or in the first."""
    files = sorted(Path(graph.uri).glob("t/Item-*/data/*.lance"), key=_first_name)
    data = bytearray(files[fragment].read_bytes())
    data[400] ^= 1
    files[fragment].write_bytes(data)
    return files[fragment]


def _first_name(path: Path) -> bool:
    return b"i00400" in path.read_bytes()


def view_of(graph: Graph) -> View:
    return graph.branch().snapshot().view


def read_on_spark(graph: Graph) -> object:
    scan = build_type_scan(view_of(graph), ITEM)
    return [list(scan.read_batches(unit)) for unit in scan.plan_splits()]


def export_on_spark(graph: Graph) -> object:
    view, target = view_of(graph), StoreAddress(f"{graph.uri}-copy")
    units = file_export._plan_splits(view, [ITEM], target, Format.PARQUET, "1")
    return [file_export.write_split(unit) for unit in units]


COPIES: dict[str, Callable[[Graph], object]] = {
    "export": lambda graph: b"".join(graph.branch().export()),
    "arrow": lambda graph: graph.branch().snapshot().to_arrow("Item"),
    "dataset": lambda graph: graph.branch().snapshot().dataset("Item").head(5),
    "feed baseline": lambda graph: list(graph.branch().baseline()),
    "frame": read_on_spark,
    "files": export_on_spark,
}


@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES)
def test_whatever_copies_a_type_out_finds_a_flipped_bit(
    graph: Graph, copy: Callable[[Graph], object]
) -> None:
    path = damage(graph)
    with pytest.raises(CorruptObjectError, match=path.name):
        copy(graph)


def test_a_plain_check_compares_the_files_of_the_newest_commits(graph: Graph) -> None:
    path = damage(graph)
    assert any(path.name in problem.where for problem in graph.check().problems)


def test_a_copy_of_another_type_is_not_refused(graph: Graph) -> None:
    damage(graph)
    assert b'"x"' in b"".join(graph.branch().export(types=["Other"]))
    rows = graph.branch().snapshot().dataset("Item").to_table(columns=["n"])
    assert rows.num_rows == 2 * COUNT


def test_a_task_compares_the_files_of_its_own_fragments(graph: Graph) -> None:
    path = damage(graph, fragment=1)
    scan = build_type_scan(view_of(graph), ITEM)
    first, second = scan.plan_splits()
    assert sum(len(batch) for batch in scan.read_batches(first)) == COUNT
    with pytest.raises(CorruptObjectError, match=path.name):
        list(scan.read_batches(second))


def test_a_file_is_compared_once_by_a_process(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    verifier = graph._session.resources.storage.tables._verifier
    compared: list[str] = []
    problem = verifier.find_problem

    def noted(table: str, file: StoredFile) -> str | None:
        compared.append(file.path)
        return problem(table, file)

    monkeypatch.setattr(verifier, "find_problem", noted)
    for _ in range(2):
        for copy in (COPIES["export"], COPIES["arrow"], COPIES["frame"]):
            copy(graph)
    assert len(compared) == len(set(compared)) == 3
