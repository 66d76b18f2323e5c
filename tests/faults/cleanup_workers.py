"""The processes of the clean-up soak: they write, read and clean up one graph until a time.

Run as a program: `cleanup_workers.py ROLE GRAPH LOG NUMBER SECONDS`. Every worker tells what it did
in its log; an error that no worker may meet ends it with a traceback.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from itertools import count

from faults.world import MUTATIONS, person
from omnigraph import Graph
from omnigraph.engine.graph import open_on
from omnigraph.engine.resources import Environment, open_storage
from omnigraph.errors import CommitNotFoundError, ConflictError, SnapshotGoneError
from omnigraph.versioning import Settings

# So long a writer may need between its rows and its record on a busy machine.
GRACE_S = 5.0
KEEP = 10


def opened(uri: str, *, grace_s: float = GRACE_S) -> Graph:
    """The graph for a process that counts on the grace of the soak."""
    environment = Environment(settings=Settings(grace_s=grace_s))
    storage = open_storage(uri, is_durable=False, options=None)
    return open_on(storage, environment=environment)


def write(graph: Graph, chance: random.Random, who: str) -> str:
    """Insert, update, delete, and now and then work on a branch and merge it."""
    main = graph.branch()
    match chance.randrange(6):
        case 0:
            branch = graph.create_branch(f"work/{who}")
            branch.load([person(who, age=1)], mode="append")
            branch.load([person(f"{who}-b")], mode="append")
            main.merge(branch, delete_branch=True)
        case 1:
            branch = graph.create_branch(f"thrown/{who}")
            branch.load([person(f"never-{who}", age=1)], mode="append")
            graph.delete_branch(branch.name)
            main.load([person(who)], mode="append")
        case 2:
            main.load([person(who)], mode="append")
            tag = graph.tag(f"tag/{who}")
            if chance.randrange(2):
                graph.delete_tag(tag.name)
        case _:
            main.mutate(MUTATIONS, name="add_member", params={"name": who, "team": f"t-{who}"})
            main.mutate(MUTATIONS, name="age", params={"name": who, "age": 7})
            main.load([person(f"brief-{who}")], mode="append")
            main.mutate(MUTATIONS, name="leave", params={"name": f"brief-{who}"})
    return who


def read(graph: Graph, chance: random.Random, who: str) -> str:
    """Look at the newest state, at tags, and at any commit that is kept."""
    del who
    main = graph.branch()
    count_people = "query q() { match { $x: Person } return { count($x) as n } }"
    newest = main.query(count_people).to_pylist()
    assert newest
    assert newest[0]["n"] >= 0
    commits = list(main.commits())
    assert commits, "the newest commit always stays"
    try:
        old = graph.snapshot(chance.choice(commits))
        assert old.query(count_people).to_pylist()[0]["n"] == old.count("Person")
    except (SnapshotGoneError, CommitNotFoundError):
        # It was the oldest one when it was listed.
        return "gone"
    for tag in graph.tags()[:3]:
        try:
            graph.snapshot(tag.name).query(count_people)
        except CommitNotFoundError:
            assert tag.name not in {each.name for each in graph.tags()}
    return "read"


def clean(graph: Graph, chance: random.Random, who: str) -> str:
    """Remove what is beyond the newest commits."""
    del chance, who
    done = graph.cleanup(keep=KEEP, dry_run=False)
    assert done.errors == ()
    return f"removed {done.objects}"


ROLES: dict[str, Callable[[Graph, random.Random, str], str]] = {
    "write": write,
    "read": read,
    "clean": clean,
}


def main(role: str, uri: str, log: str, number: str, seconds: str) -> None:
    graph = opened(uri)
    chance = random.Random(f"{role}{number}")
    end = time.monotonic() + float(seconds)
    with open(log, "a", buffering=1) as told:
        for turn in count():
            if time.monotonic() > end:
                break
            try:
                told.write(f"ok {ROLES[role](graph, chance, f'{role}{number}-{turn}')}\n")
            except ConflictError as conflict:
                told.write(f"conflict {conflict}\n")
    graph.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
