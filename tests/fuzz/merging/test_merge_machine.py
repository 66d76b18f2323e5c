"""A short run of `fuzz.merging.lives`: the suite has no time for more."""

from __future__ import annotations

import pytest
from hypothesis import settings

import places
from fuzz.merging.machine import Merging

TestMerging = pytest.mark.slow(Merging.TestCase)
TestMerging.settings = settings(
    max_examples=8 if places.is_on_s3() else 30, stateful_step_count=15, deadline=None
)
