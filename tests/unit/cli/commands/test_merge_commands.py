"""`omnigraph branch merge`, `revert` and `cherry-pick`, for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import omnigraph
from unit.cli.small_company import Answer, Run


@pytest.fixture
def review(run: Run, store: Path, folder: Path) -> Path:
    """A graph with a branch on which eve has a year more and dan came."""
    assert run("branch", "create", "review", "--uri", store, "--quiet").exit_code == 0
    _load(run, store, folder, "review", {"name": "eve", "age": 42}, {"name": "dan"})
    return store


def _load(run: Run, store: Path, folder: Path, branch: str, *people: dict[str, object]) -> None:
    path = folder / "people.jsonl"
    path.write_text("".join(json.dumps({"type": "Person", "data": each}) + "\n" for each in people))
    flags = ("--mode", "merge", "--branch", branch, "--quiet")
    assert run("load", store, "--data", path, *flags).exit_code == 0


def _ages(answer: Answer, store: Path, folder: Path, branch: str = "main") -> dict[str, int]:
    rows = answer("query", "--store", store, "--branch", branch, "--query", folder / "everyone.gq")
    return {row["name"]: row["age"] for row in rows["rows"]}


def test_a_merge_goes_into_main_and_a_second_one_does_nothing(
    answer: Answer, review: Path, folder: Path
) -> None:
    first = answer("branch", "merge", "review", "--uri", review, "--as", "ada")
    assert {name: first[name] for name in ("source", "target", "outcome", "actor_id")} == {
        "source": "review",
        "target": "main",
        "outcome": "fast_forward",
        "actor_id": "ada",
    }
    assert first["commit"]["merged_parent_commit_id"] is not None
    assert "branch_deleted" not in first
    assert _ages(answer, review, folder)["eve"] == 42
    second = answer("branch", "merge", "review", "--uri", review)
    assert (second["outcome"], second["commit"]) == ("already_up_to_date", None)


def test_a_merge_says_what_it_did(run: Run, review: Path) -> None:
    shown = run("branch", "merge", "review", "--uri", review, "--delete-branch", "--quiet")
    assert shown.exit_code == 0, shown.output
    changes, merged, deleted = shown.stdout.splitlines()
    assert changes == "node  Person  +1  ~1  -0"
    assert merged.startswith("fast-forwarded main to review: commit ")
    assert deleted == "deleted branch review"


def test_a_branch_that_cannot_be_deleted_is_a_warning(
    run: Run, review: Path, answer: Answer
) -> None:
    shown = run(
        "branch", "merge", "main", "--into", "review", "--uri", review, "--delete-branch", "--json"
    )
    assert shown.exit_code == 0
    assert json.loads(shown.stdout)["branch_deleted"] is False
    assert "branch 'main' cannot be deleted" in shown.stderr
    assert answer("branch", "list", "--uri", review)["branches"] == ["main", "review"]


def test_conflicts_are_shown_with_all_three_states(run: Run, review: Path, folder: Path) -> None:
    _load(run, review, folder, "main", {"name": "eve", "age": 43})
    shown = run("branch", "merge", "review", "--uri", review, "--quiet")
    assert (shown.exit_code, shown.stdout) == (1, "")
    assert shown.stderr.splitlines() == [
        "error: 1 merge conflict: nothing was written",
        "divergent_update: Person 'eve' was changed on both sides: age",
        "       base  ours  theirs",
        "  age  41    43    42",
        "hint: change one side, or say which one counts: --prefer ours, or --prefer theirs",
    ]


def test_conflicts_are_a_document_for_programs(run: Run, review: Path, folder: Path) -> None:
    _load(run, review, folder, "main", {"name": "eve", "age": 43})
    shown = run("branch", "merge", "review", "--uri", review, "--json", "--quiet")
    assert shown.exit_code == 1
    document = json.loads(shown.stdout)
    (conflict,) = document["merge_conflicts"]
    assert conflict == {
        "entity_kind": "node",
        "type_name": "Person",
        "entity_id": "eve",
        "kind": "divergent_update",
        "message": "Person 'eve' was changed on both sides: age",
        "base": {"age": 41},
        "ours": {"age": 43},
        "theirs": {"age": 42},
        "properties": ["age"],
    }


def test_conflicts_have_the_time_of_day_wherever_they_are_shown(run: Run, tmp_path: Path) -> None:
    store, lines = tmp_path / "times.omni", tmp_path / "conflicts.jsonl"
    with omnigraph.create(str(store), schema="node P { k: String @key  at: DateTime? }") as graph:
        main = graph.branch()
        main.load({"P": [{"k": "x", "at": "2020-01-01T10:30:00Z"}]}, mode="append")
        review = graph.create_branch("review")
        for branch, year in ((main, 2021), (review, 2022)):
            at = f'datetime("{year}-01-01T10:30:00Z")'
            branch.mutate(f'query q() {{ update P set {{ at: {at} }} where k = "x" }}')
    merge = ("branch", "merge", "review", "--uri", store, "--quiet")
    for flags in ((), ("--dry-run",), ("--json",), ("--json", "--dry-run")):
        result = run(*merge, *flags)
        assert isinstance(result.exception, SystemExit), result.exception
        assert "2022-01-01T10:30:00.000Z" in result.output
    assert run(*merge, "--conflicts", lines).exit_code == 1
    lines.write_text(lines.read_text().replace('"take": null', '"take": "theirs"'))
    assert run(*merge, "--resolve", lines).exit_code == 0


def test_a_dry_run_tells_conflicts_and_writes_nothing(
    run: Run, answer: Answer, review: Path, folder: Path
) -> None:
    plan = answer("branch", "merge", "review", "--uri", review, "--dry-run")
    assert (plan["outcome"], plan["merge_conflicts"]) == ("fast_forward", [])
    _load(run, review, folder, "main", {"name": "eve", "age": 43})
    shown = run("branch", "merge", "review", "--uri", review, "--dry-run", "--quiet")
    assert shown.exit_code == 1
    assert "divergent_update: Person 'eve'" in shown.stdout
    assert shown.stdout.splitlines()[-1] == "1 conflict: nothing would be written"
    assert _ages(answer, review, folder) == {"ada": 36, "bob": None, "eve": 43}


@pytest.mark.parametrize(
    ("prefer", "age"), [(["theirs"], 42), (["ours"], 43), (["divergent_update=theirs"], 42)]
)
def test_a_side_can_be_preferred(
    run: Run, answer: Answer, review: Path, folder: Path, *, prefer: list[str], age: int
) -> None:
    _load(run, review, folder, "main", {"name": "eve", "age": 43})
    flags = [word for each in prefer for word in ("--prefer", each)]
    merged = answer("branch", "merge", "review", "--uri", review, *flags)
    assert merged["preferred"] == {"divergent_update": prefer[0].rpartition("=")[2]}
    assert _ages(answer, review, folder)["eve"] == age


def test_a_preference_for_all_and_one_for_a_kind_exclude_each_other(run: Run, review: Path) -> None:
    flags = ("--prefer", "ours", "--prefer", "divergent_update=theirs")
    shown = run("branch", "merge", "review", "--uri", review, *flags)
    assert shown.exit_code == 2


@pytest.mark.parametrize(
    ("prefer", "told"),
    [
        ("mine", "--prefer: 'mine' is neither 'ours' nor 'theirs'"),
        ("divergent_update=mine", "--prefer: 'mine' is neither 'ours' nor 'theirs'"),
        ("divergent_updat=ours", "did you mean 'divergent_update'?"),
    ],
)
@pytest.mark.parametrize("verb", ["branch merge", "revert", "cherry-pick"])
def test_a_side_that_does_not_exist_is_refused_before_the_graph_is_looked_for(
    run: Run, verb: str, prefer: str, told: str
) -> None:
    refused = run(*verb.split(), "review", "--uri", "nowhere.omni", "--prefer", prefer)
    assert refused.exit_code == 2
    shown = " ".join(refused.stderr.replace("│", " ").split())
    assert told in shown


def test_a_commit_is_picked_and_reverted(answer: Answer, review: Path, folder: Path) -> None:
    (newest,) = answer("commit", "list", review, "--branch", "review", "--limit", "1")["commits"]
    picked = answer("cherry-pick", newest["graph_commit_id"], "--uri", review, "-m", "dan comes")
    assert (picked["outcome"], picked["commit"]["message"]) == ("cherry_picked", "dan comes")
    assert _ages(answer, review, folder)["dan"] is None
    reverted = answer("revert", picked["commit"]["graph_commit_id"], "--uri", review)
    assert reverted["outcome"] == "reverted"
    assert "dan" not in _ages(answer, review, folder)
    again = answer("revert", picked["commit"]["graph_commit_id"], "--uri", review)
    assert (again["outcome"], again["commit"]) == ("nothing_to_do", None)


@pytest.mark.parametrize("verb", ["revert", "cherry-pick"])
def test_a_dry_run_of_a_revert_or_a_pick_answers_as_one_of_a_merge(
    answer: Answer, review: Path, folder: Path, verb: str
) -> None:
    (newest,) = answer("commit", "list", review, "--branch", "review", "--limit", "1")["commits"]
    branch = "review" if verb == "revert" else "main"
    asked = (verb, newest["graph_commit_id"], "--branch", branch, "--uri", review)
    plan = answer(*asked, "--dry-run")
    assert plan.keys() == answer("branch", "merge", "review", "--uri", review, "--dry-run").keys()
    base = "graph_commit_id" if verb == "revert" else "parent_commit_id"
    assert plan["base"]["graph_commit_id"] == newest[base]
    assert (plan["source"], plan["target"]) == (newest["graph_commit_id"], branch)
    assert (plan["merge_conflicts"], plan["conflict_count"]) == ([], 0)
    assert "dan" not in _ages(answer, review, folder)
    done = answer(*asked)
    assert (done["outcome"], done["changes"]) == (plan["outcome"], plan["changes"])
    assert answer(*asked, "--dry-run")["outcome"] == "nothing_to_do"


def test_a_dry_run_of_a_revert_tells_conflicts_and_writes_nothing(
    run: Run, answer: Answer, review: Path, folder: Path
) -> None:
    (newest,) = answer("commit", "list", review, "--branch", "review", "--limit", "1")["commits"]
    _load(run, review, folder, "review", {"name": "eve", "age": 50})
    undo = ("revert", newest["graph_commit_id"], "--branch", "review", "--uri", review)
    shown = run(*undo, "--dry-run")
    assert (shown.exit_code, shown.stderr) == (1, "")
    assert "Person 'eve' was changed by the commit, and again since: age" in shown.stdout
    assert shown.stdout.splitlines()[-1] == "1 conflict: nothing would be written"
    assert _ages(answer, review, folder, "review")["eve"] == 50
    assert run(*undo, "--dry-run", "--prefer", "ours").exit_code == 0


def test_conflicts_of_a_revert_speak_of_the_commit(
    run: Run, answer: Answer, review: Path, folder: Path
) -> None:
    _load(run, review, folder, "review", {"name": "eve", "age": 50})
    (last,) = answer("commit", "list", review, "--branch", "review", "--limit", "1")["commits"]
    _load(run, review, folder, "review", {"name": "eve", "age": 51})
    undo = ("revert", last["graph_commit_id"], "--branch", "review", "--uri", review)
    shown = run(*undo, "--quiet")
    assert shown.exit_code == 1
    lines = shown.stderr.splitlines()
    assert lines[0] == "error: 1 revert conflict: nothing was written"
    assert "Person 'eve' was changed by the commit, and again since: age" in lines[1]
    assert "what the revert makes of it with --prefer theirs" in lines[-1]
    assert answer(*undo, "--prefer", "ours")["outcome"] == "nothing_to_do"


def test_a_statement_merges_too(answer: Answer, review: Path) -> None:
    merged = answer("mutate", "--store", review, "-e", "branch merge review into main")
    assert merged["outcome"] == "fast_forward"


def test_a_tag_can_be_merged_branched_from_and_undone(
    run: Run, answer: Answer, review: Path, folder: Path
) -> None:
    assert run("tag", "create", "rel", "--at", "review", "--uri", review, "--quiet").exit_code == 0
    answer("branch", "create", "fix", "--from", "rel", "--uri", review)
    assert _ages(answer, review, folder, "fix")["eve"] == 42
    merged = answer("branch", "merge", "rel", "--uri", review)
    assert (merged["source"], merged["outcome"]) == ("rel", "fast_forward")
    assert answer("revert", "rel", "--uri", review)["outcome"] == "reverted"
    assert _ages(answer, review, folder)["eve"] == 41


def test_options_that_would_mean_nothing_are_refused(run: Run, review: Path) -> None:
    flags = ("--dry-run", "--delete-branch")
    shown = run("branch", "merge", "review", "--uri", review, *flags)
    assert shown.exit_code == 2
    assert "--dry-run makes no commit" in shown.output
    for verb in ("revert", "cherry-pick"):
        shown = run(verb, "review", "--uri", review, "--dry-run", "-m", "no commit has it")
        assert shown.exit_code == 2
    kinds = ("--prefer", "divergent_update=ours", "--prefer", "divergent_update=theirs")
    assert run("branch", "merge", "review", "--uri", review, *kinds).exit_code == 2
