"""The writer beside a consumer that is killed: a commit every few milliseconds, until it is killed.

Run as a program: `feed_writer.py GRAPH`.
"""

from __future__ import annotations

import sys
import time
from itertools import count

import omnigraph
from faults.world import MUTATIONS, person

# A commit takes a few milliseconds; the history must stay short enough to be told in the end.
PAUSE_S = 0.1


def main(uri: str) -> None:
    branch = omnigraph.open(uri).branch("main")
    for number in count():
        who = f"w{number}"
        branch.load([person(who, age=number % 50)], mode="append")
        params = {"name": who, "team": f"team of {number}"}
        branch.mutate(MUTATIONS, name="add_member", params={**params, "name": f"m{number}"})
        branch.mutate(MUTATIONS, name="leave", params={"name": who})
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    main(sys.argv[1])
