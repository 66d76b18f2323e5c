"""Breaks the model in ten ways, one line each, and shows that the logic tests notice every time."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
# File of tests/model, the line's text, and what it becomes.
MUTANTS = [
    ("expressions.py", "return None if None in operands", "return False if None in operands"),
    ("expressions.py", "(at(expr.operand) is None) != expr", "(at(expr.operand) is None) == expr"),
    ("expressions.py", "min(map(at, expr.operands)", "max(map(at, expr.operands)"),
    ("expressions.py", "return (0 if value is None else 2, 0)", "return (2, 0)"),
    ("reading.py", "frontier = reached - seen", "frontier = reached"),
    ("reading.py", "!= op.is_negated)", "== op.is_negated)"),
    ("reading.py", "reverse=key.is_descending", "reverse=False"),
    ("graph.py", "after = self.copy()\n        batches", "after = self\n        batches"),
    ("validation.py", "if count > 1:", "if count > 2:"),
    ("loading.py", 'if mode == "overwrite":', 'if mode == "append":'),
]


def main() -> None:
    """Run the corpus once per mutant; exit with 1 if one survives."""
    survivors = 0
    for name, old, new in MUTANTS:
        with tempfile.TemporaryDirectory() as folder:
            failed = _failures(Path(folder), name, old, new)
        survivors += not failed
        print(f"{name}: {old!r} -> {new!r}")
        print(f"  {len(failed)} cases fail, such as {', '.join(failed[:2]) or 'NONE'}")
    sys.exit(1 if survivors else 0)


def _failures(folder: Path, name: str, old: str, new: str) -> list[str]:
    shutil.copytree(ROOT / "tests", folder / "tests")
    shutil.copy(ROOT / "pyproject.toml", folder)
    path = folder / "tests" / "model" / name
    text = path.read_text()
    assert text.count(old) == 1, f"{name} must hold {old!r} once"
    path.write_text(text.replace(old, new))
    command = [sys.executable, "-m", "pytest", "tests/cases/test_cases.py", "--tb=no", "-rf"]
    finished = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return sorted(set(re.findall(r"FAILED .*\[(.*)-model\]", finished.stdout)))


if __name__ == "__main__":
    main()
