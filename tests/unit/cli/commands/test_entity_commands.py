"""`history` and `blame`: one entity through time."""

from __future__ import annotations

from pathlib import Path

from unit.cli.small_company import Answer, Run

SET = "query q($n: I32) { update Person set { age: $n } where name = 'ada' }".replace("'", '"')


def test_the_history_of_an_entity_for_people_and_programs(
    run: Run, answer: Answer, store: Path
) -> None:
    changed = answer("mutate", "--store", store, "-e", SET, "--params", '{"n": 37}')
    commit = changed["commit"]["graph_commit_id"]
    document = answer("history", "Person", "ada", "--uri", store)
    assert [version["op"] for version in document["versions"]] == ["update", "insert"]
    newest = document["versions"][0]
    assert newest["commit"]["graph_commit_id"] == commit
    assert newest["changed"] == ["age"]
    assert newest["before"]["properties"]["age"] == 36
    shown = run("history", "Person", "ada", "--store", store, "--limit", 1).stdout.splitlines()
    assert shown[0].startswith(f"commit {commit}  ")
    assert shown[1:] == ["  ~ node Person ada", "      age: 36 -> 37"]


def test_blame_shows_the_value_and_the_commit_of_each_property(
    run: Run, answer: Answer, store: Path
) -> None:
    changed = answer("mutate", "--store", store, "-e", SET, "--params", '{"n": 37}')
    document = answer("blame", "Person", "ada", "--uri", store)
    assert document["properties"]["age"] == changed["commit"]
    assert (
        document["properties"]["name"]["graph_commit_id"] == changed["commit"]["parent_commit_id"]
    )
    lines = run("blame", "Person", "ada", "--uri", store).stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["age", "name", "photo"]
    assert lines[0].split()[1:4] == ["37", "commit", changed["commit"]["graph_commit_id"]]


def test_an_entity_that_is_not_there_fails(run: Run, store: Path) -> None:
    for verb in ("history", "blame"):
        missing = run(verb, "Person", "zed", "--uri", store)
        assert (missing.exit_code, missing.stdout) == (1, "")
        assert "there is no Person 'zed'" in missing.stderr
        assert run(verb, "Nobody", "zed", "--uri", store).exit_code == 1
        assert run(verb, "Person", "ada", "--kind", "edge", "--uri", store).exit_code == 1
        assert run(verb, "Person", "ada", "--kind", "thing", "--uri", store).exit_code == 2
