"""The architecture as a failing build."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_no_package_imports_from_a_layer_above_it() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stdout + finished.stderr


def test_the_compilers_start_without_any_of_the_heavy_libraries() -> None:
    script = (
        "import sys, omnigraph, omnigraph.schema, omnigraph.query;"
        "heavy = {'lance', 'pyarrow', 'numpy', 'pyspark', 'fastapi', 'typer', 'rich', 'yaml'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    finished = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert finished.stdout.strip() == "[]"
