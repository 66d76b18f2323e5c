from __future__ import annotations

from pathlib import Path

import pytest

from unit.pipelines.source_histories import live


@pytest.mark.parametrize("seed", range(8))
def test_a_target_is_what_the_history_of_its_source_says(tmp_path: Path, seed: int) -> None:
    live(seed, tmp_path, 4)
