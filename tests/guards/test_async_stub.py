"""The signatures that type checkers see of asynchronous handles are those of the engine."""

from __future__ import annotations

import importlib.util
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "async_stub.py"


def test_the_stub_of_asynchronous_handles_is_what_the_engine_makes_it() -> None:
    found = importlib.util.spec_from_file_location("async_stub", SCRIPT)
    assert found is not None
    assert found.loader is not None
    script = importlib.util.module_from_spec(found)
    found.loader.exec_module(script)
    assert script.STUB.read_text() == script.build_stub(), "run python scripts/async_stub.py"
