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
    HashFile,
    Known,
    distinct,
    in_order,
    read_part,
    repeated,
    union,
)
from omnigraph.writers.bulk.runner import InProcess, Runner
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
    """A question about one part of all hashes."""

    place: Place
    number: int
    question: Question


def compare(job: Job, questions: Sequence[Question], runner: Runner) -> dict[str, Hashes]:
    """The hashes that answer each question; many are compared where the units are run."""
    parts = [
        Part(job.place, number, question) for question in questions for number in range(job.parts)
    ]
    chosen = runner if job.parts > 1 else InProcess()
    answers = chosen.run(parts, compare_part, stage=_STAGE)
    found: dict[str, list[Hashes]] = {question.name: [] for question in questions}
    for part, answer in zip(parts, answers, strict=True):
        found[part.question.name].append(answer)
    return {name: union(each) for name, each in found.items()}


def compare_part(part: Part) -> Hashes:
    """The answer in one part of the hashes."""
    objects, question = stores_of(part.place).notes, part.question
    if isinstance(question, Repeats):
        return repeated(in_order(read_part(objects, question.files, part.number)))
    known = Known(in_order(read_part(objects, question.among, part.number)))
    # File by file: all ends of a large load need not be in memory at once.
    each = (read_part(objects, [file], part.number) for file in question.files)
    return union(hashes[~known.holds(hashes)] for found in each for hashes in found)


def run_lengths(
    objects: Objects, files: Sequence[HashFile], parts: int
) -> Iterator[tuple[Hashes, npt.NDArray[np.int64]]]:
    """Every hash of some files and how often it is there, part by part."""
    for number in range(parts):
        ordered = in_order(read_part(objects, files, number))
        each = distinct(ordered)
        starts = np.searchsorted(ordered, each)
        yield each, np.diff(np.append(starts, len(ordered)))
