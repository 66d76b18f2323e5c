"""What a read may use, how a table shows long values, and what is refused without a traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from unit.cli.small_company import EVERYONE, Run

BY_NAME = "query q($n: String) { match { $p: Person { name: $n } } return { $p.age as age } }"
FRIENDS = """query friends() {
  match { $p: Person $p knows $f }
  return { $p.name as name, $f.name as friend }
}
"""


def test_a_query_without_time_is_stopped(run: Run, store: Path) -> None:
    result = run("query", "--store", store, "-e", EVERYONE, "--timeout", "0")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "the query was not done after" in result.stderr
    assert "hint:" in result.stderr


def test_a_mutation_without_time_or_memory_writes_nothing(run: Run, store: Path) -> None:
    text = "query q() { match { $p: Person } update $p set { age: 1 } }"
    before = run("commit", "list", "--store", store, "--json").stdout
    for bound, message in (
        (("--timeout", "0"), "the query was not done after"),
        (("--memory", "1"), "query_memory_bytes is limited to 1"),
    ):
        result = run("mutate", "--store", store, "-e", text, *bound)
        assert result.exit_code == 1
        assert message in result.stderr
    assert run("commit", "list", "--store", store, "--json").stdout == before


def test_a_query_without_memory_is_refused(run: Run, store: Path) -> None:
    result = run("query", "--store", store, "-e", FRIENDS, "--memory", "1")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "query_memory_bytes is limited to 1" in result.stderr


@pytest.mark.parametrize("size", ["1000000000", "512M", "2g", "1TiB", "64 MB".replace(" ", "")])
def test_memory_is_told_in_bytes_or_with_a_unit(run: Run, store: Path, size: str) -> None:
    bounds = ("--memory", size, "--timeout", "60")
    result = run("query", "--store", store, "-e", FRIENDS, *bounds, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["rows"] == [{"name": "ada", "friend": "bob"}]


@pytest.mark.parametrize(
    "bounds",
    [
        ("--memory", "much"),
        ("--memory", "-1"),
        ("--memory", "1.5G"),
        ("--timeout", "-1"),
        ("--timeout", "nan"),
        ("--timeout", "soon"),
        ("--max-width", "wide"),
    ],
)
def test_bounds_that_are_none_exit_with_2(run: Run, store: Path, bounds: tuple[str, str]) -> None:
    assert run("query", "--store", store, "-e", EVERYONE, *bounds).exit_code == 2


def test_a_table_is_as_wide_as_asked_for(run: Run, store: Path) -> None:
    text = 'query q() { match { $p: Person { name: "ada" } } return { "abcdefghijkl" as x } }'
    cut = run("query", "--store", store, "-e", text, "--max-width", "9")
    assert cut.stdout.splitlines()[1:] == ["x", "---------", "abcdefgh…"]
    wrapped = run("query", "--store", store, "-e", text, "--max-width", "9", "--wrap")
    assert wrapped.stdout.splitlines()[1:] == ["x", "---------", "abcdefghi", "jkl"]
    # A column is never narrower than eight characters.
    least = run("query", "--store", store, "-e", text, "--max-width", "1")
    assert least.stdout.splitlines()[-1] == "abcdefg…"


@pytest.mark.parametrize(
    ("text", "params", "message"),
    [
        (BY_NAME, None, "parameter 'n' not provided"),
        (BY_NAME, "{}", "parameter 'n' not provided"),
        (BY_NAME, '{"n": null}', "non-nullable parameter"),
        (BY_NAME, '{"n": 7}', "'n'"),
        (BY_NAME, '{"n": {"a": 1}}', "'n'"),
        (BY_NAME.replace("String", "I32").replace("name: $n", "age: $n"), '{"n": "x"}', "'n'"),
        (BY_NAME.replace("String", "I32").replace("name: $n", "age: $n"), '{"n": 1e99}', "'n'"),
    ],
)
def test_a_wrong_parameter_is_named(
    run: Run, store: Path, text: str, params: str | None, message: str
) -> None:
    given = () if params is None else ("--params", params)
    result = run("query", "--store", store, "-e", text, *given)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_an_undeclared_parameter_is_named(run: Run, store: Path) -> None:
    params = ("--params", '{"n": "ada", "more": [1]}')
    result = run("query", "--store", store, "-e", BY_NAME, *params, "--format", "csv")
    assert result.exit_code == 1
    assert "no parameter 'more'; it has $n" in result.stderr


def test_a_type_without_data_gives_no_rows_with_all_columns(run: Run, empty: Path) -> None:
    result = run("query", "--store", empty, "-e", FRIENDS, "--json")
    document = json.loads(result.stdout)
    assert (document["columns"], document["rows"]) == (["name", "friend"], [])
    assert run("query", "--store", empty, "-e", FRIENDS, "--format", "kv").stdout.endswith(
        "(no rows)\n"
    )


def test_a_vector_must_have_the_length_that_is_declared(run: Run, tmp_path: Path) -> None:
    (tmp_path / "v.pg").write_text("node Doc { slug: String @key vec: Vector(3)? }\n")
    store = tmp_path / "v.omni"
    assert run("init", store, "--schema", tmp_path / "v.pg", "--quiet").exit_code == 0
    text = """query q($v: Vector(3)) {
      match { $d: Doc } return { $d.slug } order { nearest($d.vec, $v) } limit 2 }"""
    for params in ('{"v": [1, 2]}', '{"v": [1, 2, "x"]}', '{"v": 3}'):
        result = run("query", "--store", store, "-e", text, "--params", params)
        assert result.exit_code == 1
        assert "'v'" in result.stderr
        assert "Traceback" not in result.stderr
    found = run("query", "--store", store, "-e", text, "--params", '{"v": [1, 2, 3]}')
    assert found.stdout.splitlines()[0] == "0 rows from branch main via q"
