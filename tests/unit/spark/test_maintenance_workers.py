from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.engine import optimize
from omnigraph.spark.spark_maintenance import SparkWorkers
from omnigraph.storage.tables import table_indexes

U = TypeVar("U")
R = TypeVar("R")
SCHEMA = "node Person { name: String @key  age: I32? @index }"


class Pickling:
    """Runs units here, after they and their answers went through bytes as they do on Spark."""

    def __init__(self) -> None:
        self.stages: list[tuple[str, int]] = []

    def run(self, units: Sequence[U], task: Callable[[U], R], *, stage: str) -> list[R]:
        self.stages.append((stage, len(units)))
        answers = []
        for unit in units:
            copy: U = pickle.loads(pickle.dumps(unit))  # noqa: S301
            answer: R = pickle.loads(pickle.dumps(task(copy)))  # noqa: S301
            answers.append(answer)
        return answers


def test_workers_elsewhere_do_what_the_tables_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_indexes, "SEGMENT_ROWS_MAX", 50)
    with omnigraph.create(tmp_path / "g", schema=SCHEMA) as graph:
        main = graph.branch()
        for start in range(0, 200, 20):
            names = [f"p{number}" for number in range(start, start + 20)]
            main.load(
                pa.table({"name": names, "age": list(range(20))}), mode="append", type="Person"
            )
        before = b"".join(main.export())
        runner = Pickling()
        session = graph._session
        workers = SparkWorkers(session.resources.storage.tables, runner)
        built = optimize.ensure_indices(session, main._stream, workers)
        assert built.commit is not None
        # Ten fragments become five segments of each of three indexes.
        assert ("index", 15) in runner.stages
        states = graph.index_status()
        assert {str(each.state) for each in states} == {"fresh"}
        main.load(pa.table({"name": ["late"], "age": [3]}), mode="append", type="Person")
        done = optimize.optimize(session, main._stream, workers)
        assert done.commit is not None
        # Fragments that different segments cover are not joined.
        assert ("compact", 5) in runner.stages
        assert [table.fragments_removed > table.fragments_added for table in done.tables] == [True]
        found = main.query(
            "query q() { match { $p: Person { age: 3 } } return { count($p) as n } }"
        )
        assert found.to_pylist() == [{"n": 11}]
        main.mutate('query q() { delete Person where name = "late" }')
        assert b"".join(main.export()) == before
        assert not graph.check().problems
