"""Build the wheel and the sdist, twice from different folders, and fail if their bytes differ.

    python scripts/build_dist.py FOLDER

Times in both are SOURCE_DATE_EPOCH, or that of the newest commit. Only files that Git knows are
packed, with the permissions that the build gives them, so that anyone who builds a commit with the
pinned hatchling gets the same bytes.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]


def build(target: Path) -> dict[str, str]:
    """Build both into a folder; their digests by file name."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH") or _read_commit_time()
    with TemporaryDirectory() as first, TemporaryDirectory() as second:
        digests = _build_once(Path(first), epoch)
        if digests != _build_once(Path(second) / "elsewhere", epoch):
            raise SystemExit("two builds of the same tree differ")
        target.mkdir(parents=True, exist_ok=True)
        for old in target.glob("omnigraph-*"):
            old.unlink()
        for name in digests:
            shutil.copy(Path(first) / "dist" / name, target / name)
    return digests


def _build_once(folder: Path, epoch: str) -> dict[str, str]:
    tree = folder / "tree"
    _copy_tree(tree)
    run = [sys.executable, "-m", "hatchling", "build", "-d", str(folder / "dist")]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": epoch}
    subprocess.run(run, cwd=tree, env=environment, check=True, capture_output=True)
    built = sorted((folder / "dist").iterdir())
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in built}


def _copy_tree(tree: Path) -> None:
    """The files that Git knows, as they are in the working tree."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        target = tree / name
        target.parent.mkdir(parents=True, exist_ok=True)
        # A file that was removed and not committed is not there.
        if (ROOT / name).is_file():
            shutil.copyfile(ROOT / name, target)


def _read_commit_time() -> str:
    found = subprocess.run(
        ["git", "log", "-1", "--format=%ct"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return found.stdout.strip()


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for name, digest in build(folder).items():
        size = (folder / name).stat().st_size / 1024**2
        print(f"{digest}  {name}  {size:.1f} MiB")
