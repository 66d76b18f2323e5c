from __future__ import annotations

import csv
import json
import pickle
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import networkx  # type: ignore[import-untyped]
import pyarrow as pa
import pyarrow.parquet
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import InvalidArgument
from omnigraph.spark import export
from omnigraph.spark.formats import Format
from omnigraph.spark.scans import Place

U = TypeVar("U")
R = TypeVar("R")
SCHEMA = """
node Person {
  name: String @key
  age: I32?
  score: F64?
  seen: DateTime?
  born: Date?
  tags: [String]?
  place: Vector(2)?
  photo: Blob?
}
edge Knows: Person -> Person { since: I64? }
"""
LINES = [
    {
        "type": "Person",
        "data": {
            "name": 'A <"&> \u0001 line\n',
            "age": -1,
            "score": 1e-9,
            "seen": "2026-01-02T03:04:05.678Z",
            "born": "1985-02-03",
            "tags": ["x", 'y"'],
            "place": [1.5, -2.0],
            "photo": "base64:cG5n",
        },
    },
    {"type": "Person", "data": {"name": "Bob"}},
    {"edge": "Knows", "from": 'A <"&> \u0001 line\n', "to": "Bob", "data": {"since": 7}},
]


class Pickling:
    """Runs every unit twice, through bytes: an attempt that does not count leaves files too."""

    def run(self, units: Sequence[U], task: Callable[[U], R], *, stage: str) -> list[R]:
        assert stage == "export"
        answers = []
        for unit in units:
            task(unit)
            answers.append(task(pickle.loads(pickle.dumps(unit))))  # noqa: S301
        return answers


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[Graph]:
    source = tmp_path / "in.jsonl"
    source.write_text("".join(json.dumps(line) + "\n" for line in LINES))
    with omnigraph.create(tmp_path / "g", schema=SCHEMA) as made:
        made.branch().load(source, mode="append")
        yield made


def exported(graph: Graph, folder: Path, form: Format) -> export.ExportResult:
    view = graph.branch().snapshot().view
    place = Place(str(folder))
    return export.export_types(view, list(view.types), Pickling(), target=place, form=form)


@pytest.mark.parametrize("form", [Format.PARQUET, Format.JSONL])
def test_an_export_loads_back_into_an_equal_graph(
    graph: Graph, tmp_path: Path, form: Format
) -> None:
    out = tmp_path / "out"
    result = exported(graph, out, form)
    assert (result.nodes, result.edges) == ({"Person": 2}, {"Knows": 1})
    success = json.loads((out / "_SUCCESS").read_text())
    files = sorted(str(path.relative_to(out)) for path in out.rglob("*.*"))
    assert success["paths"] == files
    assert len(files) == result.files == 2
    with omnigraph.create(tmp_path / "h", schema=SCHEMA) as other:
        main = other.branch()
        for type_name, folder in (("Person", "nodes/Person"), ("Knows", "edges/Knows")):
            (file,) = (out / folder).iterdir()
            kind = None if form is Format.JSONL else type_name
            main.load(file, mode="append", type=kind)
        assert b"".join(main.export()) == b"".join(graph.branch().export())


def test_csv_has_lists_as_json_and_nulls_as_nothing(graph: Graph, tmp_path: Path) -> None:
    exported(graph, tmp_path / "out", Format.CSV)
    (file,) = (tmp_path / "out" / "nodes" / "Person").iterdir()
    with file.open(newline="") as lines:
        ann, bob = csv.DictReader(lines)
    assert ann == {
        "@id": 'A <"&> \u0001 line\n',
        "name": 'A <"&> \u0001 line\n',
        "age": "-1",
        "score": "1e-09",
        "seen": "2026-01-02T03:04:05.678Z",
        "born": "1985-02-03",
        "tags": '["x","y\\""]',
        "place": "[1.5,-2.0]",
        "photo": "base64:cG5n",
    }
    assert {value for name, value in bob.items() if name not in ("@id", "name")} == {""}


def test_graphml_is_one_document_that_networkx_reads(graph: Graph, tmp_path: Path) -> None:
    result = exported(graph, tmp_path / "out", Format.GRAPHML)
    assert sorted(path.name for path in (tmp_path / "out").iterdir() if path.is_file()) == [
        "_SUCCESS",
        "graph.graphml",
    ]
    assert result.files == 1
    found: Any = networkx.read_graphml(tmp_path / "out" / "graph.graphml")
    name = 'A <"&> \ufffd line\n'
    # Whoever reads an attribute of XML sees a space for a line break.
    ((source, target, data),) = found.edges(data=True)
    assert target == "Person:Bob"
    assert (data["since"], data["@type"]) == (7, "Knows")
    assert found.nodes[source]["name"] == name
    assert found.nodes[source]["age"] == -1
    assert found.nodes[source]["tags"] == '["x","y\\""]'
    assert found.nodes["Person:Bob"] == {"@type": "Person", "name": "Bob"}


def test_rows_are_cut_into_files_of_bounded_size(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "FILE_BYTES", 1)
    for number in range(3):
        graph.branch().load(pa.table({"name": [f"p{number}"]}), mode="append", type="Person")
    result = exported(graph, tmp_path / "out", Format.PARQUET)
    files = list((tmp_path / "out" / "nodes").rglob("*.parquet"))
    assert result.files == len(files) + 1
    assert sum(pyarrow.parquet.read_table(file).num_rows for file in files) == 5


def test_what_is_there_stays_and_a_failure_leaves_nothing(graph: Graph, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    with pytest.raises(InvalidArgument, match="not empty"):
        exported(graph, out, Format.CSV)
    assert [path.name for path in out.iterdir()] == ["mine.txt"]

    class Failing(Pickling):
        def run(self, units: Sequence[U], task: Callable[[U], R], *, stage: str) -> list[R]:
            super().run(units[:1], task, stage=stage)
            raise RuntimeError("the driver dies")

    view = graph.branch().snapshot().view
    with pytest.raises(RuntimeError, match="dies"):
        export.export_types(
            view, list(view.types), Failing(), target=Place(str(tmp_path / "new")), form=Format.CSV
        )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g", "in.jsonl", "out"]
