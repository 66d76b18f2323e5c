from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.storage.objects.source_files import list_source_files, open_source_file


def test_a_file_that_was_found_by_a_relative_path_is_read_from_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "town.jsonl").write_text("a town\n")
    monkeypatch.chdir(tmp_path / "here")
    (file,), _ = list_source_files("town.jsonl", {})
    assert file.uri == "town.jsonl"
    monkeypatch.chdir(tmp_path)
    with open_source_file(file, {}) as stream:
        assert stream.read() == b"a town\n"
