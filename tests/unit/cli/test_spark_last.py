"""What is wrong with a command is told before Spark starts: here, where it cannot."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from unit.cli.small_company import Run

# No session can be made of it, which is found as soon as one is asked for.
NOWHERE = ("--spark-remote", "http://no-server")
GOOD = "query q() { match { $p: Person } return { count($p) as n } }"
BAD_TYPE = "query q() { match { $p: Persn } return { $p.name } }"
BAD_TEXT = "query q() { match { $p: Person } return"
NO_PARAMETER = "query q($n: String) { match { $p: Person { name: $n } } return { $p.name } }"
MUTATION = 'query q() { insert Person { name: "x" } }'
RANKED = (
    'query q() { match { $p: Person } return { $p.name } order { bm25($p.name, "a") } limit 2 }'
)


def _query(text: str, *more: str) -> list[str]:
    return ["query", "--store", "STORE", "-e", text, "--engine", "spark", *more]


def _export(*more: str, out: str = "FOLDER/new") -> list[str]:
    return ["export", "STORE", "--engine", "spark", "--out", out, *more]


def _load(data: str, *more: str) -> list[str]:
    return ["load", "STORE", "--data", data, "--mode", "append", "--engine", "spark", *more]


REFUSED = {
    "a graph that is not there": (
        ["query", "--store", "FOLDER/none.omni", "-e", GOOD, "--engine", "spark"],
        "none.omni",
    ),
    "a type that is not there": (_query(BAD_TYPE), "Persn"),
    "a text that does not compile": (_query(BAD_TEXT), "error"),
    "a parameter that is not given": (_query(NO_PARAMETER), "parameter 'n'"),
    "a mutation": (_query(MUTATION), "mutat"),
    "a ranked search": (_query(RANKED), "bm25"),
    "a branch that is not there": (_query(GOOD, "--branch", "nope"), "nope"),
    "a state that is not there": (_query(GOOD, "--snapshot", "nope"), "nope"),
    "a query that is not in the text": (_query(GOOD, "other"), "other"),
    "an export of another type": (_export("--type", "Persn"), "Persn"),
    "an export to a folder in use": (_export(out="FOLDER"), "not empty"),
    "an export to a file": (_export(out="FOLDER/s.pg"), "s.pg"),
    "an export of another branch": (_export("--branch", "nope"), "nope"),
    "an export to the memory": (_export(out="memory://m"), "memory"),
    "an export in another format": (_export("--format", "xlsx"), "xlsx"),
    "a file that is not there": (_load("FOLDER/none.jsonl"), "none.jsonl"),
    "a pattern without files": (_load("FOLDER/*.orc"), "*.orc"),
    "a file of another kind": (_load("FOLDER/s.pg"), "s.pg"),
    "a type of lines": (_load("FOLDER/people.jsonl", "--type", "Person"), "names its own type"),
    "a table of another type": (_load("FOLDER/t.parquet", "--type", "Persn"), "Persn"),
    "a text of another type": (_load("FOLDER/t.csv", "--type", "Persn"), "Persn"),
    "a table of no type": (_load("FOLDER/t.parquet"), "of which type"),
    "other columns": (_load("FOLDER/t.parquet", "--type", "Person"), "nick"),
    "a load into another branch": (_load("FOLDER/people.jsonl", "--branch", "nope"), "nope"),
    "a load on another commit": (_load("FOLDER/people.jsonl", "--if-commit", "nope"), "nope"),
    "another mode": (_load("FOLDER/people.jsonl", "--mode", "upsert"), "upsert"),
    "optimizing another branch": (
        ["optimize", "STORE", "--engine", "spark", "--branch", "nope"],
        "nope",
    ),
    "indexing another branch": (
        ["index", "build", "STORE", "--engine", "spark", "--branch", "nope"],
        "nope",
    ),
}
RIGHT = {
    "query": _query(GOOD),
    "export": _export(),
    "load": _load("FOLDER/people.jsonl"),
    "index build": ["index", "build", "STORE", "--engine", "spark"],
}


@pytest.mark.on_disk
@pytest.mark.parametrize("case", REFUSED)
def test_a_mistake_is_told_where_spark_cannot_start(
    run: Run, store: Path, folder: Path, case: str
) -> None:
    arguments, said = REFUSED[case]
    result = run(*_placed(arguments, store, folder), *NOWHERE)
    assert result.exit_code != 0
    assert said in result.output
    assert not _is_missed(result.output)


def _is_missed(output: str) -> bool:
    """Whether a session was asked for; the process may have one already, which is no server."""
    return "no-server" in output or "already has a session" in output


@pytest.mark.on_disk
@pytest.mark.parametrize("verb", RIGHT)
def test_without_a_mistake_spark_is_missed(run: Run, store: Path, folder: Path, verb: str) -> None:
    result = run(*_placed(RIGHT[verb], store, folder), *NOWHERE)
    assert result.exit_code != 0
    assert _is_missed(result.output)


@pytest.mark.on_disk
def test_what_was_loaded_before_needs_no_spark(run: Run, store: Path, folder: Path) -> None:
    load = ("load", store, "--data", folder / "people.jsonl", "--mode", "merge", "--key", "k1")
    assert run(*load).exit_code == 0
    again = run(*load, "--engine", "spark", *NOWHERE)
    assert again.exit_code == 0, again.output


def _placed(arguments: list[str], store: Path, folder: Path) -> list[str]:
    (folder / "t.csv").write_text("name\nada\n")
    pq.write_table(pa.table({"nick": ["ada"]}), folder / "t.parquet")
    return [each.replace("STORE", str(store)).replace("FOLDER", str(folder)) for each in arguments]
