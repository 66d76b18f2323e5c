"""Bundles: what they must not say is refused, all of it at once and at its place."""

from __future__ import annotations

import pytest

from omnigraph.errors import PolicyInvalidError, Problem
from omnigraph.policy.acts import Action
from omnigraph.policy.policy_bundle import BundleKind, Scope, parse_bundle
from unit.policy.bundles import TEAM

MERGE = "{actors: {group: g}, actions: [branch_merge],"
HEAD = "version: 1\ngroups: {g: [ada]}\nrules:\n  - id: r\n    allow: "


def _problems(text: str, kind: BundleKind | None = None) -> list[Problem]:
    with pytest.raises(PolicyInvalidError) as caught:
        parse_bundle(text, file="p.yaml", kind=kind)
    return list(caught.value.problems)


def test_a_bundle_is_read_with_its_groups_scopes_and_limits() -> None:
    bundle = parse_bundle(TEAM, file="team.yaml")
    rules = {rule.id: rule for rule in bundle.rules}
    assert bundle.actors == {"act-ines", "act-jo", "act-kim", "bot", "pat"}
    assert bundle.protected_branches == {"main"}
    assert rules["analysts-write-drafts"].scope is Scope.UNPROTECTED
    assert rules["agents-call-these"].queries == ("find_user", "report_*")
    assert rules["agents-call-these"].carries == (Action.READ,)
    assert rules["partners-see-companies"].types == ("Company",)


@pytest.mark.parametrize(
    ("allow", "message"),
    [
        (
            "{actors: {group: g}, actions: [read], branch_scpoe: any}",
            "unknown field 'branch_scpoe'",
        ),
        ("{actors: {group: h}, actions: [read]}", "unknown group 'h'"),
        ("{actors: {group: g}, actions: []}", "'actions' is empty"),
        ("{actors: {group: g}, actions: [reed]}", "'reed' is not a value of actions"),
        (
            "{actors: {group: g}, actions: [invoke_query], branch_scope: any}",
            "has no 'branch_scope'",
        ),
        ("{actors: {group: g}, actions: [admin], branch_scope: any}", "has no 'branch_scope'"),
        (
            "{actors: {group: g}, actions: [read], target_branch_scope: any}",
            "'read' has no 'target",
        ),
        (
            "{actors: {group: g}, actions: [read], branch_scope: any, target_branch_scope: any}",
            "exclude each other",
        ),
        ("{actors: {group: g}, actions: [read], branch_scope: all}", "is not a value of branch_sc"),
        ("{actors: {group: g}, actions: [read], queries: [q]}", "'read' has no 'queries'"),
        ("{actors: {group: g}, actions: [read], carries: [read]}", "'read' has no 'carries'"),
        (
            "{actors: {group: g}, actions: [invoke_query], carries: [admin]}",
            "is not a value of car",
        ),
        ("{actors: {group: g}, actions: [admin], types: [T]}", "'admin' has no 'types'"),
        ("{actors: {group: g}, actions: [read], types: {T: al}}", "are `all`, or those of"),
        ("{actors: {group: g}, actions: [read], types: {T: true}}", "are `all`, or those of"),
        ("{actors: {group: g}, actions: [read], types: {T: ~}}", "are `all`, or those of"),
        ("{actors: {group: g}, actions: [read], types: {T: [a]}}", "are `all`, or those of"),
        ("{actors: {group: g}, actions: [read], types: {T: $it.a =}}", "the condition of type"),
        (
            "{actors: {group: g}, actions: [read, change], types: {T: $it.a = 1}}",
            "'change' cannot be limited to rows",
        ),
        ("{actors: {group: g}, actions: [read], types: []}", "names of types"),
        ("{actors: {group: g}, actions: [read], types: ~}", "names of types"),
        ("{actors: {group: g}, actions: [read], types: ['*']}", "names of types"),
        ("{actors: {group: g}, actions: [read], types: [A, [B]]}", "names of types"),
        ("{actors: {group: g}, actions: [invoke_query], queries: []}", "'queries' is empty"),
        ("{actors: {group: g}, actions: [invoke_query], queries: [a.b]}", "'a.b' is not the name"),
        ("{actors: {group: g}, actions: [read], where: x}", "unknown field 'where'"),
        ("{actors: {group: g}, actions: [read], needs: {}}", "unknown field 'needs'"),
        (f"{MERGE} requires: {{}}}}", "requires: nothing is required"),
        (f"{MERGE} requires: {{approvals: -1}}}}", "'approvals' expects: integer"),
        (f"{MERGE} requires: {{approvals: 1, from: h}}}}", "unknown group 'h'"),
        (f"{MERGE} requires: {{review: 1}}}}", "unknown field 'review'"),
        (
            "{actors: {group: g}, actions: [read], requires: {approvals: 1}}",
            "'read' has no 'requires'",
        ),
        ("{actors: {group: g}, actions: [read], effect: deny}", "unknown field 'effect'"),
        ("{actors: {user: ada}, actions: [read]}", "unknown field 'user'"),
        ("{actions: [read]}", "'actors' is missing"),
        ("{actors: {group: [g]}, actions: [[read]]}", "'actions' expects"),
        ("{actors: 5, actions: {}}", "expects"),
    ],
)
def test_a_rule_that_could_be_misunderstood_is_refused(allow: str, message: str) -> None:
    assert any(message in each.message for each in _problems(HEAD + allow + "\n"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("version: 2\nrules: []\n", "version 2 is not known"),
        ("rules: []\n", "'version' is missing"),
        ("version: 1\nrules: []\nextra: 1\n", "unknown field 'extra'"),
        ("version: 1\ngroups: {g: []}\nrules: []\n", "a list of actors"),
        ("version: 1\ngroups: {g: ['']}\nrules: []\n", "is empty"),
        ("version: 1\ngroups: {'': [a]}\nrules: []\n", "needs a name"),
        ("version: 1\ngroups: {g: [ada, ~]}\nrules: []\n", "is empty"),
        ('version: 1\ngroups: {g: ["ada\\nmallory: allow"]}\nrules: []\n', "cannot be shown"),
        ('version: 1\ngroups: {"g\\e[2J": [ada]}\nrules: []\n', "cannot be shown"),
        (HEAD.replace("id: r", 'id: "r\\n"') + "{}\n", "cannot be shown"),
        ("version: 1\nprotected_branches: ['release/*']\nrules: []\n", "not the name of a branch"),
        ("version: 1\nprotected_branches: [' main']\nrules: []\n", "not the name of a branch"),
        ("version: 1\nprotected_branches: ['']\nrules: []\n", "is empty"),
        ("version: 1\nrules: []\nrules: []\n", "given twice"),
        (HEAD.replace("id: r", "id: ' '") + "{actors: {group: g}, actions: [read]}\n", "is empty"),
    ],
)
def test_a_bundle_that_could_be_misunderstood_is_refused(text: str, message: str) -> None:
    assert any(message in each.message for each in _problems(text))


def test_two_rules_of_one_id_are_refused_and_all_problems_come_together() -> None:
    rule = "  - id: r\n    allow: {actors: {group: h}, actions: [reed]}\n"
    found = _problems("version: 3\ngroups: {g: [a]}\nrules:\n" + rule + rule)
    assert [(each.line, each.code) for each in found] == [
        (1, "invalid_value"),
        (5, "unknown_group"),
        (5, "invalid_value"),
        (6, "duplicate_rule"),
        (7, "unknown_group"),
        (7, "invalid_value"),
    ]


@pytest.mark.parametrize(
    ("action", "kind", "place"),
    [
        ("graph_list", BundleKind.GRAPH, "applies to the cluster"),
        ("read", BundleKind.SERVER, "applies to a graph"),
    ],
)
def test_an_action_of_the_other_kind_of_bundle_names_the_right_place(
    action: str, kind: BundleKind, place: str
) -> None:
    (found,) = _problems(HEAD + f"{{actors: {{group: g}}, actions: [{action}]}}\n", kind)
    assert found.hint is not None
    assert place in found.hint


def test_a_rule_cannot_mix_actions_of_graphs_and_of_the_server() -> None:
    (found,) = _problems(HEAD + "{actors: {group: g}, actions: [read, graph_list]}\n")
    assert found.code == "wrong_bundle_kind"


def test_the_kind_of_a_bundle_that_is_not_given_is_that_of_its_rules() -> None:
    text = HEAD + "{actors: {group: g}, actions: [graph_list]}\n"
    assert parse_bundle(text, file="p.yaml").kind is BundleKind.SERVER
