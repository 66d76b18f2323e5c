"""A process that loads many units and stops in the midst of it, until somebody ends it."""

from __future__ import annotations

import sys
import time

from faults.bulk_writers import Texts
from faults.world import lines, person, reopen
from omnigraph.bulk.task_runner import Stage

UNITS = 6


def main() -> None:
    """Load, and wait as soon as a unit is written."""
    uri = sys.argv[1]
    texts = tuple(lines(person(f"p{number}"), person(f"q{number}")) for number in range(UNITS))

    def wait(stage: Stage) -> None:
        if stage.done:
            sys.stdout.write("written\n")
            sys.stdout.flush()
            time.sleep(600)

    try:
        reopen(uri).branch().load(Texts(texts), mode="append", on_error="quarantine", stages=wait)
    except KeyboardInterrupt:
        sys.stdout.write("interrupted\n")


if __name__ == "__main__":
    main()
