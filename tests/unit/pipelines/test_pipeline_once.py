from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph
from omnigraph import Branch, Graph
from omnigraph.engine.branch_log import BranchLog
from omnigraph.errors import SnapshotGoneError
from omnigraph.pipelines.ledger.idempotency import IdempotencyKey
from omnigraph.pipelines.ledger.run_ledger import RUNNING, SUCCEEDED, TargetRun
from omnigraph.pipelines.run.target_attempt import UnreportedRun
from omnigraph.storage import open_objects
from omnigraph.versioning import commit_history
from omnigraph.versioning.retention_floors import Floors
from unit.pipelines.definitions import SCHEMA

KEY = "pipeline:people:company/main:s"
RUN, OTHER = "01M7HF0X2889ERTTXMBEP1BE2M", "01M7HF8DB63RT3X2FZ2C8X4K8D"


def _graph(folder: Path, name: str = "company.omni") -> Graph:
    return omnigraph.create(folder / name, schema=SCHEMA)


def _once(folder: Path, branch: Branch, name: str = "company.omni") -> IdempotencyKey:
    return IdempotencyKey(open_objects(str(folder / name)), "people", life=branch.life, key=KEY)


def _write(branch: Branch, name: str, key: str | None = None) -> str:
    data = {"handle": name, "name": name, "level": "junior"}
    row = {"type": "Person", "data": data}
    message = f"pipeline people, s, run {RUN}"
    return branch.load([row], mode="append", key=key, message=message).commit.id


@pytest.fixture
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_history, "KEY_RECORDS_MAX", 2)


@pytest.mark.usefixtures("_few")
def test_a_commit_is_found_however_many_others_follow_it(tmp_path: Path) -> None:
    with _graph(tmp_path) as graph:
        main = graph.branch("main")
        once = _once(tmp_path, main)
        assert once.find_commit(main) is None
        made = _write(main, "ada", KEY)
        for number in range(6):
            _write(main, f"p{number}")
        assert BranchLog(main).find_by_key(KEY) is None
        found = once.find_commit(main)
        assert found is not None
        assert found.id == made
        target = TargetRun("company/main", "company", "main", KEY)
        objects = open_objects(str(tmp_path / "company.omni"))
        told = UnreportedRun("people", RUN).reconcile_target(target, graph, objects)
        assert (told.status, told.commit, told.entities) == (SUCCEEDED, made, {"node:Person": 1})
        assert (told.rejected, told.made_by) == (None, RUN)
        # Another run of the same key did not make it.
        assert UnreportedRun("people", OTHER).reconcile_target(target, graph, objects) == target
        once.record_outcome(told)
        assert UnreportedRun("people", RUN).reconcile_target(target, graph, objects) == told
        assert UnreportedRun("people", OTHER).reconcile_target(target, graph, objects) == target


@pytest.mark.usefixtures("_few")
def test_what_was_looked_at_is_not_looked_at_again(tmp_path: Path) -> None:
    with _graph(tmp_path) as graph:
        main = graph.branch("main")
        once = _once(tmp_path, main)
        for number in range(4):
            assert once.find_commit(main) is None
            assert once.find_unused_version() == main.head.version
            _write(main, f"p{number}")


@pytest.mark.usefixtures("_few")
def test_a_key_whose_commit_may_be_collected_is_not_written_again(tmp_path: Path) -> None:
    with _graph(tmp_path) as graph:
        main = graph.branch("main")
        once = _once(tmp_path, main)
        assert once.find_commit(main) is None
        _write(main, "ada", KEY)
        for number in range(4):
            _write(main, f"p{number}")
        # The state of a graph whose oldest commits were let go.
        floors = Floors(open_objects(str(tmp_path / "company.omni")))
        floors.put(main.life, main.head.version)
        with pytest.raises(SnapshotGoneError, match="one may have had the key"):
            once.find_commit(main)


def test_what_is_done_is_known_in_its_own_graph_and_life_of_a_branch_only(tmp_path: Path) -> None:
    done = TargetRun("company/main", "company", "main", KEY, SUCCEEDED, "C", run_branch="in/s")
    with _graph(tmp_path) as graph, _graph(tmp_path, "other.omni") as other:
        review = graph.create_branch("review")
        first = _once(tmp_path, review)
        assert first.find_outcome() is None
        first.record_outcome(done)
        first.record_outcome(TargetRun("company/main", "company", "main", KEY, RUNNING))
        assert first.find_outcome() == done
        assert _once(tmp_path, graph.branch("main")).find_outcome() is None
        assert _once(tmp_path, other.create_branch("review"), "other.omni").find_outcome() is None
        graph.delete_branch("review")
        assert _once(tmp_path, graph.create_branch("review")).find_outcome() is None
