"""The code of the page of the adapters runs, from top to bottom."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "adapters.md"


def test_the_code_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    blocks = re.findall(
        r"^```(?:py|python)\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE
    )
    assert len(blocks) > 5
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), names)  # noqa: S102 — our own page
    assert names["settings"]["vector_db_storage_cls_kwargs"]["omnigraph_uri"] == "memory.omni"
