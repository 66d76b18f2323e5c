"""Which platforms the package admits, and what the documents say about them."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from omnigraph.errors import UnsupportedPlatformError

ROOT = Path(__file__).parents[2]


def test_an_import_on_windows_fails_and_says_why() -> None:
    imported = _import_on("win32")
    assert imported.returncode == 1
    last = imported.stderr.splitlines()[-1]
    assert "UnsupportedPlatformError: omnigraph does not run on win32" in last
    assert "POSIX locks" in last


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_an_import_on_a_posix_platform_succeeds(platform: str) -> None:
    assert _import_on(platform).stderr == ""


def test_the_error_can_be_caught_as_a_failed_import() -> None:
    error = UnsupportedPlatformError("win32")
    assert isinstance(error, ImportError)
    assert (error.code, error.platform) == ("unsupported_platform", "win32")
    assert error.hint is not None


def test_the_classifiers_and_the_workflow_name_the_same_versions_of_python() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    prefix = "Programming Language :: Python :: 3."
    versions = [each.rpartition(" ")[2] for each in project["classifiers"] if prefix in each]
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    assert versions[0] == project["requires-python"].removeprefix(">=")
    quoted = ", ".join(f'"{each}"' for each in versions)
    assert f"python: [{quoted}]" in workflow
    assert "Operating System :: POSIX :: Linux" in project["classifiers"]


def test_the_workflow_runs_targets_that_exist() -> None:
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"make ([\w-]+)", workflow))
    assert targets >= {"test", "check", "coverage"}
    assert {
        name for name in targets if not re.search(rf"^{name}:", makefile, re.MULTILINE)
    } == set()
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111


def _import_on(platform: str) -> subprocess.CompletedProcess[str]:
    program = f"import sys; sys.platform = {platform!r}; import omnigraph"
    command = [sys.executable, "-c", program]
    return subprocess.run(command, check=False, capture_output=True, text=True)
