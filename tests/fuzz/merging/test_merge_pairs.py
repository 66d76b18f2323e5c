"""The generated table of merges: each operation on one side meets each one on the other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fuzz.merging.both import Both
from fuzz.merging.laws import diff_leads_from_one_to_the_other, merges_commute
from fuzz.merging.operations import OPERATIONS

OURS = {name: f"ours{number}" for number, name in enumerate(OPERATIONS)}
THEIRS = {name: f"theirs{number}" for number, name in enumerate(OPERATIONS)}


@pytest.fixture(scope="module")
def both() -> Iterator[Both]:
    """A graph with two branches for each operation: one for each side of a merge."""
    made = Both()
    for side in (OURS, THEIRS):
        for name, steps in OPERATIONS.items():
            made.create(side[name])
            for step in steps:
                step(made, side[name])
    yield made
    made.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_meets_every_other_one_as_in_the_model(both: Both, name: str) -> None:
    names = list(OPERATIONS)
    for other in names[names.index(name) :]:
        merges_commute(both, OURS[name], THEIRS[other])
        diff_leads_from_one_to_the_other(both, OURS[name], THEIRS[other])
