"""A consumer of the change feed that is killed: it tells each block, and then keeps its cursor.

Run as a program: `feed_consumer.py GRAPH CURSOR TOLD`. `CURSOR` is the file that outlives it; what
it tells goes to a file of its own, a line for each block.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import omnigraph


def main(uri: str, cursor: Path, told: Path) -> None:
    branch = omnigraph.open(uri).branch("main")
    known = cursor.read_text() if cursor.exists() else None
    start = None if known else "beginning"
    with told.open("w", buffering=1) as output:
        for block in branch.follow(cursor=known, start=start, poll_s=0.01):
            output.write(json.dumps(block.to_json()) + "\n")
            # The block first, the cursor second: a block may be told again, never be skipped.
            if block.cursor is not None:
                fresh = cursor.with_suffix(".new")
                fresh.write_text(block.cursor)
                os.replace(fresh, cursor)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
