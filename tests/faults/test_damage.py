"""A sample of the damage matrix: `python -m faults.damage 2000` is the whole."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import places
from faults.damage import run

SAMPLE = 40


@pytest.mark.timeout(300)
def test_damage_ends_in_the_right_answer_or_in_a_typed_error(tmp_path: Path) -> None:
    if places.is_on_s3():
        pytest.skip("files are damaged on the disk")
    tally = run(SAMPLE, seed=random.randrange(10**6), folder=tmp_path)
    assert tally.damages == SAMPLE
    assert (tally.bad, tally.missed) == ([], []), "\n".join(tally.lines())
