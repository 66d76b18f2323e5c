"""The long form of the fuzz test: `python -m fuzz.queries 2000` lives that many random graphs."""

from __future__ import annotations

import sys
import time
from collections import Counter
from random import Random

from fuzz.agreement import Difference, check
from fuzz.lives import Life, write_life
from fuzz.pen import Pen
from fuzz.shorten import shortened

START = 1


def run(examples: int, *, start: int = START) -> Counter[str]:
    """Live so many random graphs on the engine and on the model; counts what was asked."""
    counted: Counter[str] = Counter()
    for number in range(examples):
        life = write_life(Pen(Random(f"{start}/{number}")))
        try:
            counted.update(check(life))
        except Exception as problem:
            raise AssertionError(_told(life, problem)) from problem
        counted["lives"] += 1
    return counted


def _told(life: Life, problem: Exception) -> str:
    """The shortest life that still fails, and why."""
    if not isinstance(problem, Difference):
        return str(problem)
    short = shortened(life, _is_different)
    try:
        check(short)
    except Difference as difference:
        return f"{short}\n--- {difference}"
    return f"it does not fail again:\n{life}"


def _is_different(life: Life) -> bool:
    try:
        check(life)
    except Difference:
        return True
    except Exception:  # noqa: BLE001 — a shorter life may make no sense at all
        return False
    return False


def main(examples: int, start: int) -> None:
    started = time.monotonic()
    counted = run(examples, start=start)
    took = time.monotonic() - started
    sys.stdout.write(f"{dict(counted)}: engine and model agree, in {took:.0f} s\n")


if __name__ == "__main__":
    main(
        int(sys.argv[1]) if len(sys.argv) > 1 else 2000,
        int(sys.argv[2]) if len(sys.argv) > 2 else START,
    )
