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
    Known,
    in_order,
    occurrences,
    read_part,
    repeated,
    union,
    write_hashes,
)
from omnigraph.writers.bulk.notes import read_question, write_question
from omnigraph.writers.bulk.runner import InProcess, Runner
from omnigraph.writers.bulk.stores import stores_of
from omnigraph.writers.bulk.units import GraphPlace, Job

_STAGE: Final = "keys"

Files = tuple[HashFile, ...]


@dataclass(frozen=True, slots=True)
class Repeats:
    """A question: which hashes are there more than once."""

    name: str
    files: Files


@dataclass(frozen=True, slots=True)
class Strangers:
    """A question: which hashes are not among those of other files."""

    name: str
    files: Files
    among: Files


@dataclass(frozen=True, slots=True)
class Shared:
    """A question: which hashes are among those of other files, too."""

    name: str
    files: Files
    among: Files


@dataclass(frozen=True, slots=True)
class Miscounted:
    """A question: which hashes, written or replaced, are there too seldom or too often then.

    Those that are replaced are among those that are committed.
    """

    name: str
    files: Files
    committed: Files
    replaced: Files
    minimum: int
    maximum: int | None


Question = Repeats | Strangers | Shared | Miscounted


@dataclass(frozen=True, slots=True)
class Part:
    """A question about one part of all hashes, by the path of it."""

    place: GraphPlace = field(repr=False)
    folder: str
    question: str
    number: int


def compare(job: Job, questions: Sequence[Question], runner: Runner) -> dict[str, Files]:
    """Files of the hashes that answer each question; many are compared where the units are run."""
    notes = stores_of(job.place).notes
    asked = [question for question in questions if question.files]
    paths = {each.name: write_question(notes, job.folder, each) for each in asked}
    parts = [
        (name, Part(job.place, job.folder, path, number))
        for name, path in paths.items()
        for number in range(job.parts)
    ]
    chosen = runner if job.parts > 1 else InProcess()
    answers = chosen.run([part for _, part in parts], compare_part, stage=_STAGE)
    found: dict[str, list[HashFile]] = {question.name: [] for question in questions}
    for (name, _), answer in zip(parts, answers, strict=True):
        if answer is not None:
            found[name].append(answer)
    return {name: tuple(each) for name, each in found.items()}


def compare_part(part: Part) -> HashFile | None:
    """A file with the answer in one part of the hashes; None if there is none."""
    notes = stores_of(part.place).notes
    question: Question = read_question(notes, part.question)
    answer = _answer(question, partial(read_part, notes, part=part.number))
    if not len(answer):
        return None
    file = write_hashes(notes, part.folder, [answer], parts=1, is_sorted=True)
    return replace(file, first=part.number)


def _answer(question: Question, read: Callable[[Files], list[Hashes]]) -> Hashes:
    match question:
        case Repeats():
            return repeated(in_order(read(question.files)))
        case Strangers() | Shared():
            known = Known(in_order(read(question.among)))
            is_shared = isinstance(question, Shared)
            # File by file: all ends of a large load need not be in memory at once.
            each = (hashes for file in question.files for hashes in read((file,)))
            return union(hashes[known.holds(hashes) == is_shared] for hashes in each)
        case Miscounted():
            return _miscounted(question, read)
        case _:
            assert_never(question)


def _miscounted(question: Miscounted, read: Callable[[Files], list[Hashes]]) -> Hashes:
    own, committed, replaced = (
        in_order(read(files)) for files in (question.files, question.committed, question.replaced)
    )
    each = union([own, replaced])
    counts = occurrences(each, own) + occurrences(each, committed) - occurrences(each, replaced)
    is_bad = counts < question.minimum
    if question.maximum is not None:
        is_bad |= counts > question.maximum
    return each[is_bad]
