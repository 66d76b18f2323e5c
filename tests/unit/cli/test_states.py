"""What reads and diffs take for a state: everything that the history shows of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from unit.cli.small_company import Answer, Run

COUNT = "query q() { match { $p: Person } return { count($p) as people } }"


@pytest.fixture
def grown(run: Run, store: Path, folder: Path) -> Path:
    """A graph to which two people came one after the other, within a second or so."""
    for name in ("dan", "zoe"):
        params = f'{{"name": "{name}"}}'
        added = run(
            *("mutate", "--store", store, "--query", folder / "add.gq", "--params", params),
        )
        assert added.exit_code == 0, added.output
    return store


def people(run: Run, store: Path, state: str) -> int:
    result = run("query", "--store", store, "-e", COUNT, "--snapshot", state, "--format", "csv")
    assert result.exit_code == 0, result.output
    return int(result.stdout.splitlines()[1])


def test_what_a_listing_shows_of_a_commit_finds_it_again(run: Run, grown: Path) -> None:
    lines = run("commit", "list", grown).stdout.splitlines()
    cells = [line.split()[:3] for line in lines]
    for (commit, version, time), expected in zip(cells, (5, 4, 3, 0), strict=True):
        assert people(run, grown, commit) == expected
        assert people(run, grown, version) == expected
        assert people(run, grown, time) == expected
        for state in (commit, version, time):
            shown = run("diff", state, "main", "--uri", grown)
            assert f"-> main version 3 ({cells[0][0]})" in shown.stdout
            assert shown.stdout.startswith(f"main version {version} ({commit})")


def test_a_time_in_whole_seconds_covers_its_second(run: Run, answer: Answer, grown: Path) -> None:
    newest = answer("commit", "list", grown)["commits"][0]["created_at"]
    time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=newest // 1_000_000)
    assert people(run, grown, time.strftime("%Y-%m-%dT%H:%M:%SZ")) == 5
    assert people(run, grown, time.isoformat()) == 5


def test_a_date_is_its_start(run: Run, grown: Path) -> None:
    now = datetime.now(UTC)
    assert people(run, grown, f"{now + timedelta(days=1):%Y-%m-%d}") == 5
    early = run("query", "--store", grown, "-e", COUNT, "--snapshot", f"{now:%Y-%m-%d}")
    assert early.exit_code == 1
    assert "no commit as old as" in early.stderr


def test_names_win_over_versions_and_dates(run: Run, grown: Path) -> None:
    for name, version in (("0", "2"), ("2020-01-01", "1")):
        commit = run("commit", "list", grown).stdout.splitlines()[3 - int(version)].split()[0]
        assert run("tag", "create", name, "--at", commit, "--uri", grown).exit_code == 0
    assert people(run, grown, "0") == 4
    assert people(run, grown, "2020-01-01") == 3
    assert people(run, grown, "main") == 5


def test_what_names_no_state_is_refused(run: Run, grown: Path) -> None:
    for state, told in (
        ("nope", "'nope' is not a branch, a tag or a commit"),
        ("99", "version 99"),
    ):
        result = run("query", "--store", grown, "-e", COUNT, "--snapshot", state)
        assert result.exit_code == 1
        assert told in result.stderr
