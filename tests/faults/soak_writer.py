"""One writer of the soak: writes until it is killed, and tells of every acknowledged commit.

Each write touches two node types and an edge type, so that a part of it would be seen. Run as a
program: `soak_writer.py GRAPH LOG NAME`.
"""

from __future__ import annotations

import random
import sys
from itertools import count

import omnigraph
from faults.world import MUTATIONS, person
from omnigraph.errors import ConflictError


def main(uri: str, log: str, name: str) -> None:
    graph = omnigraph.open(uri, actor=name)
    branch = graph.branch("main")
    chance = random.Random(name)
    with open(log, "a", buffering=1) as told:
        for number in count():
            who = f"{name}-{number}"
            told.write(f"try {who}\n")
            commit = write(branch, who, chance.randrange(3))
            told.write(f"ok {who} {commit}\n")


def write(branch: omnigraph.Branch, who: str, kind: int) -> str:
    """A person, a team and an edge between them, in one commit; sometimes by a load."""
    if kind == 0:
        records = [
            person(who, age=1),
            {"type": "Team", "data": {"name": f"team of {who}", "size": 1}},
            {"edge": "MemberOf", "from": who, "to": f"team of {who}"},
        ]
        return branch.load(records, mode="append").commit.id
    params = {"name": who, "team": f"team of {who}"}
    commit = branch.mutate(MUTATIONS, name="add_member", params=params).commit
    assert commit is not None
    if kind == 2:
        # Everybody updates the same few entities; who loses a race tries again.
        while True:
            try:
                branch.mutate(MUTATIONS, name="age", params={"name": who, "age": 2})
            except ConflictError:
                continue
            break
    return commit.id


if __name__ == "__main__":
    main(*sys.argv[1:])
