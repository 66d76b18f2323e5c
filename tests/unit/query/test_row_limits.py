from __future__ import annotations

import pytest

from omnigraph.errors import CompileError
from omnigraph.query.logical_plan import ReadPlan
from omnigraph.query.query_compiler import compile_query
from omnigraph.query.query_explain import explain_plan, format_expression
from omnigraph.query.rewrites.guard_types import guard_types
from omnigraph.query.row_limits import RowLimits, compile_guards, compile_row_condition
from omnigraph.query.typed_tree import Mutation, UpdateNodes
from omnigraph.schema import load_catalog

CATALOG = load_catalog("""
node Person { name: String @key  age: I64?  photo: Blob? }
node Company { name: String @key  public: Bool?  owners: [String]? }
edge Knows: Person -> Person
edge WorksFor: Person -> Company
edge Owns: Company -> Company
""")
PUBLIC = RowLimits("", (), (("Company", ("$it.public = true",)),))


def plan_of(match: str, limits: RowLimits = PUBLIC, returned: str = "1 as x") -> ReadPlan:
    text = f"query q() {{ match {{ {match} }} return {{ {returned} }} }}"
    plan = compile_query(text, CATALOG, guards=compile_guards(limits, CATALOG)).plan
    assert isinstance(plan, ReadPlan)
    return plan


def shown(plan: ReadPlan, *, tree: str = "plan") -> list[str]:
    rows = [row for row in explain_plan(plan) if row.tree == tree]
    found = [f"{row.node} {row.detail}" for row in reversed(rows)][1:]
    return found if tree != "plan" else found[:-1]


def guards_of(plan: ReadPlan, name: str) -> list[str]:
    operator = plan.root
    while type(operator).__name__ != name:
        operator = operator.input  # type: ignore[union-attr]  # until it is there
    return [each.type_name for each in operator.guards]  # type: ignore[union-attr]  # as above


def test_scans_and_traversals_to_a_guarded_type_have_its_condition() -> None:
    assert shown(plan_of("$p: Person  $p worksFor $c")) == [
        "Scan $p: Person",
        "Expand $p [WorksFor->] $c: Company; where ($c.public = true)",
    ]


def test_a_condition_stands_before_those_of_the_query() -> None:
    assert shown(plan_of('$c: Company { name: "a" }')) == [
        'Scan $c: Company; where ($c.public = true) and ($c.name = "a")'
    ]


def test_blocks_are_guarded_too() -> None:
    plan = plan_of("$p: Person  not { $p worksFor $c }")
    assert shown(plan, tree="block 1") == [
        "Expand $p [WorksFor->] $c: Company; where ($c.public = true)"
    ]


def test_stages_are_guarded_too() -> None:
    text = "query q() { match { $c: Company } with { $c } match { $d: Company } return { $d } }"
    guards = compile_guards(PUBLIC, CATALOG)
    plan = compile_query(text, CATALOG, guards=guards).plan
    assert isinstance(plan, ReadPlan)
    found = [row.detail for row in explain_plan(plan) if row.node == "Scan"]
    assert [each.partition(";")[0] for each in found] == ["$d: Company", "$c: Company"]
    assert all("public = true" in each for each in found)


@pytest.mark.parametrize(
    ("match", "operator"),
    [
        ("$c: Company  $c owns{1,3} $d", "Expand"),
        ("$c: Company  $d: Company  path $p = $c owns{1,3} $d", "PathExpand"),
        ("for $n, $o in degrees(edges: owns)", "TableFunction"),
    ],
)
def test_what_passes_nodes_knows_the_guards_of_their_types(match: str, operator: str) -> None:
    assert guards_of(plan_of(match), operator) == ["Company"]


def test_one_hop_needs_no_more_than_its_condition() -> None:
    assert guards_of(plan_of("$c: Company  $c owns $d"), "Expand") == []


def test_nodes_of_several_types_are_tested_by_the_guard_of_their_own() -> None:
    assert shown(plan_of("$x: *")) == [
        "Scan $x: (Company | Person); where (Company where $it.public = true)"
    ]


def test_several_rules_allow_what_one_of_them_does() -> None:
    limits = RowLimits("", (), (("Company", ("$it.public = true", '$it.name = "a"')),))
    (guard,) = compile_guards(limits, CATALOG)
    assert format_expression(guard.condition) == '($it.public = true) or ($it.name = "a")'


def test_the_actor_and_the_groups_are_constants() -> None:
    texts = ('$actor in $it.owners or "board" in $groups',)
    (guard,) = compile_guards(RowLimits("pat", ("a", "b"), (("Company", texts),)), CATALOG)
    shown = '("pat" in $it.owners) or ("board" in ["a", "b"])'
    assert format_expression(guard.condition) == shown


def test_a_condition_that_always_holds_is_none() -> None:
    limits = RowLimits("pat", (), (("Company", ('$actor = "pat"',)),))
    assert compile_guards(limits, CATALOG) == ()


def test_a_type_that_a_schema_lacks_has_no_guard() -> None:
    assert compile_guards(RowLimits("", (), (("Gone", ("$it.x = 1",)),)), CATALOG) == ()


def test_the_rule_does_nothing_to_its_own_output() -> None:
    for match in ("$c: Company  $c owns{1,3} $d", "$x: *", "for $n in degrees(edges: owns)"):
        plan = plan_of(match)
        assert guard_types(plan, CATALOG) == plan


def test_updates_and_deletes_by_conditions_touch_only_what_is_seen() -> None:
    text = 'query m() { update Company set { public: true } where name = "a" }'
    plan = compile_query(text, CATALOG, guards=compile_guards(PUBLIC, CATALOG)).plan
    assert isinstance(plan, Mutation)
    (statement,) = plan.statements
    assert isinstance(statement, UpdateNodes)
    assert len(statement.conditions) == 2


@pytest.mark.parametrize(
    ("type_name", "text", "message"),
    [
        ("Nothing", "$it.public", "unknown node type 'Nothing'"),
        ("Knows", "$it.public", "Knows is an edge type"),
        ("Company", "$it.publik = true", "no property 'publik'"),
        ("Company", "$it.name", "Bool"),
        ("Company", "$it", "cannot use '$it' here"),
        ("Company", "$x.public = true", "reads the properties and '@id' of $it alone"),
        ("Company", "$it.@type = 'a'", ""),
        ("Company", 'search($it.name, "a")', "no such name, search or aggregate"),
        ("Company", "exists { $it owns $x }", ""),
        ("Company", "$it.public = true }", "end of the condition"),
        ("Company", "$it.public = true\n$it.public = false", "end of the condition"),
        ("Company", "count($it) > 1", ""),
        ("Person", "$it.photo is null", "is a Blob"),
    ],
)
def test_a_condition_that_does_not_fit_is_refused(type_name: str, text: str, message: str) -> None:
    with pytest.raises(CompileError) as refused:
        compile_row_condition(text, type_name, CATALOG)
    assert message in str(refused.value)
