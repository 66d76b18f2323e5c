"""Prints how many windows the crash matrix has, per writer and store."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from faults.matrix_writers import WRITERS, Place, list_windows
from omnigraph.storage.objects.faults import CRASHES, FAILURES


def main() -> None:
    total = 0
    with tempfile.TemporaryDirectory() as name:
        for writer in WRITERS:
            counts = [
                len(list_windows(Place(kind, Path(name)), writer, (*CRASHES, *FAILURES)))
                for kind in ("local", "memory")
            ]
            total += sum(counts)
            sys.stdout.write(f"{writer.name:16} {counts[0]:4} local {counts[1]:4} memory\n")
    sys.stdout.write(f"{total} windows\n")


if __name__ == "__main__":
    main()
