from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph import Branch, Graph, LoadEngineName
from omnigraph.bulk import splits
from omnigraph.errors import LoadError

SCHEMA = "node Person { name: String @key  age: I32?  born: Date?  @range(age, 0..150) }"
PEOPLE = """name,age,born
ada,36,1990-01-02
bob
"cleo
the second",200,soon
dan,4,,

eve,x,1990-02-30
fay,5,
"""


@pytest.fixture
def graphs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Graph]]:
    # Several tasks, one of which starts within quotes.
    monkeypatch.setattr(splits, "SPLIT_BYTES", 42)
    made = {
        name: omnigraph.create(str(tmp_path / name), schema=SCHEMA, durable=False)
        for name in ("spark", "local")
    }
    yield made
    for graph in made.values():
        graph.close()


def told(branch: Branch, path: Path, engine: LoadEngineName) -> list[str]:
    with pytest.raises(LoadError) as refused:
        branch.load(path, type="Person", mode="append", engine=engine)
    return [str(each) for each in refused.value.violations]


def rejected(branch: Branch, path: Path, engine: LoadEngineName) -> list[dict[str, Any]]:
    result = branch.load(
        path,
        type="Person",
        mode="append",
        engine=engine,
        on_error="quarantine",
        rejects=path.parent / f"rejects-{engine}",
    )
    assert (result.nodes, result.rejected, branch.count("Person")) == ({"Person": 2}, 4, 2)
    assert result.rejects is not None
    found: list[dict[str, Any]] = pq.read_table(result.rejects).to_pylist()
    return found


@pytest.mark.smoke
@pytest.mark.usefixtures("spark")
def test_both_engines_reject_the_same_records_of_a_csv_file(
    graphs: dict[str, Graph], tmp_path: Path
) -> None:
    path = tmp_path / "people.csv"
    path.write_text(PEOPLE)
    pieces = splits.plan_file_ranges(str(path), {}, type_name="Person")
    assert [piece.csv and piece.csv.is_within_quotes for piece in pieces] == [False, True, False]
    on_spark, local = (graphs[name].branch() for name in ("spark", "local"))
    reasons = told(on_spark, path, "spark")
    # A load at once comes to the rules of the schema when all values have their form.
    assert told(local, path, "local") == [each for each in reasons if "@range" not in each]
    assert len(reasons) == 6
    rows = rejected(on_spark, path, "spark")
    assert json.dumps(rows) == json.dumps(rejected(local, path, "local"))
    assert [(row["number"], row["rule"], row["raw"]) for row in rows] == [
        (3, "csv", "bob"),
        (4, "value", '"cleo\nthe second",200,soon'),
        (4, "range", '"cleo\nthe second",200,soon'),
        (6, "csv", "dan,4,,"),
        (8, "value", "eve,x,1990-02-30"),
        (8, "value", "eve,x,1990-02-30"),
    ]
