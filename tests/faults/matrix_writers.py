"""The writers of the crash matrix, the graph that each starts from, and what it shows after."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

import places
from faults.bulk_writers import BULK_LOADS, ensure_indices_by_tasks, optimize_by_tasks
from faults.world import MUTATIONS, SCHEMA, exported, person
from omnigraph import Branch, Graph, LoadModeName
from omnigraph.engine.graph import create_on, open_on
from omnigraph.engine.resources import Environment, Storage
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.faults import (
    DurableStep,
    Fault,
    FaultKind,
    Steps,
)
from omnigraph.versioning import Settings, compact
from omnigraph.versioning.gc.collector import Collected, Collector
from omnigraph.versioning.gc.gc_roots import Policy
from omnigraph.writers.maintain.index_builder import build_index_step

NEXT_SCHEMA = SCHEMA.replace("size: I64?", 'headcount: I64? @rename_from("size")\n  motto: String?')
NEXT_SCHEMA = NEXT_SCHEMA.replace("node Note {", 'node Memo @rename_from("Note") {')
NEXT_SCHEMA = NEXT_SCHEMA.replace("age: I32?", "age: I64?")
NEXT_SCHEMA += "node Office { city: String @key }\nedge WorksAt: Person -> Office\n"

QUIET = Environment(settings=Settings(pause=lambda _: None))
MANY = 1_200  # enough that ids and rows leave the record and are written ahead
BULK = 100_000


@dataclass(frozen=True, slots=True)
class Writer:
    """One way to write; it starts from a graph with a few entities and a branch."""

    name: str
    write: Callable[[Graph], object]


def _load(mode: LoadModeName, *records: dict[str, object]) -> Callable[[Graph], object]:
    return lambda graph: graph.branch().load(list(records), mode=mode)


def _append_bulk(graph: Graph) -> object:
    """So many rows that they are written while they are checked, and no id is in the record."""
    names = pa.array(range(BULK), pa.int32()).cast(pa.string())
    return graph.branch().load(pa.table({"name": names}), type="Team", mode="append")


def _unless_moved(graph: Graph) -> object:
    main = graph.branch()
    return main.load([_NEW, _EDGE], mode="append", if_commit=main.head.id)


def _mutate(query: str, **params: object) -> Callable[[Graph], object]:
    return lambda graph: graph.branch().mutate(MUTATIONS, name=query, params=params)


def _compact(graph: Graph) -> object:
    resources = graph._session.resources
    return compact(
        resources.publishers, graph._session.read_head(graph.branch()._stream).stream, PERSON
    )


def _ensure_indices(graph: Graph) -> object:
    """A commit that has to be there: a write that finds nothing to do survives everything."""
    done = graph.branch().ensure_indices()
    assert done.commit is not None
    assert done.built
    return done


def _index_piece(graph: Graph) -> object:
    """What the background does after a commit that made a table large."""
    view = graph.branch().snapshot().view
    is_made = build_index_step(view, graph._session.resources.publishers, tail_rows_min=2)
    assert is_made
    return is_made


def _optimize(graph: Graph) -> object:
    done = graph.branch().optimize()
    assert done.commit is not None
    assert any(table.fragments_removed for table in done.tables)
    assert any(table.indexes for table in done.tables)
    return done


def _merge_commit(graph: Graph) -> object:
    """By its id, so that it has to be held meanwhile."""
    return graph.branch().merge(graph.branch("review").head)


def _merge(graph: Graph) -> object:
    done = graph.branch().merge("review", prefer="theirs")
    assert done.commit is not None
    return done


def _revert(graph: Graph) -> object:
    done = graph.branch().revert(graph.branch().head)
    assert done.outcome == "reverted"
    return done


def _cherry_pick(graph: Graph) -> object:
    done = graph.branch().cherry_pick(graph.branch("review").head)
    assert done.outcome == "cherry_picked"
    return done


def collect_all(graph: Graph) -> Collected:
    """Keep one commit of each branch; without a grace, so that there is something to remove."""
    return create_collector(graph).collect(Policy(keep=1), is_dry=False)


def _cleanup(graph: Graph) -> object:
    done = collect_all(graph)
    assert set(done.oldest) == set(graph.branches())
    return done


def create_collector(graph: Graph) -> Collector:
    """A collector that waits for nobody."""
    resources = graph._session.resources
    storage = resources.storage
    return Collector(
        storage.objects,
        storage.tables,
        tracer=storage.reopen or (lambda: storage.tables),
        settings=replace(resources.committer.settings, grace_s=0.0),
    )


PERSON = "node:Person"
_PHOTO = "base64:" + base64.b64encode(b"x" * 300_000).decode()
_NEW = person("new", age=3)
_EDGE: dict[str, object] = {"edge": "Knows", "from": "new", "to": "ada"}
_TEAM: dict[str, object] = {"type": "Team", "data": {"name": "blue"}}
_RED: dict[str, object] = {"type": "Team", "data": {"name": "red"}}

IN_UNITS = [
    *(Writer(name, write) for name, write in BULK_LOADS.items()),
    Writer("ensure-indices-by-tasks", ensure_indices_by_tasks),
    Writer("optimize-by-tasks", optimize_by_tasks),
]
WRITERS = [
    *IN_UNITS,
    Writer("append", _load("append", _NEW, _EDGE, _TEAM)),
    Writer("append-many", _load("append", *(person(f"m{number}") for number in range(MANY)))),
    Writer("append-bulk", _append_bulk),
    Writer("append-unless-moved", _unless_moved),
    Writer("append-blob", _load("append", person("seen", photo=_PHOTO))),
    Writer("merge", _load("merge", _NEW, person("ada", age=9), _TEAM, _EDGE)),
    Writer(
        "merge-many",
        _load("merge", *(person(name) for name in ["ada", *(f"m{n}" for n in range(MANY))])),
    ),
    Writer("overwrite", _load("overwrite", _TEAM, _RED, {"type": "Note", "data": {"text": "x"}})),
    Writer("empty-load", _load("append")),
    Writer("insert", _mutate("add_member", name="new", team="blue")),
    Writer("upsert", _mutate("add_person", name="ada", age=77)),
    Writer("update", _mutate("age", name="ada", age=78)),
    Writer("update-by-condition", _mutate("birthday", age=40)),
    Writer("update-by-match", _mutate("promote", team="red")),
    Writer("delete-and-create", _mutate("rehire", name="bob")),
    Writer("delete", _mutate("leave", name="bob")),
    Writer("delete-edges", _mutate("forget", a="ada")),
    Writer("create-branch", lambda graph: graph.create_branch("new", source="review")),
    Writer("delete-branch", lambda graph: graph.delete_branch("review")),
    Writer("write-on-branch", lambda graph: graph.branch("review").load([_NEW], mode="append")),
    Writer("apply-schema", lambda graph: graph.branch().apply_schema(NEXT_SCHEMA)),
    Writer("compaction", _compact),
    Writer("ensure-indices", _ensure_indices),
    Writer("index-piece", _index_piece),
    Writer("optimize", _optimize),
    Writer("fast-forward", _merge),
    Writer("merge-branch", _merge),
    Writer("merge-commit", _merge_commit),
    Writer("merge-schemas", _merge),
    Writer("revert", _revert),
    Writer("cherry-pick", _cherry_pick),
    Writer("create-tag", lambda graph: graph.tag("v1")),
    Writer("delete-tag", lambda graph: graph.delete_tag("v0")),
    Writer("cleanup", _cleanup),
    Writer("open-proposal", lambda graph: graph.open_proposal("review", title="Review")),
    Writer("merge-proposal", lambda graph: graph.proposal(1).merge()),
]


def _change_people(branch: Branch) -> object:
    return branch.load([_NEW, person("ada", age=9), _TEAM, _EDGE], mode="merge")


def _delete_bob(branch: Branch) -> object:
    return branch.mutate(MUTATIONS, name="leave", params={"name": "bob"})


def _change_others(branch: Branch) -> object:
    return branch.load([person("ada", age=8), person("dov"), _RED], mode="merge")


def _migrate(branch: Branch) -> object:
    branch.apply_schema(NEXT_SCHEMA)
    return branch.load([{"type": "Office", "data": {"city": "Rome"}}], mode="append")


# What happens to main and to the branch before both meet.
SIDES: dict[str, tuple[tuple[str, Callable[[Branch], object]], ...]] = {
    "fast-forward": (("review", _change_people), ("review", _delete_bob)),
    "merge-branch": (
        ("review", _change_people),
        ("review", _delete_bob),
        ("main", _change_others),
    ),
    "merge-commit": (("review", _delete_bob), ("main", _change_others)),
    "merge-schemas": (
        ("review", _change_people),
        ("review", _migrate),
        ("main", _change_others),
    ),
    "revert": (("main", _change_people),),
    "cherry-pick": (("main", _change_others), ("review", _delete_bob)),
    "delete-tag": (("main", lambda branch: branch.graph.tag("v0")),),
    "open-proposal": (("review", _change_people),),
    "merge-proposal": (
        ("review", _change_people),
        ("main", _delete_bob),
        ("review", lambda branch: branch.graph.open_proposal("review", title="Review").approve()),
    ),
    "cleanup": (("main", _delete_bob), ("review", _change_others)),
}
# Commits of a seed, so that there are fragments to join.
COMMITS = {"compaction": 33, "optimize": 3, "optimize-by-tasks": 3}

SEED = [
    person("ada", age=36, email="ada@example.com", photo="base64:AAEC"),
    person("bob", age=5),
    person("cem"),
    {"type": "Team", "data": {"name": "red", "size": 2}},
    {"type": "Note", "data": {"text": "hello"}, "id": "n1"},
    {"edge": "Knows", "from": "ada", "to": "bob", "id": "k1"},
    {"edge": "Knows", "from": "cem", "to": "ada", "id": "k2"},
    {"edge": "MemberOf", "from": "bob", "to": "red"},
]


class Place:
    """Where a fresh graph is made for every window."""

    def __init__(self, kind: places.Kind, folder: Path) -> None:
        self.kind, self._folder = kind, folder
        self._uri = ""
        self._seeds: dict[str, str] = {}

    def fresh(self) -> None:
        self._uri = places.uri_of(self.kind, self._folder)

    def seeded(self, writer: Writer) -> None:
        """A new graph for a writer to start from."""
        if self.kind == "memory":
            self.fresh()
            self._seed(writer)
            return
        # A graph is copied in no time, and takes long to make.
        if writer.name not in self._seeds:
            self.fresh()
            self._seed(writer)
            self._seeds[writer.name] = self._uri
        self._uri = places.copy_of(self._seeds[writer.name], self._folder)

    def _seed(self, writer: Writer) -> None:
        """The seed, a branch, and for maintenance fragments to join and indexes to extend."""
        with _quiet(create_on(self.storage(), schema=SCHEMA, environment=QUIET)) as graph:
            graph.branch().load(SEED, mode="append")
            graph.create_branch("review")
            if writer.name.startswith("optimize"):
                graph.branch().ensure_indices()
            for number in range(COMMITS.get(writer.name, 0)):
                graph.branch().load([person(f"extra{number}")], mode="append")
            for branch, write in SIDES.get(writer.name, ()):
                write(graph.branch(branch))

    def storage(self, steps: Steps | None = None) -> Storage:
        """The storage of the graph as another process sees it."""
        return places.storage_of(self._uri, steps)

    def opened(self, steps: Steps | None = None) -> Graph:
        return _quiet(open_on(self.storage(steps), environment=QUIET))


def _quiet(graph: Graph) -> Graph:
    """The graph without compaction after commits: only the writer under test takes steps."""
    graph._session.resources.publishers.on_published = None
    return graph


def state(graph: Graph) -> dict[str, bytes]:
    """What a user can see: tags, proposals, branches; schema, entities and indexes of each."""
    tags = [(tag.name, tag.version, tag.branch) for tag in graph.tags()]
    proposals = [(each.number, each.status) for each in graph.proposals()]
    return {"(tags)": repr(tags).encode(), "(proposals)": repr(proposals).encode()} | {
        name: b"".join(
            [
                graph.branch(name).schema.encode(),
                remove_fresh_ids(exported(graph, name)),
                repr(graph.index_status(name)).encode(),
            ]
        )
        for name in graph.branches()
    }


def remove_fresh_ids(lines: bytes) -> bytes:
    """Ids that are drawn at random differ between two runs of one write."""
    kept = []
    for line in lines.splitlines():
        head, _, rest = line.partition(b',"id":"')
        ulid, quote, tail = rest.partition(b'"')
        kept.append(head + tail if quote and len(ulid) == 26 else line)
    return b"\n".join(sorted(kept))


def is_log_step(step: DurableStep) -> bool:
    """Whether a step is one of the log of commits."""
    is_of_log = step.path.startswith((layout.MANIFEST, layout.PROPOSALS))
    return is_of_log and not step.path.startswith(layout.STAGING)


def is_other_step(step: DurableStep) -> bool:
    return not is_log_step(step)


def is_any_step(_: DurableStep) -> bool:
    return True


def list_windows(
    place: Place,
    writer: Writer,
    kinds: tuple[FaultKind, ...],
    is_tried: Callable[[DurableStep], bool] = is_any_step,
) -> list[Fault]:
    place.seeded(writer)
    steps = Steps()
    writer.write(place.opened(steps))
    found: list[Fault] = []
    former = None
    for number, step in enumerate(steps.taken, 1):
        is_seen = writer not in IN_UNITS or is_log_step(step)
        # Nobody sees what a unit does: after one such step is before the next, and those of one
        # operation that follow each other are all alike.
        if is_tried(step) and (is_seen or step.operation != former):
            of_step = kinds if is_seen else kinds[:1]
            found += [Fault(number, kind, step.operation) for kind in of_step]
        former = step.operation
    return found
