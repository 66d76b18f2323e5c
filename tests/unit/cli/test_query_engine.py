from __future__ import annotations

from pathlib import Path

import pytest

from unit.cli.small_company import Run

TEXT = "query q() { match { $p: Person } return { count($p) as n } }"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--master", "local[2]"], "need --engine spark"),
        (["--spark-conf", "a.b=c"], "need --engine spark"),
        (["--engine", "spark", "--spark-conf", "a.b"], "'a.b' is not KEY=VALUE"),
        (["--engine", "spark", "--master", "a", "--spark-remote", "b"], "exclude each other"),
        (["--engine", "flink"], "flink"),
    ],
)
def test_options_about_spark_that_mean_nothing_are_refused(
    run: Run, store: Path, options: list[str], reason: str
) -> None:
    result = run("query", "--store", store, "-e", TEXT, *options)
    assert result.exit_code == 2
    assert reason in " ".join(result.stderr.replace("│", " ").split())


def test_a_statement_runs_in_this_process(run: Run, store: Path) -> None:
    result = run("query", "--store", store, "-e", "branch list", "--engine", "spark")
    assert result.exit_code != 0
    assert "--engine" in result.stderr
