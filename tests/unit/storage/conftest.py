"""Object stores of every kind, fresh for each test."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from omnigraph.storage import Objects, open_objects
from stores import S3Server


@pytest.fixture(params=["local", "local-unsynced", "memory", "s3"])
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Objects]:
    """Opens one fresh store, again and again."""
    if request.param == "memory":
        name = uuid.uuid4().hex
        return lambda: open_objects(f"memory://{name}")
    if request.param == "s3":
        server: S3Server = request.getfixturevalue("s3")
        uri = f"s3://{server.new_bucket()}/graphs/one"
        return lambda: open_objects(uri, options=server.options)
    is_durable = request.param == "local"
    return lambda: open_objects(str(tmp_path / "graph"), is_durable=is_durable)


@pytest.fixture
def objects(reopen: Callable[[], Objects]) -> Objects:
    return reopen()
