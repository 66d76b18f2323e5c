"""The task that compares the hashes of all units: who is there twice, and who is nowhere.

A question is asked part by part, and so is its answer given: neither need ever be in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Final, TypeVar, assert_never

import numpy as np
import pyarrow as pa

from omnigraph.bulk.hash_files import (
    HashFile,
    HashIndex,
    hash_tuples,
    merge_sorted,
    read_hash_part,
    read_hashes,
    select_repeated,
    union_hashes,
    write_hashes,
)
from omnigraph.bulk.splits import SPLIT_ROWS, GraphLocation, LoadJob, Stores, get_stores
from omnigraph.bulk.task_runner import LocalRunner, Runner
from omnigraph.bulk.task_tracking import (
    read_task_input,
    read_task_rows,
    write_task_input,
    write_task_rows,
)
from omnigraph.rows.hashing import Hashes, hash_any_texts
from omnigraph.sorted_search import are_among, count_among
from omnigraph.storage.objects.object_store import Objects
from omnigraph.storage.tables.pins import Pin
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.validate.unique_groups import UniqueGroup

_STAGE: Final = "keys"
HashFiles = tuple[HashFile, ...]

# So few rows are looked through at once, where the load is led from.
LOCAL_ROWS_MAX: Final = 1024 * 1024
_SHARED: Final = "shared"
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class DuplicateKeys:
    """A question: which hashes are there more than once."""

    name: str
    files: HashFiles


@dataclass(frozen=True, slots=True)
class MissingKeys:
    """A question: which hashes are not among those of other files."""

    name: str
    files: HashFiles
    among: HashFiles


@dataclass(frozen=True, slots=True)
class SharedKeys:
    """A question: which hashes are among those of other files, too."""

    name: str
    files: HashFiles
    among: HashFiles


@dataclass(frozen=True, slots=True)
class CardinalityViolations:
    """A question: which hashes, written or replaced, are there too seldom or too often then.

    Those that are replaced are among those that are committed.
    """

    name: str
    files: HashFiles
    committed: HashFiles
    replaced: HashFiles
    minimum: int
    maximum: int | None


KeyQuery = DuplicateKeys | MissingKeys | SharedKeys | CardinalityViolations


@dataclass(frozen=True, slots=True)
class KeyQueryPart:
    """A question about one part of all hashes, by the path of it."""

    location: GraphLocation = field(repr=False)
    folder: str
    query_path: str
    number: int


def run_key_queries(
    job: LoadJob, questions: Sequence[KeyQuery], runner: Runner
) -> dict[str, HashFiles]:
    """Files of the hashes that answer each question; many are compared where the units are run."""
    notes = get_stores(job.location).objects
    asked = [question for question in questions if question.files]
    paths = {each.name: write_task_input(notes, job.folder, each) for each in asked}
    parts = [
        (name, KeyQueryPart(job.location, job.folder, path, number))
        for name, path in paths.items()
        for number in range(job.parts)
    ]
    chosen = runner if job.parts > 1 else LocalRunner()
    answers = chosen.run([part for _, part in parts], run_query_part, stage=_STAGE)
    found: dict[str, list[HashFile]] = {question.name: [] for question in questions}
    for (name, _), answer in zip(parts, answers, strict=True):
        if answer is not None:
            found[name].append(answer)
    return {name: tuple(each) for name, each in found.items()}


def run_query_part(part: KeyQueryPart) -> HashFile | None:
    """A file with the answer in one part of the hashes; None if there is none."""
    notes = get_stores(part.location).objects
    question: KeyQuery = read_task_input(notes, part.query_path)
    answer = _evaluate_query(question, partial(read_hash_part, notes, part=part.number))
    if not len(answer):
        return None
    file = write_hashes(notes, part.folder, [answer], parts=1, is_sorted=True)
    return replace(file, first=part.number)


def _evaluate_query(question: KeyQuery, read: Callable[[HashFiles], list[Hashes]]) -> Hashes:
    match question:
        case DuplicateKeys():
            return select_repeated(merge_sorted(read(question.files)))
        case MissingKeys() | SharedKeys():
            known = HashIndex(merge_sorted(read(question.among)))
            is_shared = isinstance(question, SharedKeys)
            # File by file: all ends of a large load need not be in memory at once.
            each = (hashes for file in question.files for hashes in read((file,)))
            return union_hashes(hashes[known.contains_each(hashes) == is_shared] for hashes in each)
        case CardinalityViolations():
            return _find_cardinality_violations(question, read)
        case _:
            assert_never(question)


def _find_cardinality_violations(
    question: CardinalityViolations, read: Callable[[HashFiles], list[Hashes]]
) -> Hashes:
    own, committed, replaced = (
        merge_sorted(read(files))
        for files in (question.files, question.committed, question.replaced)
    )
    each = union_hashes([own, replaced])
    counts = count_among(each, own) + count_among(each, committed) - count_among(each, replaced)
    is_bad = counts < question.minimum
    if question.maximum is not None:
        is_bad |= counts > question.maximum
    return each[is_bad]


@dataclass(frozen=True, slots=True)
class Probe:
    """A question to a committed table: the rows whose hash is wanted, with some columns.

    What is hashed is a column of texts, or the tuple of a group.
    """

    type_key: str
    columns: tuple[str, ...]
    wanted: HashFiles
    hashed: str | UniqueGroup = ID_COLUMN


@dataclass(frozen=True, slots=True)
class _ProbeTask:
    """A question to some fragments, by the path of it."""

    location: GraphLocation = field(repr=False)
    folder: str
    parts: int
    pin: Pin
    fragments: tuple[int, ...]
    probe_path: str


def probe_committed(job: LoadJob, pin: Pin, probe: Probe, runner: Runner) -> pa.Table:
    """The committed rows that answer a probe."""
    if job.parts > 1:
        # No worker could hold what a load of this size wants: only what both have is looked for.
        committed = hash_committed(job, pin, probe, runner)
        question = SharedKeys(_SHARED, committed, probe.wanted)
        probe = replace(probe, wanted=run_key_queries(job, [question], runner)[_SHARED])
    stores = get_stores(job.location)
    paths = _scan_fragments(job, pin, probe, run_probe, runner) if probe.wanted else []
    found = [read_task_rows(stores.objects, path) for path in paths if path is not None]
    if not found:
        return stores.tables.open(pin).scan(columns=list(probe.columns), filter="false")
    return pa.concat_tables(found)


def hash_committed(job: LoadJob, pin: Pin, probe: Probe, runner: Runner) -> HashFiles:
    """The hashes of all committed rows, of what a probe asks for."""
    return tuple(_scan_fragments(job, pin, replace(probe, wanted=()), hash_fragments, runner))


def run_probe(look: _ProbeTask) -> str | None:
    """The path of a note with the rows that were found; None when there are none."""
    stores = get_stores(look.location)
    probe: Probe = read_task_input(stores.objects, look.probe_path)
    wanted = _read_wanted(
        _WantedKey(look.location.uri, look.probe_path, probe.wanted, stores.objects)
    )
    found = []
    for rows, hashes in _iter_hashed_rows(look, probe, stores):
        is_found = are_among(hashes, wanted)
        if is_found.any():
            found.append(rows.filter(pa.array(is_found)).select(list(probe.columns)))
    return write_task_rows(stores.objects, look.folder, pa.concat_tables(found)) if found else None


def hash_fragments(look: _ProbeTask) -> HashFile:
    """A file with the hashes of the rows."""
    stores = get_stores(look.location)
    probe: Probe = read_task_input(stores.objects, look.probe_path)
    hashes = (found for _, found in _iter_hashed_rows(look, replace(probe, columns=()), stores))
    return write_hashes(stores.objects, look.folder, hashes, parts=look.parts, is_sorted=True)


def compute_row_hashes(rows: pa.Table, hashed: str | UniqueGroup) -> Hashes:
    """The hash of each row, by a column or by a group that exempts none of them."""
    if isinstance(hashed, UniqueGroup):
        return hash_tuples(hashed.format_texts(rows))
    return hash_any_texts(rows[hashed])


def clear_wanted_cache() -> None:
    """Let go of the hashes that were kept from one look to the next."""
    _read_wanted.cache_clear()


def _scan_fragments(
    job: LoadJob, pin: Pin, probe: Probe, task: Callable[[_ProbeTask], Answer], runner: Runner
) -> list[Answer]:
    """The answers of all fragments; few rows are looked through where the load is led from."""
    stores = get_stores(job.location)
    groups = _group_fragments(stores.tables.open(pin).fragment_ids, pin)
    path = write_task_input(stores.objects, job.folder, probe)
    looks = [_ProbeTask(job.location, job.folder, job.parts, pin, group, path) for group in groups]
    if pin.rows <= LOCAL_ROWS_MAX:
        return [task(look) for look in looks]
    return runner.run(looks, task, stage=f"committed {probe.type_key}")


def _iter_hashed_rows(
    look: _ProbeTask, probe: Probe, stores: Stores
) -> Iterator[tuple[pa.Table, Hashes]]:
    hashed = probe.hashed.columns if isinstance(probe.hashed, UniqueGroup) else (probe.hashed,)
    names = list(dict.fromkeys([*probe.columns, *hashed]))
    table = stores.tables.open(look.pin)
    for batch in table.scan_batches(columns=names, fragments=look.fragments):
        rows = pa.Table.from_batches([batch])
        if isinstance(probe.hashed, UniqueGroup):
            rows = probe.hashed.filter_bound_rows(rows)
        yield rows, compute_row_hashes(rows, probe.hashed)


def _group_fragments(fragments: Sequence[int], pin: Pin) -> list[tuple[int, ...]]:
    """Fragments in groups of about as many rows as a unit has."""
    if not fragments:
        return []
    count = max(1, min(len(fragments), -(-pin.rows // SPLIT_ROWS)))
    return [tuple(each.tolist()) for each in np.array_split(np.array(fragments), count)]


@dataclass(frozen=True, slots=True)
class _WantedKey:
    """The hashes that a probe wants; equal if the probe is."""

    uri: str
    probe: str
    files: HashFiles = field(compare=False)
    objects: Objects = field(compare=False)


@lru_cache(maxsize=1)
def _read_wanted(wanted: _WantedKey) -> Hashes:
    # Kept while a process makes the looks of one probe, which come one after the other.
    return read_hashes(wanted.objects, wanted.files)
