"""Decisions: who may do what, by which rule, and that a failure is never a denial."""

from __future__ import annotations

import pytest

from omnigraph.errors import PolicyDeniedError, PolicyFailedError
from omnigraph.policy import decisions
from omnigraph.policy.acts import Act, Action
from omnigraph.policy.decisions import Policy
from omnigraph.policy.grants import Grant, Permitted, find_permitted, list_grants
from omnigraph.policy.policy_bundle import Bundle, BundleKind, Rule, parse_bundle
from unit.policy.bundles import NOTHING, TEAM, compile_text

REVIEWED = """\
version: 1
groups: {stewards: [ines], owners: [olga], agents: [bot]}
protected_branches: [main]
rules:
  - id: merge
    allow:
      actors: {group: stewards}
      actions: [branch_merge]
      target_branch_scope: protected
      requires: {approvals: 1, from: stewards, checks: [quality]}
  - id: own
    allow: {actors: {group: owners}, actions: [branch_merge]}
"""


@pytest.mark.parametrize(
    ("actor", "act", "rule"),
    [
        ("act-jo", Act(Action.CHANGE, "main"), None),
        ("act-jo", Act(Action.CHANGE, "draft"), "analysts-write-drafts"),
        # A request without a branch satisfies no scope, and `any` is not one.
        ("act-jo", Act(Action.CHANGE), None),
        ("act-jo", Act(Action.READ), "analysts-read-anywhere"),
        ("act-jo", Act(Action.BRANCH_MERGE, "draft", "main"), None),
        ("act-ines", Act(Action.BRANCH_MERGE, "draft", "main"), "stewards-publish"),
        ("act-ines", Act(Action.BRANCH_MERGE, "main", "draft"), None),
        ("act-jo", Act(Action.BRANCH_CREATE, "main", "draft"), "analysts-fork"),
        ("act-ines", Act(Action.READ, "main"), None),
        ("bot", Act(Action.INVOKE_QUERY, query="find_user"), "agents-call-these"),
        ("bot", Act(Action.INVOKE_QUERY, query="report_sales"), "agents-call-these"),
        ("bot", Act(Action.INVOKE_QUERY, query="sales_report_"), None),
        ("bot", Act(Action.READ, "main", query="find_user"), "agents-call-these"),
        ("bot", Act(Action.READ, "main", query="other"), None),
        ("bot", Act(Action.READ, "main"), None),
        ("act-jo", Act(Action.INVOKE_QUERY, query="anything"), "analysts-query"),
        ("pat", Act(Action.READ, "main", type_name="Company"), "partners-see-companies"),
        ("pat", Act(Action.READ, "main", type_name="Person"), None),
        ("pat", Act(Action.READ, "main"), None),
        ("act-jo", Act(Action.READ, "main", type_name="Person"), "analysts-read-anywhere"),
    ],
)
def test_an_act_is_allowed_by_a_rule_that_covers_it_and_by_nothing_else(
    actor: str, act: Act, rule: str | None
) -> None:
    found = compile_text().decide(actor, act)
    assert (found.is_allowed, found.rule) == (rule is not None, rule)


@pytest.mark.parametrize("queries", ["", "queries: ['*'], ", "queries: ['**'], "])
def test_a_rule_carries_what_stored_queries_do_and_nothing_else(queries: str) -> None:
    rule = f"{{actors: {{group: g}}, actions: [invoke_query], {queries}carries: [read]}}"
    policy = compile_text(f"version: 1\ngroups: {{g: [ada]}}\nrules: [{{id: r, allow: {rule}}}]\n")
    assert policy.decide("ada", Act(Action.READ, "main", query="any")).is_allowed
    assert not policy.decide("ada", Act(Action.READ, "main")).is_allowed
    assert not policy.decide("ada", Act(Action.READ, "main", query="")).is_allowed


def test_the_matched_rule_is_the_smallest_by_name() -> None:
    more = "  - id: aaa\n    allow: {actors: {group: analysts}, actions: [read]}\n"
    assert compile_text(TEAM + more).decide("act-jo", Act(Action.READ, "main")).rule == "aaa"


def test_a_denial_names_the_action_the_branches_and_the_actor() -> None:
    with pytest.raises(PolicyDeniedError) as caught:
        compile_text().check("act-jo", Act(Action.BRANCH_MERGE, "draft", "main"))
    assert str(caught.value) == (
        "policy denies 'branch_merge' on branch 'draft' targeting branch 'main' to actor 'act-jo'"
    )


def test_an_actor_outside_all_groups_and_a_missing_actor_are_denied() -> None:
    policy = compile_text()
    with pytest.raises(PolicyDeniedError, match="unknown actor 'eve'"):
        policy.check("eve", Act(Action.READ, "main"))
    with pytest.raises(PolicyDeniedError, match="no actor is named"):
        policy.check(None, Act(Action.READ, "main"))


def test_a_failure_of_cedar_is_an_error_and_is_not_kept() -> None:
    policy = compile_text()
    # A lone surrogate is a text that Cedar cannot be asked about.
    for _ in range(2):
        with pytest.raises(PolicyFailedError):
            policy.decide("act-jo", Act(Action.READ, "\ud800"))


def test_a_bundle_that_cedar_refuses_is_an_error_and_no_denial() -> None:
    rule = Rule("r", "g", (Action.GRAPH_LIST,))
    wrong = Bundle("p.yaml", BundleKind.GRAPH, {"g": ("ada",)}, frozenset(), (rule,))
    with pytest.raises(PolicyFailedError, match=r"p\.yaml cannot be compiled"):
        Policy(wrong)


def test_an_act_that_does_not_fit_the_resource_is_an_error_and_no_denial() -> None:
    with pytest.raises(PolicyFailedError, match="'graph_list' cannot be decided"):
        compile_text().decide("act-jo", Act(Action.GRAPH_LIST))


def test_the_table_of_decisions_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decisions, "DECISIONS_MAX", 3)
    policy = compile_text()
    for number in range(5):
        assert policy.decide("act-jo", Act(Action.CHANGE, f"b{number}")).is_allowed
    for number in range(5):
        policy.decide(f"stranger-{number}", Act(Action.CHANGE, "b"))
    assert len(policy._known) == 3
    assert not policy.decide("act-jo", Act(Action.CHANGE, "main")).is_allowed


def test_who_can_do_something_is_what_the_gate_decides() -> None:
    policy = compile_text()
    found = find_permitted(policy, Act(Action.CHANGE, "draft"))
    assert found == [
        Permitted("act-jo", "analysts-write-drafts"),
        Permitted("act-kim", "analysts-write-drafts"),
    ]


def test_a_rule_with_requirements_allows_what_a_proposal_meets() -> None:
    policy = compile_text(REVIEWED)
    act = Act(Action.BRANCH_MERGE, "draft", "main")
    denied = policy.decide("ines", act)
    assert not denied.is_allowed
    assert denied.message.endswith(
        "without 1 approval from 'stewards', check 'quality' (rule 'merge')"
    )
    assert policy.decide("ines", act._replace(met=("merge",))).rule == "merge"
    assert not policy.decide("bot", act._replace(met=("merge",))).is_allowed
    assert not policy.decide("ines", act._replace(met=("other",))).is_allowed
    assert find_permitted(policy, act) == [
        Permitted("ines", "merge", "1 approval from 'stewards', check 'quality'"),
        Permitted("olga", "own"),
    ]
    # The rule is about protected branches alone.
    assert [each.rule for each in policy.list_requirements("main")] == ["merge"]
    assert policy.list_requirements("draft") == ()
    grants = list_grants(policy)
    limit = "proposals with 1 approval from 'stewards', check 'quality'"
    assert Grant("ines", Action.BRANCH_MERGE, "protected", limit) in grants
    assert Grant("ines", Action.BRANCH_MERGE, "protected") not in grants
    assert Grant("olga", Action.BRANCH_MERGE, "unprotected") in grants


def test_the_grants_of_two_bundles_show_who_gains_and_who_loses_what() -> None:
    before = list_grants(compile_text())
    after = list_grants(
        compile_text(TEAM.replace("[change], branch_scope: unprotected", "[change]"))
    )
    assert before - after == set()
    assert after - before == {
        Grant("act-jo", "change", "protected"),
        Grant("act-kim", "change", "protected"),
    }
    assert Grant("bot", "invoke_query", "", "query:find_user") in before
    assert Grant("bot", "read", "protected", "query:report_*") in before
    assert Grant("pat", "read", "unprotected", "type:Company") in before
    assert Grant("bot", "read", "protected") not in before
    assert list_grants(compile_text(NOTHING)) == set()


def test_a_server_bundle_lists_graphs() -> None:
    text = (
        "version: 1\ngroups: {g: [ada]}\n"
        "rules: [{id: r, allow: {actors: {group: g}, actions: [graph_list]}}]\n"
    )
    policy = Policy(parse_bundle(text, file="s.yaml", kind=BundleKind.SERVER))
    assert policy.decide("ada", Act(Action.GRAPH_LIST)).is_allowed
    assert list_grants(policy) == {Grant("ada", "graph_list")}
