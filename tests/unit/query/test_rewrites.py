from __future__ import annotations

import pytest

from omnigraph.query.logical_plan import Expand, ReadPlan, Scan
from omnigraph.query.query_compiler import compile_query
from omnigraph.query.query_explain import explain_plan, format_expression
from omnigraph.query.query_lowering import lower_query
from omnigraph.query.rewrites import RULES, Rule, rewrite
from omnigraph.query.rewrites.choose_root import choose_root
from omnigraph.query.rewrites.fold_constants import fold_constants
from omnigraph.query.rewrites.prune_properties import prune_properties
from omnigraph.query.rewrites.push_filters import push_filters
from omnigraph.query.rewrites.split_conjunctions import split_conjunctions
from omnigraph.query.rewrites.trim_sorts import trim_sorts
from omnigraph.query.tree_walk import chain_of
from omnigraph.query.typed_tree import DeleteNodes, Mutation, UpdateNodes
from omnigraph.schema import load_catalog

CATALOG = load_catalog("""
node Person {
  name: String @key
  nick: String?
  age: I64?
  photo: Blob?
  face: Vector(2)?
}
node Place { country: String  city: String  @key(country, city) }
edge Knows: Person -> Person { since: Date? }
edge Likes: Person -> Person
edge LivesIn: Person -> Place
""")


def lowered(match: str, rest: str = "return { $p.age }", parameters: str = "") -> ReadPlan:
    text = f"query q({parameters}) {{ match {{ {match} }} {rest} }}"
    plan = lower_query(compile_query(text, CATALOG).checked)
    assert isinstance(plan, ReadPlan)
    return plan


def apply(plan: ReadPlan, *rules: Rule) -> ReadPlan:
    for rule in rules:
        plan = rule(plan, CATALOG)
    return plan


def shown(plan: ReadPlan, *, tree: str = "plan") -> list[str]:
    """The operators between the leaf and the result, leaf first."""
    rows = [row for row in explain_plan(plan) if row.tree == tree]
    return [f"{row.node} {row.detail}" for row in reversed(rows)][1:]


# ---- fold_constants ----


@pytest.mark.parametrize(
    ("condition", "folded"),
    [
        ("1 < 2", None),
        ('"a" = "b"', "false"),
        ("2 >= 2.5", "false"),
        ("true and $p.age > 1", "$p.age > 1"),
        ("false and $p.age > 1", "false"),
        ("true or $p.age > 1", None),
        ("false or $p.age > 1", "$p.age > 1"),
        ("not not $p.age > 1", "$p.age > 1"),
        ("not (1 < 2)", "false"),
        ("$p.name is null", "false"),
        ("$p.name is not null", None),
        ("$p.age is null", "$p.age is null"),
        ("(1 > 2) = ($p.age > 1)", "false = ($p.age > 1)"),
        ("($p.age > 1 and $p.age < 5) and 1 < 2", "($p.age > 1) and ($p.age < 5)"),
        ("$flag or 1 > 2", "$flag"),
        ('false and search($p.nick, "a")', 'false and search($p.nick, "a")'),
    ],
)
def test_constant_parts_are_evaluated(condition: str, folded: str | None) -> None:
    plan = lowered(f"$p: Person  {condition}", parameters="$flag: Bool?")
    filters = [line for line in shown(apply(plan, fold_constants)) if line.startswith("Filter")]
    assert filters == ([] if folded is None else [f"Filter {folded}"])


def test_conditions_of_bindings_and_blocks_are_folded_too() -> None:
    plan = apply(lowered("$p: Person  not { $p knows $x  1 < 2 and $x.age > 1 }"), fold_constants)
    assert shown(plan, tree="block 1") == ["Expand $p [Knows->] $x: Person", "Filter $x.age > 1"]


# ---- split_conjunctions ----


def test_a_conjunction_becomes_one_filter_per_conjunct() -> None:
    plan = lowered("$p: Person  $p.age > 1 and ($p.nick is null and $p.age < 9)")
    assert shown(apply(plan, split_conjunctions))[:-1] == [
        "Scan $p: Person",
        "Filter $p.age > 1",
        "Filter $p.nick is null",
        "Filter $p.age < 9",
    ]


def test_a_disjunction_is_not_split() -> None:
    plan = lowered("$p: Person  $p.age > 1 or $p.nick is null")
    assert apply(plan, split_conjunctions) == plan


# ---- push_filters ----


def test_filters_on_one_node_move_to_where_it_is_bound() -> None:
    plan = lowered("$p: Person { age: 3 }  $p knows $x  $x.age > 1  $p.nick is null")
    assert shown(apply(plan, push_filters))[:-1] == [
        "Scan $p: Person; where ($p.age = 3) and ($p.nick is null)",
        "Expand $p [Knows->] $x: Person; where ($x.age > 1)",
    ]


def test_filters_on_several_variables_or_on_an_edge_stay() -> None:
    plan = lowered('$p: Person  $p $k:knows $x  $x.age > $p.age  $k.since > date("2020-01-01")')
    assert apply(plan, push_filters) == plan


def test_text_predicates_are_pushed_like_other_filters() -> None:
    plan = lowered('$p: Person  search($p.name, "ann")')
    assert shown(apply(plan, push_filters))[0] == ('Scan $p: Person; where search($p.name, "ann")')


def test_filters_inside_a_block_move_to_the_variables_of_the_block_only() -> None:
    plan = lowered("$p: Person  not { $p knows $x  $x.age > 1  $p.age > 2 }")
    assert shown(apply(plan, push_filters), tree="block 1") == [
        "Filter $p.age > 2",
        "Expand $p [Knows->] $x: Person; where ($x.age > 1)",
    ]


# ---- choose_root ----


def test_matching_starts_at_the_node_whose_key_is_given() -> None:
    plan = lowered('$p: Person  $p knows $x  $x likes $y  $y.name = "ann"')
    assert shown(apply(plan, push_filters, choose_root))[:-1] == [
        'Scan $y: Person; where ($y.name = "ann")',
        "Expand $y [<-Likes] $x: Person",
        "Expand $x [<-Knows] $p: Person",
    ]


def test_matching_starts_at_the_node_whose_id_is_given() -> None:
    plan = lowered("$p: Person  $p <knows> $x  $x.@id = $id", parameters="$id: String")
    assert shown(apply(plan, push_filters, choose_root))[:-1] == [
        "Scan $x: Person; where ($x.@id = $id)",
        "Expand $x [<Knows>] $p: Person",
    ]


def test_a_part_of_a_key_is_not_enough() -> None:
    half = lowered('$p: Person  $p livesIn $c  $c.city = "Oslo"')
    assert shown(apply(half, push_filters, choose_root))[0] == "Scan $p: Person"
    whole = lowered('$p: Person  $p livesIn $c  $c.city = "Oslo"  "no" = $c.country')
    assert shown(apply(whole, push_filters, choose_root))[0].startswith("Scan $c: Place; where")


def test_a_key_compared_with_another_node_gives_nothing() -> None:
    plan = apply(lowered("$p: Person  $p knows $x  $x.name = $p.nick"), push_filters)
    assert apply(plan, choose_root) == plan


def test_other_tests_and_closing_traversals_keep_their_meaning_after_a_new_root() -> None:
    plan = lowered(
        "$p: Person  $p knows $x  $x likes $p  $p.age > $x.age  not { $p likes $_ }"
        ' $x: Person { name: "x" }'
    )
    assert shown(apply(plan, choose_root))[:-1] == [
        'Scan $x: Person; where ($x.name = "x")',
        "Expand $x [<-Knows] $p: Person",
        "Filter $p.age > $x.age",
        "Exists block 1 has no row",
        "Expand $x [Likes->] $p; closing",
    ]


def test_a_block_that_is_connected_to_its_outer_row_starts_there() -> None:
    plan = apply(lowered('$p: Person  exists { $p knows $x  $x.name = "x" }'), push_filters)
    block = shown(apply(plan, choose_root), tree="block 1")
    assert block == ['Expand $p [Knows->] $x: Person; where ($x.name = "x")']


# ---- trim_sorts ----


@pytest.mark.parametrize(
    ("order", "kept"),
    [
        ("$p.age", "$p.age, $p.@id, $x.@id"),
        ("$p.name desc", "$p.name desc, $x.@id"),
        ("$p.@id, $p.age, $x.age", "$p.@id, $x.age, $x.@id"),
        ("$p.age, $p.age desc", "$p.age, $p.@id, $x.@id"),
        ("$flag, $p.age", "$p.age, $p.@id, $x.@id"),
        ("$x.name, $p.name", "$x.name, $p.name"),
    ],
)
def test_sort_keys_that_change_nothing_are_dropped(order: str, kept: str) -> None:
    rest = f"return {{ $p.age, $flag }} order {{ {order} }}"
    plan = lowered("$p: Person  $p knows $x", rest, "$flag: Bool")
    assert shown(apply(plan, trim_sorts))[-2] == f"Sort {kept}"


def test_ordering_by_a_node_is_ordering_by_its_id() -> None:
    plan = lowered("$p: Person", "return { $p } order { $p desc }")
    assert shown(apply(plan, trim_sorts))[-2] == "Sort $p.@id desc"


def test_edges_of_several_types_are_told_apart_by_type_and_id() -> None:
    plan = lowered("$p: Person  $p $e:(knows | likes) $x", "return { $p.age } order { $e.@id }")
    assert shown(apply(plan, trim_sorts))[-2] == "Sort $e.@id, $e.@type, $p.@id, $x.@id"


def test_group_keys_decide_the_order_of_groups() -> None:
    rest = "return { $p.age, $p.nick, count($p) as n } order { $p.nick, $p.age, n }"
    assert shown(apply(lowered("$p: Person", rest), trim_sorts))[-1] == "Sort p.nick, p.age"


# ---- prune_properties ----


def properties(plan: ReadPlan) -> dict[str, list[str]]:
    pruned = apply(plan, prune_properties)
    found: dict[str, list[str]] = {}
    for operator in chain_of(pruned.root):
        match operator:
            case Scan():
                found[operator.variable] = sorted(operator.properties or ())
            case Expand():
                found[operator.target] = sorted(operator.properties or ())
                if operator.edge_variable:
                    found[operator.edge_variable] = sorted(operator.edge_properties or ())
            case _:
                pass
    return found


def test_a_scan_provides_what_the_operators_above_read() -> None:
    plan = lowered(
        '$p: Person { nick: "a" }  $p $k:knows $x  not { $p likes $y  $y.age > $x.age }',
        "return { $p.name } order { $k.since }",
    )
    assert properties(plan) == {"p": ["name"], "x": ["age"], "k": ["since"]}


def test_a_returned_node_needs_everything_but_blobs_and_vectors() -> None:
    assert properties(lowered("$p: Person", "return { $p }")) == {"p": ["age", "name", "nick"]}


def test_a_counted_or_sorting_node_needs_no_property() -> None:
    assert properties(lowered("$p: Person", "return { count($p) as n }")) == {"p": []}


def test_ranked_properties_are_read() -> None:
    rest = 'return { $p.age } order { bm25($p.nick, "a") }'
    assert properties(lowered("$p: Person", rest)) == {"p": ["age", "nick"]}


def test_blocks_with_equal_names_do_not_read_for_each_other() -> None:
    plan = apply(
        lowered("$p: Person  not { $p knows $x  $x.age > $p.age }  not { $p likes $x }"),
        prune_properties,
    )
    reads = [row.detail for row in explain_plan(plan) if row.tree.startswith("block")]
    assert [detail for detail in reads if "reads" in detail] == [
        "$p [Knows->] $x: Person; reads age"
    ]


# ---- all of them ----

TEXTS = [
    "$p: Person",
    "$p: Person { nick: $n }  $p.age > 3 and 1 < 2 or $p.nick is null",
    '$p: Person  $x: Person  $p knows{1,3} $x  $x.name = "x"  $x likes $p',
    '$p knows $_  not { $p likes $x  not { $x likes $p  $x.name = "x" } }',
    "$p: Person  $q: Place  count { $p livesIn $q } >= 1  sum($z.age) { $p likes $z } > 3.5",
    '$p: Person  exists { $o: Place { country: "a", city: "b" }  $p livesIn $o }',
]


@pytest.mark.parametrize("match", TEXTS)
def test_every_rule_is_a_no_op_on_its_own_output(match: str) -> None:
    plan = lowered(match, "return { $p, $p.age } order { $p.age desc } limit 3", "$n: String?")
    for rule in RULES:
        plan = rule(plan, CATALOG)
        assert rule(plan, CATALOG) == plan, rule.__name__


@pytest.mark.parametrize(
    ("where", "conditions"),
    [
        ("age > 1 and (nick is null and 1 < 2)", ["$#row.age > 1", "$#row.nick is null"]),
        ("name is not null", []),
        ("age > 1 and 2 < 1", ["false"]),
        ("age > 1 or false", ["$#row.age > 1"]),
    ],
)
@pytest.mark.parametrize("statement", ["delete Person", 'update Person set { nick: "x" }'])
def test_the_conditions_of_a_mutation_are_folded_and_split(
    statement: str, where: str, conditions: list[str]
) -> None:
    compiled = compile_query(f"query q() {{ {statement} where {where} }}", CATALOG)
    assert isinstance(compiled.plan, Mutation)
    (found,) = compiled.plan.statements
    assert isinstance(found, DeleteNodes | UpdateNodes)
    assert [format_expression(each) for each in found.conditions] == conditions
    assert rewrite(compiled.plan, CATALOG) == compiled.plan


def test_an_insert_is_not_rewritten() -> None:
    compiled = compile_query('query q() { insert Person { name: "a" } }', CATALOG)
    assert compiled.plan == compiled.checked


def test_a_very_long_plan_is_rewritten() -> None:
    steps = "  ".join(f"$v{number} knows $v{number + 1}" for number in range(1500))
    plan = lowered(f'$v0: Person  {steps}  $v1500.name = "end"', "return { $v0.age }")
    rewritten = rewrite(plan, CATALOG)
    assert isinstance(rewritten, ReadPlan)
    assert shown(rewritten)[0] == 'Scan $v1500: Person; where ($v1500.name = "end")'
