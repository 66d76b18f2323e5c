"""Where the graphs of tests live: in memory and on the disk, or with `--on s3` all on an S3 server.

There is one server per test process, on a port of the loopback interface, from the first graph
that lives there to the end of the tests. With `--on s3` the AWS_* environment leads to it, so that
an address is all that a test and the processes it starts need to know.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from omnigraph.engine.resources import Storage, open_storage
from omnigraph.storage.objects.faults import FaultyObjects, FaultyTables, Steps

if TYPE_CHECKING:
    from stores import S3Server

Kind: TypeAlias = Literal["local", "memory", "s3"]

# The folder of a graph in its bucket: an address may be deeper than a bucket.
_FOLDER = "graphs/one"
# Tells a process that a test started that its environment leads to the server.
_LED = "OMNIGRAPH_TEST_LED_TO_S3"


@dataclass
class _Here:
    """What this process has chosen and started."""

    is_on_s3: bool = False
    server: S3Server | None = None
    buckets: list[str] = field(default_factory=list)
    ending: ExitStack = field(default_factory=ExitStack)


_here = _Here()


def use_s3() -> None:
    """From now on every graph lives on S3."""
    _here.is_on_s3 = True


def is_on_s3() -> bool:
    """Whether every graph lives on S3."""
    return _here.is_on_s3


def kinds() -> list[Kind]:
    """The kinds of place that a test should try."""
    return ["s3"] if is_on_s3() else ["local", "memory"]


def quick_kind() -> Kind:
    """The kind of place for a test that needs no particular one."""
    return "s3" if is_on_s3() else "memory"


def fresh_uri(otherwise: str | Path | None = None) -> str:
    """An address that nobody else uses: on S3 if that is chosen, else the given one or memory."""
    if is_on_s3():
        return _on_s3()
    return str(otherwise or f"memory://{uuid.uuid4().hex}")


def uri_of(kind: Kind, folder: Path | None = None) -> str:
    """A fresh address of a kind; one on the disk is in the folder."""
    name = uuid.uuid4().hex
    match kind:
        case "s3":
            return _on_s3()
        case "memory":
            return f"memory://{name}"
        case "local":
            assert folder is not None, "a place on the disk needs a folder"
            return str(folder / name)


def copy_of(uri: str, folder: Path) -> str:
    """A fresh address of the same kind that holds what another one holds, on disk or on S3."""
    if not uri.startswith("s3://"):
        copy = folder / uuid.uuid4().hex
        shutil.copytree(uri, copy)
        return str(copy)
    bucket, _, below = uri.removeprefix("s3://").partition("/")
    copied = server().copy_of(bucket)
    _here.buckets.append(copied)
    return f"s3://{copied}/{below}"


def options(uri: str) -> Mapping[str, str] | None:
    """The options that lead to an address, also where the environment does not."""
    # A process that a test started has its environment, and must not start another server.
    if not uri.startswith("s3://") or (_here.server is None and _LED in os.environ):
        return None
    return server().options


def server() -> S3Server:
    """The server of this process, started by whoever asks first."""
    if _here.server is None:
        # Most tests need no server, and importing one takes long.
        from stores import s3_server  # noqa: PLC0415

        _here.server = _here.ending.enter_context(s3_server())
        if is_on_s3():
            _here.ending.enter_context(_environment(_here.server))
    return _here.server


@contextmanager
def forgetting() -> Iterator[None]:
    """Remove the graphs on S3 that are made meanwhile."""
    before = len(_here.buckets)
    yield
    while len(_here.buckets) > before:
        server().forget(_here.buckets.pop())


def end() -> None:
    """Stop the server; what was in it is gone."""
    _here.ending.close()
    _here.server = None
    _here.buckets.clear()


def _on_s3() -> str:
    bucket = server().new_bucket()
    _here.buckets.append(bucket)
    return f"s3://{bucket}/{_FOLDER}"


@contextmanager
def _environment(running: S3Server) -> Iterator[None]:
    """Lead this process and those it starts to the server, and nowhere else."""
    kept = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    for name in kept:
        del os.environ[name]
    led = {**running.environment, _LED: "yes"}
    os.environ.update(led)
    try:
        yield
    finally:
        for name in led:
            os.environ.pop(name, None)
        os.environ.update(kept)


def storage_of(uri: str, steps: Steps | None = None) -> Storage:
    """The storage of a graph as a new process sees it: nothing is open, nothing is remembered.

    With steps, the process counts its durable steps and meets the fault among them.
    """
    found = open_storage(uri, is_durable=False, options=options(uri))
    if steps is None:
        return Storage(found.objects, found.tables, reopen=found.reopen)
    tables: Any = FaultyTables(found.tables, steps)  # it has every method of what it wraps
    return Storage(FaultyObjects(found.objects, steps), tables)
