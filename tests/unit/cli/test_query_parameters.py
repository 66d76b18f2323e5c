from __future__ import annotations

from pathlib import Path

import pytest

from unit.cli.small_company import ADD, Run

OLDER = """query older($age: I32?) {
  match { $p: Person  $p.age > $age }
  return { $p.name }
}
"""


@pytest.mark.parametrize("verb", ["query", "explain"])
def test_a_parameter_that_a_read_does_not_declare_is_refused(
    run: Run, store: Path, verb: str
) -> None:
    result = run(verb, "--store", store, "-e", OLDER, "--params", '{"size": 1}')
    assert result.exit_code == 1
    assert "the query declares no parameter 'size'; it has $age" in result.stderr
    misspelt = run(verb, "--store", store, "-e", OLDER, "--params", '{"aeg": 1}')
    assert "did you mean 'age'?" in misspelt.stderr


def test_a_parameter_that_a_mutation_does_not_declare_is_refused(run: Run, store: Path) -> None:
    params = '{"name": "zoe", "aeg": 5}'
    result = run("mutate", "--store", store, "-e", ADD, "--params", params)
    assert result.exit_code == 1
    assert "no parameter 'aeg'; it has $age, $name" in result.stderr
    assert "did you mean 'age'?" in result.stderr


def test_a_plan_needs_no_parameters(run: Run, store: Path) -> None:
    text = "query q($name: String) { match { $p: Person { name: $name } } return { $p.age } }"
    result = run("explain", "--no-run", "--store", store, "-e", text)
    assert result.exit_code == 0, result.output
    assert "Person" in result.stdout
    fuzzy = "query q($t: String, $n: I32) { match { $p: Person  fuzzy($p.name, $t, $n) } return"
    assert run("explain", "--no-run", "--store", store, "-e", fuzzy + " { $p.age } }").stderr == ""
    assert run("explain", "--store", store, "-e", text).exit_code == 1


def test_a_mutation_has_a_message(run: Run, store: Path) -> None:
    params = '{"name": "zoe"}'
    added = run("mutate", "--store", store, "-e", ADD, "--params", params, "-m", "hello zoe")
    assert added.exit_code == 0, added.output
    assert "hello zoe" in run("commit", "list", store).stdout.splitlines()[0]


@pytest.mark.parametrize("verb", ["revert", "cherry-pick"])
def test_picks_are_bound_to_a_commit(run: Run, store: Path, verb: str) -> None:
    newest, oldest = (line.split()[0] for line in run("commit", "list", store).stdout.splitlines())
    refused = run(verb, newest, "--uri", store, "--if-commit", oldest)
    assert refused.exit_code == 4, refused.output
    assert run(verb, newest, "--uri", store, "--if-commit", newest).exit_code == 0


def test_a_short_time_is_told_as_it_is(run: Run, store: Path) -> None:
    result = run("query", "--store", store, "-e", OLDER, "--timeout", "0.000001")
    assert "not done after less than a millisecond" in result.stderr
    assert "--timeout" in result.stderr


def test_a_query_may_come_from_standard_input(run: Run, store: Path, folder: Path) -> None:
    text = (folder / "everyone.gq").read_text()
    found = run("query", "--store", store, "--query", "-", "--format", "csv", text=text)
    assert found.exit_code == 0, found.stderr
    assert found.stdout.splitlines() == ["name,age", "ada,36", "bob,null", "eve,41"]
    broken = run("query", "--store", store, "--query", "-", text="query q( {")
    assert broken.exit_code == 1
    assert "-:1:" in broken.stderr
