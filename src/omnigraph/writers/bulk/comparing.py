"""The task that compares the hashes of all units: who is there twice, and who is nowhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from omnigraph.execution.hashing import Hashes
from omnigraph.storage.objects import Objects
from omnigraph.writers.bulk.hashes import (
    NONE,
    HashFile,
    are_among,
    distinct,
    merged,
    read_part,
    repeated,
    union,
)
from omnigraph.writers.bulk.runner import Runner
from omnigraph.writers.bulk.stores import stores_of
from omnigraph.writers.bulk.units import Job, Place

_STAGE: Final = "keys"


@dataclass(frozen=True, slots=True)
class Repeats:
    """A question: which hashes are there more than once."""

    name: str
    files: tuple[HashFile, ...]


@dataclass(frozen=True, slots=True)
class Strangers:
    """A question: which hashes are not among those of other files."""

    name: str
    files: tuple[HashFile, ...]
    among: tuple[HashFile, ...]


Question = Repeats | Strangers


@dataclass(frozen=True, slots=True)
class Part:
    """Questions about one part of all hashes."""

    place: Place
    number: int
    questions: tuple[Question, ...]


def compare(job: Job, questions: Sequence[Question], runner: Runner) -> dict[str, Hashes]:
    """The hashes that answer each question; many are compared where the units are run."""
    parts = [Part(job.place, number, tuple(questions)) for number in range(job.parts)]
    answers = (
        runner.run(parts, compare_part, stage=_STAGE) if job.parts > 1 else [compare_part(parts[0])]
    )
    found: dict[str, Hashes] = {question.name: NONE for question in questions}
    for answer in answers:
        found = merged(found, answer)
    return found


def compare_part(part: Part) -> dict[str, Hashes]:
    """The answers in one part of the hashes."""
    objects = stores_of(part.place).notes
    return {question.name: _answer(question, objects, part.number) for question in part.questions}


def run_lengths(
    objects: Objects, files: Sequence[HashFile], parts: int
) -> Iterator[tuple[Hashes, npt.NDArray[np.int64]]]:
    """Every hash of some files and how often it is there, part by part."""
    for number in range(parts):
        ordered = np.sort(np.concatenate([NONE, *read_part(objects, files, number)]))
        each = distinct(ordered)
        starts = np.searchsorted(ordered, each)
        yield each, np.diff(np.append(starts, len(ordered)))


def _answer(question: Question, objects: Objects, part: int) -> Hashes:
    if isinstance(question, Repeats):
        return repeated(np.sort(np.concatenate([NONE, *read_part(objects, question.files, part)])))
    known = np.sort(np.concatenate([NONE, *read_part(objects, question.among, part)]))
    # File by file: all ends of a large load need not be in memory at once.
    each = (read_part(objects, [file], part) for file in question.files)
    return union(hashes[~are_among(hashes, known)] for found in each for hashes in found)
