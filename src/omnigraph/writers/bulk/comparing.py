"""The task that compares the hashes of all units: who is there twice, and who is nowhere.

A question is asked part by part, and so is its answer given: neither need ever be in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, assert_never

from omnigraph.execution.hashing import Hashes
from omnigraph.writers.bulk.hashes import (
    HashFile,
    HashIndex,
    count_occurrences,
    merge_sorted,
    read_hash_part,
    select_repeated,
    union_hashes,
    write_hashes,
)
from omnigraph.writers.bulk.notes import read_task_input, write_task_input
from omnigraph.writers.bulk.runner import LocalRunner, Runner
from omnigraph.writers.bulk.stores import get_stores
from omnigraph.writers.bulk.units import GraphLocation, LoadJob

_STAGE: Final = "keys"

HashFiles = tuple[HashFile, ...]


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
    counts = (
        count_occurrences(each, own)
        + count_occurrences(each, committed)
        - count_occurrences(each, replaced)
    )
    is_bad = counts < question.minimum
    if question.maximum is not None:
        is_bad |= counts > question.maximum
    return each[is_bad]
