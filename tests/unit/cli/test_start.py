"""Commands that only read texts start without the libraries of graphs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("lance", "pyarrow", "numpy", "obstore")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--version"],
        ["--help"],
        ["lint", "--schema", "s.pg", "--query", "everyone.gq"],
        ["schema", "check", "s.pg"],
        ["load", "--help"],
        ["snapshot"],
    ],
    ids=" ".join,
)
def test_texts_need_no_tables(folder: Path, arguments: list[str]) -> None:
    script = (
        "import sys\n"
        "from omnigraph.cli import main\n"
        f"sys.argv = ['omnigraph', *{arguments!r}]\n"
        "try:\n"
        "    main()\n"
        "except SystemExit:\n"
        "    pass\n"
        f"print(sorted(set({HEAVY!r}) & set(sys.modules)))\n"
    )
    finished = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert finished.stdout.splitlines()[-1] == "[]"
