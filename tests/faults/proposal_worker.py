"""One process that merges proposals: `proposal_worker.py GRAPH LOG`.

It writes `ready` once the graph is open, merges the proposal of each line that it reads, and writes
the commit of each.
"""

from __future__ import annotations

import sys

import omnigraph


def main(uri: str, log: str) -> None:
    with omnigraph.open(uri) as graph, open(log, "a", buffering=1) as out:
        out.write("ready\n")
        for line in sys.stdin:
            result = graph.proposal(int(line)).merge()
            out.write(f"merged {int(line)} {result.id}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
