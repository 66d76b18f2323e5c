"""The wheel and the sdist have the same bytes each time, and hold what they should."""

from __future__ import annotations

import importlib.util
import tarfile
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
# Below it a wheel needs no thought; tests and examples are not in it.
WHEEL_BYTES_MAX = 4 * 1024**2
# What developers install, and the adapters, which come with frameworks of their own.
NOT_OF_ALL = {"bench", "dev", "langchain", "lightrag", "llama-index"}


def _load_script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_two_builds_have_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1790000000")
    # It builds twice, from different folders, and ends the process if they differ.
    digests = _load_script("build_dist").build(tmp_path)
    wheel = next(tmp_path / name for name in digests if name.endswith(".whl"))
    assert wheel.stat().st_size <= WHEEL_BYTES_MAX
    packed = zipfile.ZipFile(wheel).infolist()
    assert {entry.date_time for entry in packed} == {(2026, 9, 21, 14, 13, 20)}
    names = {entry.filename.split("/")[0] for entry in packed}
    assert names == {"omnigraph", "pyspark_omnigraph", "omnigraph-0.1.0.dist-info"}
    source = next(tmp_path / name for name in digests if name.endswith(".tar.gz"))
    with tarfile.open(source) as tar:
        assert {entry.mtime for entry in tar} == {1790000000}


def test_the_extra_of_all_names_every_other_one() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = declared["optional-dependencies"]
    (everything,) = extras["all"]
    named = everything.removeprefix("omnigraph[").removesuffix("]").split(",")
    assert named == sorted(extras.keys() - NOT_OF_ALL - {"all"})
