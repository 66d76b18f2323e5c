from __future__ import annotations

import pickle

import pytest

import omnigraph
from omnigraph.engine import distributed
from omnigraph.errors import InvalidArgument, SparkFailed, SparkMissing, StorageError
from omnigraph.spark.session import SparkOptions


def test_arguments_win_over_the_environment() -> None:
    variables = {"SPARK_MASTER_URL": "spark://a:7077"}
    assert SparkOptions().with_environment(variables).master == "spark://a:7077"
    assert SparkOptions(master="local[1]").with_environment(variables).master == "local[1]"
    remote = SparkOptions(conf={"a": "b"}).with_environment(
        {**variables, "SPARK_REMOTE": "sc://a:15002"}
    )
    assert remote == SparkOptions(None, "sc://a:15002", {"a": "b"})
    assert SparkOptions().with_environment({}) == SparkOptions()


def test_two_places_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="not both"):
        SparkOptions(master="local", remote="sc://a").with_environment({})


def test_without_pyspark_a_graph_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributed, "find_spec", lambda _: None)
    with (
        omnigraph.create("memory://no-spark", schema="node A { name: String @key }") as graph,
        pytest.raises(SparkMissing) as caught,
    ):
        _ = graph.spark
    assert caught.value.hint == "pip install 'omnigraph[spark]'"


@pytest.mark.parametrize(
    "error", [SparkMissing(), SparkFailed("load", "why"), StorageError("get", "a/b", "lost")]
)
def test_errors_cross_processes_with_their_fields(error: Exception) -> None:
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)
