"""Files of decisions that cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from omnigraph.cli.resolution_files import ResolutionFiles


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"take": "ours"}\n{', "line 2: it is not JSON"),
        (b"[]", "line 1: it is not an object"),
        (b"\xff", "can't decode byte"),
        (None, "No such file"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(
    tmp_path: Path, content: bytes | None, message: str
) -> None:
    path = tmp_path / "decided.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(typer.BadParameter) as caught:
        ResolutionFiles(decided_path=path).read_decisions()
    assert str(path) in caught.value.message
    assert message in caught.value.message
