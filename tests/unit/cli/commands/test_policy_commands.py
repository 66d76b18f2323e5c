"""`omnigraph policy` on a file, without a cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from unit.cli.small_company import Run
from unit.policy.bundles import TEAM

CASES = """\
version: 1
cases:
  - {id: draft, actor: act-jo, action: change, branch: draft, expect: allow}
  - {id: main, actor: act-jo, action: change, branch: main, expect: deny}
"""


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    path = tmp_path / "team.yaml"
    path.write_text(TEAM)
    return path


def test_validate_counts_rules_and_actors(run: Run, bundle: Path) -> None:
    shown = run("policy", "validate", "--file", bundle)
    assert (shown.exit_code, shown.stdout) == (0, f"{bundle}: valid, 7 rules, 5 actors\n")
    found = json.loads(run("policy", "validate", "--file", bundle, "--json").stdout)
    assert found == {"file": str(bundle), "kind": "graph", "rules": 7, "actors": 5}


def test_validate_lists_every_problem_with_its_place(run: Run, bundle: Path) -> None:
    bundle.write_text("version: 2\nrules: []\nextra: 1\n")
    shown = run("policy", "validate", "--file", bundle)
    assert shown.exit_code == 1
    assert f"{bundle}:1:1: version 2 is not known" in shown.stderr
    assert f"{bundle}:3:1: policy: unknown field 'extra'" in shown.stderr
    document = json.loads(run("policy", "validate", "--file", bundle, "--json").stdout)
    assert document["reason"] == "policy_invalid"
    assert [each["code"] for each in document["problems"]] == ["invalid_value", "unknown_field"]


def test_cases_that_hold_are_counted_and_others_are_listed(
    run: Run, bundle: Path, tmp_path: Path
) -> None:
    cases = tmp_path / "cases.yaml"
    cases.write_text(CASES)
    shown = run("policy", "test", "--file", bundle, "--tests", cases)
    assert (shown.exit_code, shown.stdout) == (0, "2 cases passed\n")
    cases.write_text(CASES.replace("deny", "allow"))
    shown = run("policy", "test", "--file", bundle, "--tests", cases)
    assert (shown.exit_code, shown.stdout) == (1, "1 of 2 cases failed\n")
    assert "main: expected allow, but policy denies 'change' on branch 'main'" in shown.stderr
    found = run("policy", "test", "--file", bundle, "--tests", cases, "--json")
    assert found.exit_code == 1
    assert [each["id"] for each in json.loads(found.stdout)["mismatches"]] == ["main"]


def test_explain_shows_the_matched_rule_and_ends_well_for_a_denial_too(
    run: Run, bundle: Path
) -> None:
    asked = ("policy", "explain", "--file", bundle, "--actor", "act-jo", "--action", "change")
    shown = run(*asked, "--branch", "draft")
    assert shown.exit_code == 0
    assert "decision: allow\n" in shown.stdout
    assert "matched_rule: analysts-write-drafts\n" in shown.stdout
    shown = run(*asked, "--branch", "main")
    assert shown.exit_code == 0
    assert "decision: deny\n" in shown.stdout
    assert "matched_rule" not in shown.stdout
    found = json.loads(run(*asked, "--branch", "main", "--json").stdout)
    assert found == {
        "decision": "deny",
        "actor": "act-jo",
        "action": "change",
        "branch": "main",
        "message": "policy denies 'change' on branch 'main' to actor 'act-jo'",
    }


def test_who_can_lists_actors_with_their_rules(run: Run, bundle: Path) -> None:
    asked = ("policy", "who-can", "--file", bundle, "--action", "read", "--branch", "main")
    assert [line.split()[0] for line in run(*asked).stdout.splitlines()] == ["act-jo", "act-kim"]
    shown = run(*asked, "--type", "Company", "--json")
    assert [each["actor"] for each in json.loads(shown.stdout)["actors"]] == [
        "act-jo",
        "act-kim",
        "pat",
    ]
    none = run("policy", "who-can", "--file", bundle, "--action", "admin")
    assert none.stdout == "no actor\n"


def test_an_action_that_is_misspelled_is_refused(run: Run, bundle: Path) -> None:
    shown = run("policy", "who-can", "--file", bundle, "--action", "raed")
    assert shown.exit_code == 2
    assert "did you mean 'read'?" in " ".join(shown.stderr.split())
