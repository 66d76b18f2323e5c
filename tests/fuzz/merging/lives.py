"""The long form of the machine: `python -m fuzz.merging.lives 2000` runs that many random lives."""

from __future__ import annotations

import sys
import time

from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from fuzz.merging.machine import Merging


def main(lives: int) -> None:
    started = time.monotonic()
    run_state_machine_as_test(
        Merging,
        settings=settings(
            max_examples=lives, stateful_step_count=20, deadline=None, derandomize=True
        ),
    )
    took = time.monotonic() - started
    sys.stdout.write(f"{lives} random lives of merged branches agree, in {took:.0f} s\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
