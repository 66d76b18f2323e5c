"""What other processes do to a graph while somebody reads an old snapshot of it.

Module-level functions, so that a new process can import them.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import cycle
from threading import Event

import places
from faults.world import MUTATIONS, person
from omnigraph import Branch, Graph, Snapshot
from omnigraph.engine.graph import open_on
from omnigraph.engine.resources import Environment
from omnigraph.errors import ConflictError, StagingExpiredError
from omnigraph.execution.query_budget import Access
from omnigraph.versioning import Settings

PEOPLE = 600
THREADS = 16
ATTEMPTS_MAX = 20
# Between two rounds of reading or maintenance: the writer shall get on with it too.
PAUSE_S = 0.2
# A process opens the graph anew so often that it answers both from what it keeps and from nothing.
ROUNDS_PER_OPENING = 5

# So long a writer may need between its rows and its record on a busy machine.
GRACE_S = 5.0


def open_graph(uri: str) -> Graph:
    """The graph for a process that counts on the grace of this test."""
    environment = Environment(settings=Settings(grace_s=GRACE_S))
    return open_on(places.storage_of(uri), environment=environment)


def ensure_indices(branch: Branch) -> bool:
    """Build indexes; whether there was anything to do."""
    before = branch.head.id
    branch.ensure_indices()
    return branch.head.id != before


def optimize(branch: Branch) -> bool:
    """Compact tables and cover them with indexes; whether there was anything to do."""
    before = branch.head.id
    branch.optimize()
    return branch.head.id != before


def clean_up(branch: Branch) -> bool:
    """Remove all but the newest commit and what tags hold; whether there was anything to do."""
    return bool(branch.graph.cleanup(keep=1, dry_run=False).objects)


# What may be done to the tables of a branch at any time. Every way to maintain a graph belongs
# here: whoever reads an old snapshot must not notice any of them.
MAINTENANCE: tuple[Callable[[Branch], bool], ...] = (ensure_indices, optimize, clean_up)

QUERIES = (
    "query all() { match { $p: Person } return { $p.name, $p.age, $p.email } order { $p.name } }",
    'query one() { match { $p: Person { name: "p7" } } return { $p.age, $p.email } }',
    "query range() { match { $p: Person $p.age >= 30 } return { count($p) as n } }",
    """query ends() {
      match { $a: Person $a knows $b }
      return { $a.name, $b.name } order { $a.name, $b.name } limit 50
    }""",
    """query far() {
      match { $a: Person { name: "p3" } $a knows{1,4} $b }
      return { $b.name } order { $b.name }
    }""",
    "query lonely() { match { $p: Person not { $p memberOf $t } } return { count($p) as n } }",
    """query teams() {
      match { $p: Person $p memberOf $t }
      return { $t.name, count($p) as n, max($p.age) as oldest } order { $t.name }
    }""",
)


def answers(snapshot: Snapshot) -> list[object]:
    """Everything that is asked of a snapshot, again and again."""
    found: list[object] = [snapshot.query(text).to_pylist() for text in QUERIES]
    return [*found, snapshot.count("Knows"), b"".join(sorted(snapshot.export()))]


def opened_snapshot(uri: str, commit: str, access: Access) -> Snapshot:
    """The snapshot of a commit as a process sees it that has not read anything yet."""
    graph = open_on(places.storage_of(uri), environment=Environment(access=access))
    return graph.snapshot(commit)


def read_over_and_over(
    uri: str, commit: str, expected: list[object], is_over: Event
) -> tuple[int, str]:
    """Ask a commit until the others are done; how often, and the first answer that differs."""
    rounds = 0
    for access in cycle(Access):
        snapshot = opened_snapshot(uri, commit, access)
        for _ in range(ROUNDS_PER_OPENING):
            found = answers(snapshot)
            rounds += 1
            if found != expected:
                return rounds, difference(expected, found, f"{access}, round {rounds}")
            if is_over.wait(PAUSE_S):
                return rounds, ""
    raise AssertionError("a cycle does not end")


def difference(expected: list[object], found: list[object], where: str) -> str:
    """The first answer that is not as it was."""
    texts = [*QUERIES, "count of Knows", "export"]
    at = next(place for place, each in enumerate(expected) if each != found[place])
    return f"{where}: {texts[at]}\n{expected[at]!r:.2000}\n{found[at]!r:.2000}"


def write_many(uri: str, count: int) -> int:
    """Commit insertions, updates and deletions of what the snapshot shows; how many there were."""
    branch = open_graph(uri).branch()

    with ThreadPoolExecutor(THREADS) as pool:
        return sum(pool.map(lambda number: _committed(branch, number), range(count)))


def _committed(branch: Branch, number: int) -> bool:
    """Make one commit; who met the deletion of a neighbour tries again."""
    for _ in range(ATTEMPTS_MAX):
        with suppress(ConflictError, StagingExpiredError):
            _write(branch, number)
            return True
    return False


def _write(branch: Branch, number: int) -> None:
    name = f"p{number // 4}"
    match number % 4:
        case 0:
            branch.load([person(f"new{number}", age=number % 90)], mode="append")
        case 1:
            branch.mutate(MUTATIONS, name="age", params={"name": name, "age": 99})
        case 2:
            leaving = f"p{PEOPLE - 1 - number // 4}"
            branch.mutate(MUTATIONS, name="leave", params={"name": leaving})
        case _:
            params = {"a": name, "b": f"p{number // 4 + 1}"}
            branch.mutate(MUTATIONS, name="knows", params=params)


def maintain_over_and_over(uri: str, is_over: Event) -> list[int]:
    """Maintain a branch until the others are done; how often each way of it did anything."""
    branch = open_graph(uri).branch()
    made = [0] * len(MAINTENANCE)
    while True:
        is_last = is_over.wait(PAUSE_S)
        for place, maintain in enumerate(MAINTENANCE):
            with suppress(StagingExpiredError):
                made[place] += maintain(branch)
        if is_last:
            return made


def seed() -> list[dict[str, object]]:
    """People in a ring that know their neighbours, most of them in a team."""
    people = [person(f"p{n}", age=n % 80, email=f"p{n}@example.com") for n in range(PEOPLE)]
    teams: list[dict[str, object]] = [
        {"type": "Team", "data": {"name": f"team{n}", "size": n}} for n in range(7)
    ]
    knows: list[dict[str, object]] = [
        {"edge": "Knows", "from": f"p{n}", "to": f"p{(n + step) % PEOPLE}", "id": f"k{n}-{step}"}
        for n in range(PEOPLE)
        for step in (2, 5)
    ]
    members: list[dict[str, object]] = [
        {"edge": "MemberOf", "from": f"p{n}", "to": f"team{n % 7}"} for n in range(0, PEOPLE, 2)
    ]
    return [*people, *teams, *knows, *members]
