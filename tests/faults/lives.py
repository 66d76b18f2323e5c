"""The long form of the state machine: `python -m faults.lives 1000` runs that many random lives."""

from __future__ import annotations

import sys
import time

from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from faults.test_state_machine import Lives


def main(lives: int) -> None:
    started = time.monotonic()
    run_state_machine_as_test(
        Lives,
        settings=settings(
            max_examples=lives, stateful_step_count=15, deadline=None, derandomize=True
        ),
    )
    took = time.monotonic() - started
    sys.stdout.write(f"{lives} random lives of a graph agree with the model, in {took:.0f} s\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
