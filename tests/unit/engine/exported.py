"""Two states of a graph compared the slow way: everything that their exports say."""

from __future__ import annotations

import json
from typing import Any, TypeAlias

from omnigraph import Snapshot
from omnigraph.engine import Diff

# Kind, type and id of an entity.
Entity: TypeAlias = tuple[str, str, str]
# What happened to it, and its images before and after.
Told: TypeAlias = dict[Entity, tuple[str, Any, Any]]


def entities(snapshot: Snapshot) -> dict[Entity, Any]:
    """The image of every entity."""
    found: dict[Entity, Any] = {}
    for line in b"".join(snapshot.export()).splitlines():
        record = json.loads(line)
        image: dict[str, Any] = {"properties": record["data"]}
        if "edge" in record:
            image["endpoints"] = {"from": record["from"], "to": record["to"]}
            found["edge", record["edge"], record["id"]] = image
        else:
            found["node", record["type"], record["id"]] = image
    return found


def expected(old: Snapshot, new: Snapshot) -> Told:
    """What is different between two states; both call their types and properties the same.

    An export leaves nulls out, so images are compared without them.
    """
    before, after = entities(old), entities(new)
    told: Told = {}
    for entity in before.keys() | after.keys():
        left, right = before.get(entity), after.get(entity)
        # As texts, so that zeros keep their signs.
        if json.dumps(left) != json.dumps(right):
            op = "insert" if left is None else "delete" if right is None else "update"
            told[entity] = op, left, right
    return told


def told(diff: Diff) -> Told:
    """What a diff says, after a look at its order and its counts; images without nulls."""
    changes = list(diff)
    keys = [(change.kind == "edge", change.type_id, change.id) for change in changes]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys) == len(diff)
    ops = [change.op for change in changes]
    counts = diff.counts
    assert [counts.inserted, counts.updated, counts.deleted] == [
        ops.count(op) for op in ("insert", "update", "delete")
    ]
    assert sum(each.counts.total for each in diff.summary) == len(diff)
    return {
        (change.kind, change.type_name, change.id): (
            change.op,
            without_nulls(change.before),
            without_nulls(change.after),
        )
        for change in changes
    }


def without_nulls(image: Any) -> Any:  # Any: an image, or None
    """An image as an export has it: without the properties that are null."""
    if image is None:
        return None
    kept = {name: value for name, value in image["properties"].items() if value is not None}
    return {**image, "properties": kept}
