"""Runs every `.gqt` case on every arm; files in `lenient` compile in lenient mode.

With `--arm spark`, the cases that read run on Spark alone.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import places
from logic.arms import Arm
from logic.bless import Blessing
from logic.embedded_arm import EmbeddedArm
from logic.guarded_arm import GuardedArm, GuardedModelArm
from logic.model_arms import ARMS
from logic.parse import parse_case
from logic.runner import run_case
from logic.served_arm import HOST, ServedArm
from logic.spark_arm import SparkArm, small_session
from omnigraph.lang.lexer import Mode

FOLDER = Path(__file__).parent
CASES = sorted(FOLDER.rglob("*.gqt"))
EMBEDDED = EmbeddedArm(kind=places.quick_kind())
INDEXED = EmbeddedArm("indexed", kind=places.quick_kind(), is_indexed=True)
ON_S3 = EmbeddedArm("s3", kind="s3")
# One in so many cases runs on S3 every time; `--on s3` runs them all there.
S3_EVERY = 50
GUARDED, GUARDED_MODEL = GuardedArm(), GuardedModelArm()
# One in so many cases is read under guards every time; `make test-slow` reads them all.
GUARDED_EVERY = 8
SERVED = ServedArm()
# One in so many cases is asked over HTTP every time; `make test-slow` asks them all.
SERVED_EVERY = 25
RUNS: list[tuple[Path, Arm]] = [(path, arm) for path in CASES for arm in (EMBEDDED, INDEXED)]
if not places.is_on_s3():
    RUNS += [(path, arm) for path in CASES for arm in ARMS]
    RUNS += [(path, ON_S3) for path in CASES[::S3_EVERY]]
    RUNS += [(path, SERVED) for path in CASES]
    RUNS += [(path, arm) for path in CASES for arm in (GUARDED, GUARDED_MODEL)]


def case_id(value: object) -> str:
    if isinstance(value, Path):
        return str(value.relative_to(FOLDER).with_suffix(""))
    return str(getattr(value, "name", value))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "arm" not in metafunc.fixturenames:
        return
    runs = RUNS
    if metafunc.config.getoption("--arm") == "spark":
        folder = Path(tempfile.gettempdir()) / f"cases-on-spark-{os.getpid()}"
        reading = [path for path in CASES if b"\n--- query" in path.read_bytes()]
        runs = [(path, SparkArm(folder)) for path in reading]
        on_spark = EmbeddedArm("spark", "local", folder=folder)
        guarded = GuardedArm("guarded_spark", "spark", on_spark)
        runs += [(path, guarded) for path in reading]
    params = [pytest.param(*run, marks=[pytest.mark.slow] if is_slow(*run) else []) for run in runs]
    metafunc.parametrize(("path", "arm"), params, ids=case_id)


def is_slow(path: Path, arm: Arm) -> bool:
    """Whether a run is left to `make test-slow`: another arm shows most of what it would."""
    if arm is GUARDED or arm is GUARDED_MODEL:
        return CASES.index(path) % GUARDED_EVERY != 0
    return arm is INDEXED or (arm is SERVED and CASES.index(path) % SERVED_EVERY != 0)


@pytest.fixture(scope="module", autouse=True)
def _the_server_of_cases_ends() -> Iterator[None]:
    yield
    HOST.close()


@pytest.fixture(autouse=True)
def _spark_is_there(request: pytest.FixtureRequest) -> Iterator[None]:
    arm = request.node.callspec.params["arm"] if hasattr(request.node, "callspec") else None
    folder = arm.folder if isinstance(arm, SparkArm) else None
    if isinstance(arm, GuardedArm):
        folder = arm.embedded.folder
    if folder is None:
        yield
        return
    small_session()
    folder.mkdir(exist_ok=True)
    yield
    shutil.rmtree(folder)


def test_a_case_gives_what_it_expects(path: Path, arm: Arm, bless: bool) -> None:
    data = path.read_bytes()
    case = parse_case(data, name=path.name)
    if case.skip_reason is not None:
        pytest.skip(case.skip_reason)
    is_lenient = path.relative_to(FOLDER).parts[0] == "lenient"
    mode = Mode.LENIENT if is_lenient else Mode.STRICT
    if bless and arm is ARMS[0]:
        blessing = Blessing(data.decode("utf-8"))
        run_case(case, arm, mode=mode, observe=blessing.observe)
        path.write_text(blessing.text(), encoding="utf-8")
        assert blessing.problems == []
    else:
        run_case(case, arm, mode=mode)


def test_every_case_says_in_a_sentence_what_it_shows() -> None:
    silent = [
        str(path.relative_to(FOLDER))
        for path in CASES
        if not any(
            note.rstrip().endswith((".", "!", "?"))
            for note in parse_case(path.read_bytes(), name=path.name).header.notes
        )
    ]
    assert silent == []
