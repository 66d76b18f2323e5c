"""Functions that tests give to Spark; its workers import them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from omnigraph.errors import BranchNotFoundError, StorageError


@dataclass(frozen=True, slots=True)
class Job:
    """A unit: a number, and where a task may leave traces."""

    number: int
    folder: str = ""


def square(job: Job) -> int:
    return job.number**2


def refuse_two(job: Job) -> int:
    if job.number == 2:
        raise BranchNotFoundError("review", hint="look again")
    return job.number


def fail_at_two(job: Job) -> int:
    if job.number == 2:
        raise ValueError("two is not for me")
    return job.number


def succeed_the_second_time(job: Job) -> int:
    trace = Path(job.folder) / f"tried-{job.number}"
    if job.number == 2 and not trace.exists():
        trace.touch()
        raise StorageError("get", "some/object", "a connection was lost")
    return job.number


def lose_connections(job: Job) -> int:
    raise StorageError("get", f"object-{job.number}", "a connection was lost")
