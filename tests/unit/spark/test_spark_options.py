from __future__ import annotations

import pickle
import socket

import pytest

import omnigraph
from omnigraph.engine import spark_bridge
from omnigraph.errors import InvalidArgumentError, SparkFailedError, SparkMissingError, StorageError
from omnigraph.spark import spark_session
from omnigraph.spark.spark_session import SparkOptions, build_configuration


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
    with pytest.raises(InvalidArgumentError, match="not both"):
        SparkOptions(master="local", remote="sc://a").with_environment({})


def test_java_is_started_for_the_master_that_is_asked_for() -> None:
    there = build_configuration(SparkOptions(master="yarn", conf={"spark.executor.memory": "2g"}))
    assert (there["spark.master"], there["spark.executor.memory"]) == ("yarn", "2g")
    assert there["spark.speculation"] == "true"
    assert "spark.driver.host" not in there
    here = build_configuration(SparkOptions(master="local[2]"))
    assert (here["spark.master"], here["spark.driver.host"]) == ("local[2,4]", "127.0.0.1")
    assert "spark.master" not in build_configuration(SparkOptions(remote="local[2]"))


def test_a_server_that_does_not_answer_is_named_without_its_token(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spark_session, "ANSWER_SECONDS", 0.2)
    monkeypatch.setattr(spark_session, "find_active_session", lambda: None)
    with socket.socket() as taken:
        # Bound, but nobody listens.
        taken.bind(("127.0.0.1", 0))
        remote = f"sc://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(SparkFailedError, match="no answer within") as caught:
            spark_session.get_session(SparkOptions(remote=f"{remote}/;token=secret;use_ssl=false"))
    assert caught.value.job == f"connect to {remote}"
    assert "secret" not in str(caught.value)


def test_without_pyspark_a_graph_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_bridge, "find_spec", lambda _: None)
    with (
        omnigraph.create("memory://no-spark", schema="node A { name: String @key }") as graph,
        pytest.raises(SparkMissingError) as caught,
    ):
        _ = graph.spark
    assert caught.value.hint == "pip install 'omnigraph[spark]'"


@pytest.mark.parametrize(
    "error",
    [SparkMissingError(), SparkFailedError("load", "why"), StorageError("get", "a/b", "lost")],
)
def test_errors_cross_processes_with_their_fields(error: Exception) -> None:
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)
