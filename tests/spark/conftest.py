"""The tests here run in one process of the test run: that of the session they share.

Those that are marked `smoke` are a part of `make test`; all others are slow.
"""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


# Before groups become parts of the names of tests.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("spark"))
            if item.get_closest_marker("smoke") is None:
                item.add_marker(pytest.mark.slow)
            # The first of them waits for Java to start, on a machine that has other work.
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(600))
