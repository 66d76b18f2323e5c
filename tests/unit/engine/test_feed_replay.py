"""Random lives of a graph: what a feed tells of a branch adds up to the branch."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from omnigraph import Branch, Graph, Snapshot, errors
from omnigraph.engine.entity_changes import EntityChange
from unit.engine.company import CHANGES, SCHEMA, company, person
from unit.engine.exported import without_nulls

Replica: TypeAlias = dict[tuple[str, str], Any]  # Any: an image
Deed: TypeAlias = Callable[[Graph, Branch, random.Random], object]

NAMES = [f"p{number}" for number in range(8)]
WITH_CITY = SCHEMA.replace("  age: I32?", "  age: I32?\n  city: String?")


def load(_: Graph, branch: Branch, chance: random.Random) -> object:
    people = [person(name, chance.randrange(3)) for name in chance.sample(NAMES, 3)]
    if "city" in branch.schema:
        people[0]["data"]["city"] = chance.choice(["Bath", "York", None])
    return branch.load(people, mode="merge")


def connect(_: Graph, branch: Branch, chance: random.Random) -> object:
    source, target = chance.sample(NAMES, 2)
    edge = {"edge": "Knows", "from": source, "to": target}
    return branch.load([person(source), person(target), edge], mode="merge")


def leave(_: Graph, branch: Branch, chance: random.Random) -> object:
    return branch.mutate(CHANGES, name="leave", params={"who": chance.choice(NAMES)})


def migrate(_: Graph, branch: Branch, __: random.Random) -> object:
    return branch.apply_schema(WITH_CITY)


def overwrite(_: Graph, branch: Branch, chance: random.Random) -> object:
    note = {"type": "Note", "data": {"text": str(chance.random())}}
    return branch.load([note], mode="overwrite")


def merge(graph: Graph, branch: Branch, chance: random.Random) -> object:
    other = chance.choice([name for name in graph.branches() if name != branch.name])
    return branch.merge(other, prefer=chance.choice(["ours", "theirs"]))


def revert(_: Graph, branch: Branch, chance: random.Random) -> object:
    return branch.revert(chance.choice(list(branch.commits())[:-1]), prefer="theirs")


def optimize(_: Graph, branch: Branch, __: random.Random) -> object:
    return branch.optimize()


DEEDS: list[tuple[Deed, int]] = [
    (load, 6),
    (connect, 3),
    (leave, 3),
    (merge, 4),
    (revert, 1),
    (overwrite, 1),
    (migrate, 1),
    (optimize, 1),
]


def live(graph: Graph, chance: random.Random) -> None:
    """Let branches have some commits, some of which may be refused."""
    graph.create_branch("a")
    graph.create_branch("b")
    deeds, weights = zip(*DEEDS, strict=True)
    for deed in chance.choices(deeds, weights, k=25):
        branch = graph.branch(chance.choice(graph.branches()))
        try:
            deed(graph, branch, chance)
        except (errors.MergeConflictError, errors.WriteRefusedError):
            continue


def told(branch: Branch, limit: int, commits_max: int) -> dict[str, list[EntityChange]]:
    """The changes of each commit, by whatever pages and polls they come."""
    found: dict[str, list[EntityChange]] = {}
    page = branch.changes(start="beginning", limit=limit, commits_max=commits_max)
    while True:
        for block in page.blocks:
            found.setdefault(block.cause.commit_id, []).extend(block.changes)
        if page.next_page_token is not None:
            page = branch.changes(page_token=page.next_page_token, limit=limit)
        elif page.caught_up:
            return found
        else:
            page = branch.changes(cursor=page.cursor, limit=limit, commits_max=commits_max)


def exported(snapshot: Snapshot) -> Replica:
    """Every entity of a snapshot as the feed shows it."""
    found: Replica = {}
    for line in b"".join(snapshot.export()).splitlines():
        record = json.loads(line)
        image = {"properties": record["data"]}
        if "edge" in record:
            image["endpoints"] = {"from": record["from"], "to": record["to"]}
        found[record.get("type") or record["edge"], record["id"]] = image
    return found


def forget_dropped(replica: Replica, snapshot: Snapshot) -> None:
    """Let go of the values of properties that the schema has not any more: no entity changed."""
    types = {key.name: type_.properties for key, type_ in snapshot.view.types.items()}
    for (type_name, _), image in replica.items():
        known, values = types[type_name], image["properties"]
        image["properties"] = {name: values[name] for name in values if name in known}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_what_is_told_of_a_branch_adds_up_to_it(seed: int) -> None:
    chance = random.Random(seed)
    with company() as graph:
        live(graph, chance)
        for name in graph.branches():
            branch = graph.branch(name)
            blocks = told(branch, chance.choice([1, 3, 1000]), chance.choice([1, 4, 128]))
            commits = [commit.id for commit in branch.commits()][-2::-1]
            assert list(blocks) == commits
            replica: Replica = {}
            for commit in commits:
                for change in blocks[commit]:
                    key = change.type_name, change.id
                    # A property that a schema added since is null.
                    assert replica.pop(key, None) == without_nulls(change.before)
                    if change.after is not None:
                        assert change.after != change.before
                        replica[key] = without_nulls(change.after)
                snapshot = graph.snapshot(commit)
                forget_dropped(replica, snapshot)
                assert replica == exported(snapshot), commit


@pytest.mark.parametrize("seed", range(3))
def test_the_values_of_an_entity_are_blamed_on_commits_that_gave_them(seed: int) -> None:
    chance = random.Random(100 + seed)
    with company() as graph:
        live(graph, chance)
        main = graph.branch()
        image = main.snapshot().entity
        for name in NAMES:
            entity = image("Person", name)
            versions = list(main.history("Person", name))
            if entity is None:
                assert not versions or versions[0].op == "delete"
                continue
            told_commits = {version.commit.id: version for version in versions}
            for property_name, commit in main.blame("Person", name).items():
                assert commit is not None
                after = told_commits[commit.id].after
                assert after is not None
                value = entity["properties"].get(property_name)
                assert after["properties"].get(property_name) == value
