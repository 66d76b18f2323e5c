"""Options every test module may use."""

import pytest
from hypothesis import settings

# The same examples every time: a failure can be run again, and a green build stays green.
settings.register_profile("suite", derandomize=True, deadline=None)
settings.load_profile("suite")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--bless", action="store_true", help="rewrite the expectations of data-file cases"
    )


@pytest.fixture
def bless(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--bless"))
