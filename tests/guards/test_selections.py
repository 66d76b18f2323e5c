"""`make test` and `make test-slow`: together every test; only generated ones are in both."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
# An expression, and what its negation selects: whatever is marked, a test is in one of the two. The
# second one tries more examples of generated tests.
SELECTIONS = {
    "test": ["$(PYTEST) -m 'not slow'"],
    "test-slow": ["$(PYTEST) --hypothesis-profile suite -m 'slow or hypothesis'"],
    "test-all": ["$(PYTEST) --hypothesis-profile suite"],
}


@pytest.mark.parametrize("target", SELECTIONS)
def test_a_target_selects_by_the_mark_alone(target: str) -> None:
    makefile = (ROOT / "Makefile").read_text()
    found = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    assert found is not None
    assert [line.strip() for line in found[1].splitlines()] == SELECTIONS[target]


def test_nothing_else_leaves_tests_out(pytestconfig: pytest.Config) -> None:
    makefile = (ROOT / "Makefile").read_text()
    common = re.search(r"^PYTEST := (.*)$", makefile, re.MULTILINE)
    assert common is not None
    options = [*common[1].split(), *pytestconfig.getini("addopts")]
    selecting = ("-m", "-k", "--ignore", "--ignore-glob", "--deselect", "--maxfail", "-x", "--lf")
    assert [each for each in options if each.partition("=")[0] in selecting] == []


def test_ci_runs_both_selections_once_and_the_linters() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    commands = re.findall(r"^make (\S+) \|\| status=1$", script, re.MULTILINE)
    assert commands == ["test", "test-slow", "check"]
    assert script.endswith('exit "$status"\n')


def test_every_folder_of_tests_has_a_test_that_is_not_slow(request: pytest.FixtureRequest) -> None:
    config = request.config
    is_whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    collected = (
        {path.parent for path in TESTS.rglob("test_*.py")} if is_whole else {TESTS / "guards"}
    )
    quick = {item.path.parent for item in request.session.items if not _is_slow(item)}
    # A browser takes seconds to start; other frameworks are installed by `make test-adapters`.
    assert sorted(collected - quick - {TESTS / "browser", TESTS / "frameworks"}) == []


def _is_slow(item: pytest.Item) -> bool:
    return item.get_closest_marker("slow") is not None
