"""A PostgreSQL server of Debian's package, on a free port of the loopback interface."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_INSTALLED = Path("/usr/lib/postgresql")
# The server refuses to be run by root; the package brings this user.
_USER = "postgres"


def programs() -> Path | None:
    """The folder of the newest server that is installed."""
    found = sorted(_INSTALLED.glob("*/bin/postgres"))
    return found[-1].parent if found else None


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """The address of a server that runs until the end; without one, the test is left out."""
    if programs() is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    del folder  # The user of the server cannot enter the folders of tests.
    place = Path(tempfile.mkdtemp(prefix="pg"))
    try:
        place.chmod(0o700)
        if os.getuid() == 0:
            shutil.chown(place, _USER)
        _run("initdb", "-D", place / "data", "-A", "trust", "-U", _USER, "--no-sync")
        port = _free_port()
        options = f"-p {port} -k {place} -h 127.0.0.1 -F"
        control = ("pg_ctl", "-D", place / "data", "-w", "-l", place / "log")
        _run(*control, "-o", options, "start")
        try:
            yield f"postgresql://{_USER}@127.0.0.1:{port}/postgres"
        finally:
            _run(*control, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(place)


def _run(program: str, *arguments: object) -> None:
    found = programs()
    assert found is not None, "asked only where a server is installed"
    command = [str(found / program), *map(str, arguments)]
    if os.getuid() == 0:
        command = ["setpriv", "--reuid", _USER, "--regid", _USER, "--clear-groups", *command]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/")


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
