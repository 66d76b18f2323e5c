from __future__ import annotations

import csv
import json
import pickle
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import networkx  # type: ignore[import-untyped]
import pyarrow as pa
import pyarrow.parquet
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.bulk.task_runner import Runner
from omnigraph.errors import InvalidArgumentError, LoadError, StorageError
from omnigraph.exports import file_export
from omnigraph.exports.export_formats import Format
from omnigraph.storage.objects.object_store import open_objects
from omnigraph.storage.tables.store_address import StoreAddress
from stores import S3Server

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
    """Runs every unit twice, through bytes, as a task that is tried again."""

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


def exported(graph: Graph, folder: Path, form: Format) -> file_export.ExportResult:
    view = graph.branch().snapshot().view
    place = StoreAddress(str(folder))
    return file_export.export_types(view, list(view.types), Pickling(), target=place, form=form)


@pytest.mark.parametrize("form", [Format.PARQUET, Format.JSONL, Format.CSV])
def test_the_folder_of_an_export_loads_back_as_an_equal_graph(
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
        loaded = main.load(out, mode="append")
        assert (loaded.nodes, loaded.edges, main.head.version) == ({"Person": 2}, {"Knows": 1}, 1)
        assert b"".join(main.export()) == b"".join(graph.branch().export())


def test_an_export_that_lost_a_file_is_not_loaded(graph: Graph, tmp_path: Path) -> None:
    exported(graph, tmp_path / "out", Format.PARQUET)
    (file,) = (tmp_path / "out" / "edges" / "Knows").iterdir()
    file.unlink()
    with (
        omnigraph.create(tmp_path / "h", schema=SCHEMA) as other,
        pytest.raises(LoadError, match=f"{file.name}: this file of the export is missing"),
    ):
        other.branch().load(tmp_path / "out", mode="append")


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


def test_graphml_is_a_file_that_networkx_and_a_load_read(graph: Graph, tmp_path: Path) -> None:
    out = tmp_path / "team.graphml"
    result = graph.branch().export_files(out)
    assert (result.format, result.files, result.uri) == ("graphml", 1, str(out))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g", "in.jsonl", "team.graphml"]
    found: Any = networkx.read_graphml(out)
    # What XML cannot hold becomes a replacement character; line breaks stay.
    name = 'A <"&> \ufffd line\n'
    ((source, target, data),) = found.edges(data=True)
    assert (source, target) == (f"Person:{name}", "Person:Bob")
    assert (data["since"], data["@type"]) == (7, "Knows")
    assert found.nodes[source]["name"] == name
    assert found.nodes[source]["age"] == -1
    assert found.nodes[source]["tags"] == '["x","y\\""]'
    assert found.nodes["Person:Bob"] == {"@type": "Person", "name": "Bob"}
    with omnigraph.create(tmp_path / "h", schema=SCHEMA) as other:
        other.branch().load(out, mode="append")
        lines = b"".join(graph.branch().export())
        assert b"".join(other.branch().export()) == lines.replace(rb"\u0001", "\ufffd".encode())


def test_gexf_is_a_file_that_networkx_reads(graph: Graph, tmp_path: Path) -> None:
    out = tmp_path / "team"
    graph.branch().export_files(out, format="gexf")
    found: Any = networkx.read_gexf(out, version="1.3")
    name = 'A <"&> \ufffd line\n'
    ann = found.nodes[f"Person:{name}"]
    assert (ann["label"], ann["name"], ann["age"], ann["score"]) == (name, name, -1, 1e-9)
    assert found.nodes["Person:Bob"] == {"@type": "Person", "name": "Bob", "label": "Bob"}
    ((_, target, data),) = found.edges(data=True)
    assert (target, data["label"], data["since"]) == ("Person:Bob", "Knows", 7)


def test_a_document_replaces_no_file_and_goes_to_a_disk(graph: Graph, tmp_path: Path) -> None:
    out = tmp_path / "mine.gexf"
    out.write_text("mine")
    with pytest.raises(InvalidArgumentError, match=r"mine.gexf is there"):
        graph.branch().export_files(out)
    assert out.read_text() == "mine"
    with pytest.raises(InvalidArgumentError, match="a document is a file on a disk"):
        graph.branch().export_files("s3://lake/team.graphml")
    with pytest.raises(InvalidArgumentError, match="'dot' is not one of 'parquet'"):
        graph.branch().export_files(out, format="dot")  # type: ignore[arg-type]  # a wrong one


def test_a_graph_in_memory_is_exported_to_a_disk(tmp_path: Path) -> None:
    with omnigraph.create("memory://export-of-memory", schema=SCHEMA) as made:
        made.branch().load([LINES[1]], mode="append")
        made.branch().export_files(tmp_path / "out")
    assert (tmp_path / "out" / "_SUCCESS").exists()


def test_rows_are_cut_into_files_of_bounded_size(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_export, "FILE_BYTES", 1)
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
    with pytest.raises(InvalidArgumentError, match="not empty"):
        exported(graph, out, Format.CSV)
    assert [path.name for path in out.iterdir()] == ["mine.txt"]

    class Failing(Pickling):
        def run(self, units: Sequence[U], task: Callable[[U], R], *, stage: str) -> list[R]:
            super().run(units[:1], task, stage=stage)
            raise RuntimeError("the driver dies")

    view = graph.branch().snapshot().view
    with pytest.raises(RuntimeError, match="dies"):
        file_export.export_types(
            view,
            list(view.types),
            Failing(),
            target=StoreAddress(str(tmp_path / "new")),
            form=Format.CSV,
        )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g", "in.jsonl", "out"]


@pytest.mark.parametrize("form", [Format.CSV, Format.GRAPHML])
def test_a_place_that_cannot_be_written_to_is_a_failure_of_storage(
    graph: Graph, tmp_path: Path, form: Format
) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StorageError, match=r"file/out: .*(Not a directory|is a file)"):
        exported(graph, tmp_path / "file" / "out", form)


@pytest.mark.parametrize("form", [Format.CSV, Format.GRAPHML])
def test_what_another_export_wrote_meanwhile_stays(
    graph: Graph, tmp_path: Path, form: Format
) -> None:
    view, target = graph.branch().snapshot().view, StoreAddress(str(tmp_path / "new"))
    first = {Format.CSV: Format.JSONL, Format.GRAPHML: Format.GEXF}[form]

    class Late(Pickling):
        def run(self, units: Sequence[U], task: Callable[[U], R], *, stage: str) -> list[R]:
            file_export.export_types(view, list(view.types), Pickling(), target=target, form=first)
            return super().run(units, task, stage=stage)

    with pytest.raises((StorageError, InvalidArgumentError), match=r"not empty|new is there"):
        file_export.export_types(view, list(view.types), Late(), target=target, form=form)
    if form is Format.GRAPHML:
        assert "<gexf" in (tmp_path / "new").read_text()
    else:
        assert not list((tmp_path / "new").rglob("*.csv"))


@pytest.fixture
def prefix(s3: S3Server) -> Iterator[StoreAddress]:
    bucket = s3.new_bucket()
    yield StoreAddress(f"s3://{bucket}/out", tuple(sorted(s3.options.items())))
    s3.forget(bucket)


def paths(place: StoreAddress) -> list[str]:
    return [entry.path for entry in open_objects(place.root, options=dict(place.options)).list("")]


class Meeting(Pickling):
    """Exports to the same prefix while another export does, and leaves something else there."""

    def __init__(self, graph: Graph, place: StoreAddress) -> None:
        self.graph = graph
        self.place = place

    def run(self, units: Sequence[U], task: Callable[[U], R], *, stage: str) -> list[R]:
        answers = super().run(units, task, stage=stage)
        with pytest.raises(InvalidArgumentError, match="is not empty: _EXPORTING is there"):
            exported_to(self.graph, self.place, Pickling())
        objects = open_objects(self.place.root, options=dict(self.place.options))
        objects.put("nodes/Person/note.txt", b"mine")
        return answers


def exported_to(graph: Graph, place: StoreAddress, runner: Runner) -> file_export.ExportResult:
    view = graph.branch().snapshot().view
    return file_export.export_types(view, list(view.types), runner, target=place, form=Format.JSONL)


def test_exports_to_one_prefix_exclude_each_other_and_remove_only_their_own(
    graph: Graph, prefix: StoreAddress
) -> None:
    result = exported_to(graph, prefix, Meeting(graph, prefix))
    found = paths(prefix)
    assert "nodes/Person/note.txt" in found
    assert len(found) == result.files + 2
    assert "_SUCCESS" in found
    with pytest.raises(InvalidArgumentError, match="is not empty"):
        exported_to(graph, prefix, Pickling())
    assert paths(prefix) == found


def test_an_attempt_that_comes_late_adds_nothing_to_an_export(
    graph: Graph, prefix: StoreAddress
) -> None:
    late: list[Callable[[], object]] = []

    class Late(Pickling):
        def run(self, units: Sequence[U], task: Callable[[U], R], *, stage: str) -> list[R]:
            late.extend(partial(task, unit) for unit in units)
            return super().run(units, task, stage=stage)

    exported_to(graph, prefix, Late())
    objects = open_objects(prefix.root, options=dict(prefix.options))
    before = {path: objects.get(path) for path in paths(prefix)}
    for attempt in late:
        attempt()
    assert {path: objects.get(path) for path in paths(prefix)} == before


def test_a_failed_export_leaves_nothing_at_its_prefix(graph: Graph, prefix: StoreAddress) -> None:
    class Failing(Pickling):
        def run(self, units: Sequence[U], task: Callable[[U], R], *, stage: str) -> list[R]:
            super().run(units, task, stage=stage)
            assert len(paths(prefix)) > 1
            raise RuntimeError("a task fails for good")

    with pytest.raises(RuntimeError, match="for good"):
        exported_to(graph, prefix, Failing())
    assert paths(prefix) == []
    exported_to(graph, prefix, Pickling())


def test_a_place_is_shown_without_its_options() -> None:
    assert "hunter2" not in repr(
        StoreAddress("s3://lake/team", (("aws_secret_access_key", "hunter2"),))
    )
