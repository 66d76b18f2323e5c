"""Random histories of sources against a model of the target: `python -m …source_histories 2000`.

Files are written, rewritten with other values, put back as they were, removed, broken and mended;
runs are killed at any object that they write, before their commit and after it, or given up while
they work; commits are reverted. Of four histories one has all records in every run, one only new
files, one is a snapshot whose missing records are deleted up to a limit, and one change data that
deletes. After every run that says it succeeded the graph is what the model says, and after a kill
it is as before or as wanted. Records are loaded without Spark, so that thousands of histories take
minutes.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

import omnigraph
from omnigraph import Branch
from omnigraph.bulk.bulk_sources import BulkSource, LoadCounts, stage_rows
from omnigraph.bulk.splits import FileRange, GraphLocation, get_stores
from omnigraph.engine import LoadResult
from omnigraph.errors import OmnigraphError, SourceRefusedError
from omnigraph.ids import generate_ulid
from omnigraph.pipelines.config.definition import Pipeline, Target
from omnigraph.pipelines.ledger.run_ledger import Run
from omnigraph.pipelines.run.pipeline_run import RunContext, RunOptions, run_with_records
from omnigraph.pipelines.run.run_slot import Slot
from omnigraph.pipelines.run.target_attempt import (
    LoadRequest,
    iter_delete_limits,
    require_delete_limit,
)
from omnigraph.storage import Objects, open_objects
from omnigraph.storage.objects.faults import CRASHES, Fault, FaultyObjects, SimulatedCrash, Steps
from unit.pipelines.definitions import PEOPLE, SCHEMA, catalog, read

OPERATIONS = (
    "write",
    "rewrite",
    "restore",
    "remove",
    "bad",
    "kill",
    "stop",
    "fence",
    "revert",
    "run",
)
KINDS = ("whole", "new", "snapshot", "changes")
# More entities than these may not be missing in a snapshot.
MISSING_MAX = 2
LOGINS = ("ada", "bo", "cy", "dot")
# A run makes about so many objects of its own.
STEPS_MAX = 14
# The age of each login; none for one that is deleted.
State = dict[str, int | None]
Record = tuple[str, int, int | None]


class FileRecords:
    """The records of the files of a slot; of an entity the one that was written last counts."""

    def __init__(self, running: RunContext, slot: Slot) -> None:
        self._running = running
        self._slot = slot
        # Where the process ends: before its load, after it, or not at all; or that it is given up.
        self.stop: str | None = None

    def load(self, branch: Branch, terms: LoadRequest) -> LoadResult:
        """Load them with the key and the message of the run."""
        state = self._slot.source_states["source"]
        records = [] if state.is_empty else [_read_file(file.uri) for file in state.listing.files]
        newest = find_latest([each for file in records for each in file])
        if self.stop == "before":
            raise KeyboardInterrupt
        if self.stop == "fence":
            liveness = self._running.ledger.liveness
            liveness.fence(self._running.ledger.list_runs(limit=1)[0].id)
        source = PeopleSource(newest, terms)
        made = branch.load(source, mode="merge", key=terms.key, message=terms.message)
        if self.stop == "after":
            raise KeyboardInterrupt
        return made

    def count_rows(self, target: Target) -> int | None:
        """Not counted."""
        del target
        return None

    def retain(self) -> None:
        """They stay what they are."""

    def discard(self) -> None:
        """They stay what they are."""


@dataclass(frozen=True, slots=True)
class PeopleSource(BulkSource):
    """The people of a run, and those that it deletes: what frames of Spark are otherwise."""

    newest: State
    terms: LoadRequest

    @property
    def skips_unchanged(self) -> bool:
        """As runs do."""
        return True

    @property
    def snapshot_types(self) -> frozenset[str]:
        """People, if the rule deletes what is missing."""
        return frozenset(dict(iter_delete_limits(self.terms.target, catalog())))

    def accept_missing(self, type_name: str, missing: int, committed: int) -> None:
        """Refuse what the rule does not allow."""
        require_delete_limit(self.terms.target, catalog(), type_name, missing, committed)

    def accept_counts(self, counts: LoadCounts) -> None:
        """Refuse what a run loads that was given up."""
        del counts
        self.terms.require_alive()

    def prepare_ranges(self, place: GraphLocation, folder: str) -> tuple[FileRange, ...]:
        """The rows to write, and the names of those that end."""
        notes, name = get_stores(place).objects, "node:Person"
        ages = {who: age for who, age in self.newest.items() if age is not None}
        ended = [who for who, age in self.newest.items() if age is None]
        columns = {"handle": [*ages], "name": [*ages], "age": [*ages.values()]}
        levels = pa.array(["junior"] * len(ages), pa.string())
        types = {"handle": pa.string(), "name": pa.string(), "age": pa.int32()}
        rows = {each: pa.array(values, types[each]) for each, values in columns.items()}
        found = [stage_rows(notes, folder, pa.table({**rows, "level": levels}), type_name=name)]
        if ended:
            names = pa.table({"handle": ended})
            found.append(stage_rows(notes, folder, names, type_name=name, is_deletion=True))
        return tuple(found)


def _read_file(path: str) -> list[Record]:
    try:
        return [tuple(json.loads(line)) for line in Path(path).read_text().splitlines()]
    except ValueError as failure:
        raise SourceRefusedError(f"{path}: not JSON") from failure


def find_latest(records: list[Record]) -> State:
    """What the record with the greatest time says of each login."""
    newest: dict[str, tuple[int, int | None]] = {}
    for login, at, age in records:
        if login not in newest or newest[login][0] < at:
            newest[login] = (at, age)
    return {login: age for login, (_, age) in newest.items()}


@dataclass
class History:
    """One source and its target, and what the target must be."""

    folder: Path
    chance: random.Random
    kind: str
    state: State = field(default_factory=dict)
    clock: int = 0
    # When each file was written, and when it was loaded.
    written: dict[str, int] = field(default_factory=dict)
    loaded: dict[str, int] = field(default_factory=dict)
    # The commits of runs in force, each with what was before it.
    commits: list[tuple[str, State]] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    # What files were, to be put back.
    versions: list[tuple[str, int, str]] = field(default_factory=list)

    @property
    def is_new_only(self) -> bool:
        """Whether a run reads only new files."""
        return self.kind in ("new", "changes")

    def live(self, length: int) -> None:
        """Go through a history; the model is compared after every run."""
        self.pipeline = self._create_pipeline()
        self._write(self._name_file())
        self._settle()
        for _ in range(length):
            getattr(self, f"do_{self.chance.choice(OPERATIONS)}")()
            self._settle()

    def _create_pipeline(self) -> Pipeline:
        new = ", format: json, new_files: true" if self.is_new_only else ", format: json"
        text = PEOPLE.replace("paths: people.jsonl", f"paths: in{new}")
        if self.kind == "snapshot":
            text = text.replace(
                "- type: Person", f"- type: Person\n          delete_missing: {MISSING_MAX}"
            )
        uri = f"memory://{generate_ulid()}"
        pipeline = read(self.folder, text.replace("company.omni", uri))
        omnigraph.create(uri, schema=SCHEMA).close()
        self.uri = uri
        return pipeline

    def do_write(self) -> None:
        """A new file."""
        self._write(self._name_file())

    def do_rewrite(self) -> None:
        """A file that is there, with other values or, by chance, those of an earlier version."""
        self._write(self.chance.choice(sorted(self.written)))

    def do_restore(self) -> None:
        """A file as it was once, with the time it had then."""
        name, at, text = self.chance.choice(self.versions)
        self._put(name, at, text)

    def do_remove(self) -> None:
        """A file that is not there any more; what was loaded of it stays."""
        if len(self.written) > 1:
            name = self.chance.choice(sorted(self.written))
            (self.folder / "in" / name).unlink()
            del self.written[name]

    def do_bad(self) -> None:
        """A record that cannot be read: the run fails, and nothing changes until it is mended."""
        name = self._name_file()
        self._write(name, is_bad=True)
        for _ in range(self.chance.randint(1, 2)):
            assert self._run().status == "failed"
            assert self._read_state() == self.state
        self._write(name)

    def do_kill(self) -> None:
        """A process that ends at an object which it writes."""
        self.do_rewrite()
        number, kind = self.chance.randint(1, STEPS_MAX), self.chance.choice(CRASHES)
        self._end_anywhere(Fault(number, kind, "put").create_steps(), None)

    def do_stop(self) -> None:
        """A process that is interrupted around its commit."""
        self.do_write()
        self._end_anywhere(None, self.chance.choice(("before", "after")))

    def do_fence(self) -> None:
        """A run that is given up while it works: it commits nothing, and the next one does."""
        self.do_write()
        ended = self._run(stop="fence")
        assert {each.error_code for each in ended.targets} == {"run_fenced"}, ended.targets
        assert self._read_state() == self.state

    def do_revert(self) -> None:
        """The last commit is undone: the next run of everything makes it again."""
        if self.commits:
            commit, self.state = self.commits.pop()
            with omnigraph.open(self.uri) as graph:
                graph.branch("main").revert(commit)
            assert self._read_state() == self.state
            if self.is_new_only:
                self._require_run(sorted(self.written), is_full=True)

    def do_run(self) -> None:
        """Nothing happens to the source."""

    def _end_anywhere(self, steps: Steps | None, stop: str | None) -> None:
        wanted = self._apply(self._list_read())
        with suppress(SimulatedCrash, KeyboardInterrupt, OmnigraphError):
            self._run(steps=steps, stop=stop)
        found = self._read_state()
        assert found == self.state or (found == wanted and not self._is_too_small(wanted)), (
            found,
            self.state,
            wanted,
        )
        self._note_commit()
        self.state = found

    def _settle(self) -> None:
        """Run until nothing is new."""
        for _ in range(3):
            self._require_run(self._list_read())
        before = self._count_commits()
        assert self._run().status == "succeeded"
        assert self._count_commits() == before, "nothing is new"

    def _require_run(self, names: list[str], *, is_full: bool = False) -> None:
        wanted = self._apply(names)
        run = self._run(is_full=is_full)
        if self._is_too_small(wanted):
            (target,) = run.targets
            assert (target.status, target.error_code) == ("failed", "too_many_deleted")
            assert self._read_state() == self.state
            self._write(self._name_file(), who=LOGINS)
            self._require_run(self._list_read())
            return
        assert run.status == "succeeded", run.targets
        found = self._read_state()
        # A batch that was not finished comes first, and what is new since then after it.
        assert found == wanted or (self.is_new_only and not is_full), (found, wanted)
        self._note_commit()
        self.state = found
        if found == wanted:
            self.loaded = {name: self.written[name] for name in self.written}

    def _is_too_small(self, wanted: State) -> bool:
        """Whether a snapshot lacks more than it may."""
        return self.kind == "snapshot" and len(self.state.keys() - wanted.keys()) > MISSING_MAX

    def _list_read(self) -> list[str]:
        """The files that a run reads, in the end."""
        if not self.is_new_only:
            return sorted(self.written)
        return [
            name for name in sorted(self.written) if self.loaded.get(name) != self.written[name]
        ]

    def _apply(self, names: list[str]) -> State:
        records = [each for name in names for each in _read_file(str(self.folder / "in" / name))]
        newest = find_latest(records)
        found = newest if self.kind == "snapshot" else {**self.state, **newest}
        return {login: age for login, age in found.items() if age is not None}

    def _note_commit(self) -> None:
        """Remember the commit that a run made, if it made one, and what was before it."""
        with omnigraph.open(self.uri) as graph:
            made = [
                each.id
                for each in graph.branch("main").commits()
                if each.key is not None and each.id not in self.seen
            ]
        assert len(made) <= 1, "a run makes one commit"
        self.commits += [(each, self.state) for each in made]
        self.seen.update(made)

    def _run(
        self, *, steps: Steps | None = None, stop: str | None = None, is_full: bool = False
    ) -> Run:
        counted = Steps() if steps is None else steps

        def open_store(uri: str) -> Objects:
            return FaultyObjects(open_objects(uri), counted)

        def open_records(running: RunContext, slot: Slot) -> FileRecords:
            records = FileRecords(running, slot)
            records.stop = stop
            return records

        options = RunOptions(wait=lambda _: None, open_store=open_store, is_full=is_full)
        return run_with_records(self.pipeline, options, open_records)

    def _read_state(self) -> State:
        with omnigraph.open(self.uri) as graph:
            text = "query q() { match { $p: Person } return { $p.handle, $p.age } }"
            rows = graph.branch("main").query(text).to_pylist()
        return {row["p.handle"]: row["p.age"] for row in rows}

    def _count_commits(self) -> int:
        with omnigraph.open(self.uri) as graph:
            return len(list(graph.branch("main").commits()))

    def _name_file(self) -> str:
        return f"f{self.clock}.jsonl"

    def _write(self, name: str, *, is_bad: bool = False, who: Sequence[str] = ()) -> None:
        self.clock += 1
        logins = who or self.chance.sample(LOGINS, self.chance.randint(1, 3))
        ages = [0, 1, 2, *([None, None] if self.kind == "changes" else [])]
        lines = [json.dumps([login, self.clock, self.chance.choice(ages)]) for login in logins]
        text = "\n".join([*lines, *(["{"] if is_bad else [])]) + "\n"
        if not is_bad:
            self.versions.append((name, self.clock, text))
        self._put(name, self.clock, text)

    def _put(self, name: str, at: int, text: str) -> None:
        (self.folder / "in").mkdir(exist_ok=True)
        path = self.folder / "in" / name
        path.write_text(text)
        # Versions that follow each other faster than the clock of the disk differ, too.
        os.utime(path, (at, at))
        self.written[name] = at


def live(seed: int, folder: Path, length: int) -> None:
    """One history; its seed decides everything."""
    chance = random.Random(seed)
    History(folder, chance, KINDS[seed % len(KINDS)]).live(length)


def main() -> None:
    """Run as many histories as the command line asks for."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    for seed in range(count):
        with tempfile.TemporaryDirectory() as place:
            try:
                live(seed, Path(place), 8)
            except BaseException:
                sys.stdout.write(f"history {seed} differs from the model\n")
                raise
        if (seed + 1) % 100 == 0:
            sys.stdout.write(f"{seed + 1} histories agree\n")
            sys.stdout.flush()
    sys.stdout.write(f"{count} histories, all as the model\n")


if __name__ == "__main__":
    main()
