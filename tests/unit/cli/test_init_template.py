"""`omnigraph init --template`."""

from __future__ import annotations

from pathlib import Path

import pytest

from unit.cli.small_company import Run


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "give --schema PATH, or --template NAME"),
        (["--schema", "x.pg", "--template", "people"], "give --schema PATH, or --template NAME"),
        (["--schema", "x.pg", "--files", "out"], "--files are those of a template"),
        (["--template", "poeple", "--files", "out"], "there is no template 'poeple'"),
    ],
)
def test_a_wrong_choice_creates_nothing(
    run: Run, tmp_path: Path, arguments: list[str], problem: str
) -> None:
    result = run("init", tmp_path / "g", *arguments)
    assert result.exit_code != 0
    assert problem in result.stderr
    assert not (tmp_path / "g").exists()
    assert not Path("out").exists()
