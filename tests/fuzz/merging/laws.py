"""What holds for every two branches, whatever happened on them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, TypeAlias

from fuzz.merging.both import ROW_KINDS, Both
from model.branching import Commit
from model.merging import Side
from omnigraph.engine.feed import Block
from omnigraph.errors import ChangeSchemaBoundaryError, EntityConflict, MergeConflictError
from omnigraph.schema.schema_identity import AcceptedSchema

# The properties and the ends of an entity, by its kind, type and id.
Entities: TypeAlias = dict[tuple[str, str, str], tuple[dict[str, Any], dict[str, str]]]


def diff_leads_from_one_to_the_other(both: Both, old: str, new: str) -> None:
    """The entities of one branch, with the differences applied, are those of the other one."""
    schemas = [both.model.graph(name).accepted for name in (old, new)]
    found = both.graph.diff(old, new)
    changes = list(found)
    if not is_plain(*schemas):
        return
    entities = exported(both, old)
    apply(entities, changes)
    assert entities == exported(both, new)
    told = [each.counts for each in found.summary]
    assert sum(each.inserted + each.updated + each.deleted for each in told) == len(changes)


def feed_folds_to_the_head(both: Both, branch: str) -> None:
    """Every change since the beginning, one after the other, makes what the branch shows."""
    line = first_parents(both, branch)
    steps = pairwise(line)
    is_whole = all(is_plain(old.graph.accepted, new.graph.accepted) for old, new in steps)
    blocks: list[Block] = []
    page = both.branch(branch).changes(start="beginning", limit=5)
    try:
        while True:
            blocks += page.blocks
            if page.next_page_token is not None:
                page = both.branch(branch).changes(page_token=page.next_page_token, limit=5)
            elif not page.caught_up:
                page = both.branch(branch).changes(cursor=page.cursor, limit=5)
            else:
                break
    except ChangeSchemaBoundaryError:
        assert not is_whole
        return
    commits = list(dict.fromkeys(block.cause.commit_id for block in blocks))
    numbers = {id_: number for number, id_ in both.commits.items()}
    assert [both.model.commits[numbers[id_]] for id_ in commits] == line[1:]
    if is_whole:
        entities: Entities = {}
        for block in blocks:
            apply(entities, block.changes)
        assert entities == exported(both, branch)


def merges_commute(both: Both, one: str, other: str) -> None:
    """Both ways to merge two branches give the same content, unless one of them conflicts."""
    both.create("one way", one)
    both.create("other way", other)
    outcomes = both.merge(other, "one way"), both.merge(one, "other way")
    if None not in outcomes:
        assert _unordered(both, "one way") == _unordered(both, "other way")
    both.delete("one way")
    both.delete("other way")


def decisions_are_preferences(both: Both, source: str, into: str, side: Side) -> None:
    """Every conflict decided for one side gives what preferring that side gives."""
    both.create("preferred", into)
    outcome = both.merge(source, "preferred", dict.fromkeys(ROW_KINDS, side))
    decided = both.graph.create_branch("decided", source=into)

    def decide(conflict: EntityConflict) -> str | None:
        return side if conflict.kind in ROW_KINDS else None

    try:
        decided.merge(source, resolve=decide)
    except MergeConflictError:
        assert outcome is None
    else:
        assert both.shown("decided") == both.shown("preferred")
    both.graph.delete_branch("decided")
    both.delete("preferred")


def _unordered(both: Both, branch: str) -> Entities:
    """The entities of a branch without the order of merged sets: ours come first."""
    found = exported(both, branch)
    for data, _ in found.values():
        data |= {name: sorted(value) for name, value in data.items() if name == "marks" and value}
    return found


def first_parents(both: Both, branch: str) -> list[Commit]:
    """The commits of a branch, oldest first."""
    number: int | None = both.model.head(branch)
    line = []
    while number is not None:
        commit = both.model.commits[number]
        line.append(commit)
        number = commit.parents[0] if commit.parents else None
    return line[::-1]


def is_plain(old: AcceptedSchema, new: AcceptedSchema) -> bool:
    """Whether what has one name in both schemas is one thing, and no property is gone."""
    for key in old.identities.keys() & new.identities.keys():
        before, after = old.identities[key], new.identities[key]
        if before.id != after.id or not before.property_ids.items() <= after.property_ids.items():
            return False
    numbers = {identity.id for identity in old.identities.values()}
    return all(
        key in old.identities for key, identity in new.identities.items() if identity.id in numbers
    )


def exported(both: Both, branch: str) -> Entities:
    """The entities of a branch."""
    return entities_of(both.shown(branch))


def entities_of(lines: Iterable[str]) -> Entities:
    """The entities of an export."""
    found: Entities = {}
    for line in lines:
        record = json.loads(line)
        kind = "edge" if "edge" in record else "node"
        name = record.get("edge") or record.get("type")
        ends = {end: record[end] for end in ("from", "to")} if kind == "edge" else {}
        found[kind, name, record["id"]] = record["data"], ends
    return found


def apply(entities: Entities, changes: Iterable[Any]) -> None:
    """Change entities as told; what is told of them before must be true."""
    for change in changes:
        key = change.kind, change.type_name, change.id
        before, after = map(_image, (change.before, change.after))
        assert entities.pop(key, None) == before, change
        assert (change.op == "insert") == (before is None), change
        assert (change.op == "delete") == (after is None), change
        assert before != after, change
        if after is not None:
            entities[key] = after


def _image(image: dict[str, Any] | None) -> tuple[dict[str, Any], dict[str, str]] | None:
    if image is None:
        return None
    properties = {name: each for name, each in image["properties"].items() if each is not None}
    return properties, image.get("endpoints", {})
