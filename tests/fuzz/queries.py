"""The long form of the fuzz test: `python -m fuzz.queries 2000` lives that many random graphs."""

from __future__ import annotations

import sys
import time
from collections import Counter

from hypothesis import HealthCheck, Phase, given, seed, settings

from fuzz.agreement import Difference, check
from fuzz.lives import Life, lives
from fuzz.shorten import shortened

START = 1


def run(examples: int, *, start: int = START) -> Counter[str]:
    """Live so many random graphs on the engine and on the model; counts what was asked."""
    counted: Counter[str] = Counter()
    failed: list[tuple[Life, Exception]] = []

    # A failing life is shortened by what knows its parts.
    @seed(start)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(lives())
    def every_answer_is_the_same(life: Life) -> None:
        if failed:
            return
        try:
            counted.update(check(life))
        except Exception as problem:  # noqa: BLE001 — told below, without the whole life
            failed.append((life, problem))
        counted["lives"] += 1

    every_answer_is_the_same()
    for life, problem in failed:
        raise AssertionError(_told(life, problem)) from problem
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
