"""What a new user types by mistake, and what is said about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from unit.cli.small_company import Run


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["merge", "x"], "No such command 'merge'. Did you mean 'branch merge'"),
        (["list"], "'branch list'"),
        (["brnch"], "Did you mean 'branch'?"),
        (["help", "nope"], "No such command 'nope'."),
        (["snapshot", "--format", "xml"], "No such option: --format"),
        (["query", "--format", "xml"], "error: Invalid value for '--format': 'xml' is not one of"),
    ],
)
def test_a_wrong_word_leads_to_the_right_one(run: Run, line: list[str], said: str) -> None:
    result = run(*line)
    assert result.exit_code == 2
    assert said in result.stderr
    assert "Value error" not in result.stderr


def test_a_section_within_the_braces_of_return_is_led_out_of_them(run: Run, store: Path) -> None:
    text = "query q() { match { $p: Person } return { $p.name limit 3 } }"
    result = run("query", "--store", store, "-e", text)
    assert result.exit_code == 1
    assert "'order' and 'limit' stand after the braces of 'return'" in result.stderr


def test_help_is_a_command_too(run: Run) -> None:
    assert run("help").stdout == run("--help").stdout
    assert run("help", "query").stdout == run("query", "--help").stdout
    assert run("help", "query").exit_code == 0


@pytest.mark.on_disk
@pytest.mark.parametrize("below", ["", "graphs/g.omni"])
def test_a_file_is_no_place_for_a_graph(run: Run, tmp_path: Path, below: str) -> None:
    file = tmp_path / "s.pg"
    file.write_text("node P { n: String @key }\n")
    result = run("init", file / below, "--schema", file)
    assert result.exit_code == 1
    assert f"{file} is a file, and a graph is a directory" in result.stderr


def test_parameters_that_are_not_json_are_answered_with_their_form(run: Run, store: Path) -> None:
    text = "query q($n: String) { match { $p: Person { name: $n } } return { $p.name } }"
    result = run("query", "--store", store, "-e", text, "--params", "n=ada")
    assert result.exit_code == 1
    assert '{"name": value}' in result.stderr
