from __future__ import annotations

from itertools import pairwise

from omnigraph.query import logical_plan
from omnigraph.query.ast import AggregateFunction, CompareOp
from omnigraph.query.query_lowering import lower_query
from omnigraph.query.tree_walk import chain_of
from omnigraph.query.typed_reads import (
    AggregateBlock,
    Binding,
    Clause,
    Column,
    Condition,
    EdgeStep,
    ExistsBlock,
    OrderKey,
    Pattern,
    Read,
    Traversal,
)
from omnigraph.query.typed_tree import (
    BOOL,
    STRING,
    AggregateValue,
    Bm25Score,
    ColumnValue,
    Compare,
    Constant,
    DeleteNodes,
    Expr,
    Mutation,
    NearestScore,
    PropertyValue,
    RrfScore,
    Score,
    SystemName,
    SystemValue,
)
from omnigraph.schema.property_types import PropertyType, Scalar, VectorType, make_scalar_type

I64 = make_scalar_type(Scalar.I64)
TEXT = Constant("x", STRING)
NAME = Column("p.name", PropertyValue("p", "name", STRING), STRING)
COUNT = Column("n", AggregateValue(AggregateFunction.COUNT, NAME.value, I64), I64)
NEAREST = NearestScore("p", "vector", Constant((1.0,), PropertyType(VectorType(1))))
BM25 = Bm25Score("p", "name", TEXT)


def name_is(variable: str, text: str = "x") -> Compare:
    return Compare(CompareOp.EQ, PropertyValue(variable, "name", STRING), Constant(text, STRING))


def step(
    source: str, target: str, *, edge: str = "Knows", variable: str | None = None
) -> Traversal:
    steps = (EdgeStep(edge),)
    return Traversal(source, "Person", steps, target, "Person", edge_variable=variable)


def pattern(*clauses: Clause, own: str, edges: str = "") -> Pattern:
    return Pattern(
        clauses,
        tuple((name, "Person") for name in own.split()),
        tuple((name, ("Knows",)) for name in edges.split()),
    )


def read(
    matched: Pattern,
    *columns: Column,
    rank: Score | None = None,
    order: tuple[OrderKey, ...] = (),
    limit: int | None = None,
) -> Read:
    columns = columns or (NAME,)
    is_aggregated = any(isinstance(each.value, AggregateValue) for each in columns)
    return Read("q", (), matched, columns, is_aggregated, (), rank, order, limit)


def chain(query: Read) -> list[logical_plan.Operator]:
    lowered = lower_query(query)
    assert isinstance(lowered, logical_plan.ReadPlan)
    return list(chain_of(lowered.root))


def shape(operators: list[logical_plan.Operator] | logical_plan.Operator) -> list[str]:
    """Operators in short: what they bind, or what kind they are."""
    if not isinstance(operators, list):
        operators = list(chain_of(operators))
    return [_short(operator) for operator in operators]


def _short(operator: logical_plan.Operator) -> str:
    match operator:
        case logical_plan.Scan():
            return f"scan {operator.variable}"
        case logical_plan.Expand():
            arrow = "<-" if operator.steps[0].is_reversed else "->"
            closing = " closing" if operator.target_is_bound else ""
            return f"{operator.source} {arrow} {operator.target}{closing}"
        case _:
            return type(operator).__name__.lower()


def test_a_mutation_is_its_own_plan() -> None:
    mutation = Mutation("m", (), (DeleteNodes("Person", (name_is("#row"),)),))
    assert lower_query(mutation) is mutation


def test_one_binding_is_scanned_with_its_matches() -> None:
    query = read(pattern(Binding("p", "Person", (name_is("p"),)), own="p"))
    assert lower_query(query) == logical_plan.ReadPlan(
        "q",
        (),
        logical_plan.Project(
            logical_plan.Scan(logical_plan.Unit(), "p", "Person", (name_is("p"),)), (NAME,)
        ),
        (logical_plan.ResultColumn("p.name", STRING),),
        is_ordered=False,
    )


def test_a_variable_bound_twice_must_satisfy_both_bindings() -> None:
    first, second = name_is("p", "a"), name_is("p", "b")
    query = read(
        pattern(Binding("p", "Person", (first,)), Binding("p", "Person", (second,)), own="p")
    )
    scan = chain(query)[1]
    assert isinstance(scan, logical_plan.Scan)
    assert scan.conditions == (first, second)


def test_the_first_declared_binding_of_a_group_is_the_root_wherever_it_stands() -> None:
    query = read(pattern(step("a", "b"), step("b", "p"), Binding("p", "Person"), own="a b p"))
    assert shape(chain(query)) == ["unit", "scan p", "p <- b", "b <- a", "project"]


def test_a_group_without_bindings_scans_the_source_of_its_first_traversal() -> None:
    query = read(pattern(step("p", "b"), own="p b"))
    assert shape(chain(query)) == ["unit", "scan p", "p -> b", "project"]


def test_a_reached_binding_keeps_its_matches_where_it_is_reached() -> None:
    query = read(
        pattern(
            Binding("p", "Person"),
            Binding("b", "Person", (name_is("b"),)),
            step("p", "b"),
            own="p b",
        )
    )
    expand = chain(query)[2]
    assert isinstance(expand, logical_plan.Expand)
    assert expand.conditions == (name_is("b"),)


def test_a_traversal_between_bound_ends_closes_as_soon_as_both_are_bound() -> None:
    query = read(
        pattern(
            Binding("p", "Person"),
            step("p", "a"),
            step("a", "b"),
            step("b", "c"),
            step("b", "p"),
            own="p a b c",
        )
    )
    assert shape(chain(query)) == [
        "unit",
        "scan p",
        "p -> a",
        "a -> b",
        "b -> p closing",
        "b -> c",
        "project",
    ]


def test_every_closing_traversal_is_enforced() -> None:
    query = read(
        pattern(
            Binding("p", "Person"),
            Binding("b", "Person"),
            step("p", "b"),
            step("p", "b", edge="Likes"),
            step("b", "p", edge="Likes"),
            step("p", "p", edge="Likes"),
            own="p b",
        )
    )
    assert shape(chain(query)) == [
        "unit",
        "scan p",
        "p -> p closing",
        "p -> b",
        "p -> b closing",
        "b -> p closing",
        "project",
    ]


def test_an_undirected_traversal_is_turned_without_turning_its_steps() -> None:
    traversal = Traversal(
        "a", "Person", (EdgeStep("Knows"),), "p", "Person", is_undirected=True, maximum=3
    )
    query = read(pattern(Binding("p", "Person"), traversal, own="p a"))
    expand = chain(query)[2]
    assert isinstance(expand, logical_plan.Expand)
    assert (expand.source, expand.target, expand.steps) == ("p", "a", (EdgeStep("Knows"),))
    assert (expand.is_undirected, expand.maximum) == (True, 3)


def test_disconnected_groups_form_a_cross_product() -> None:
    query = read(pattern(Binding("p", "Person"), Binding("b", "Person"), own="p b"))
    assert shape(chain(query)) == ["unit", "scan p", "scan b", "project"]


def test_filters_stand_where_their_variables_are_first_bound() -> None:
    both = Compare(
        CompareOp.EQ, PropertyValue("p", "name", STRING), PropertyValue("b", "name", STRING)
    )
    query = read(
        pattern(
            Condition(both),
            Condition(name_is("p")),
            Condition(Constant(True, BOOL)),
            step("p", "b"),
            step("b", "c"),
            Binding("p", "Person"),
            own="p b c",
        )
    )
    operators = chain(query)
    assert shape(operators) == [
        "unit",
        "filter",
        "scan p",
        "filter",
        "p -> b",
        "filter",
        "b -> c",
        "project",
    ]
    conditions = [each.condition for each in operators if isinstance(each, logical_plan.Filter)]
    assert conditions == [Constant(True, BOOL), name_is("p"), both]


def test_a_filter_on_an_edge_waits_for_its_traversal() -> None:
    since = Compare(CompareOp.EQ, PropertyValue("w", "since", STRING), TEXT)
    query = read(
        pattern(
            Condition(since),
            Binding("p", "Person"),
            step("p", "b", variable="w"),
            own="p b",
            edges="w",
        )
    )
    assert shape(chain(query)) == ["unit", "scan p", "p -> b", "filter", "project"]


def test_a_block_starts_from_the_outer_row() -> None:
    block = ExistsBlock(pattern(step("b", "p"), Condition(name_is("b")), own="b"), is_negated=True)
    query = read(pattern(block, Binding("p", "Person"), step("p", "c"), own="p c"))
    operators = chain(query)
    assert shape(operators) == ["unit", "scan p", "exists", "p -> c", "project"]
    exists = operators[2]
    assert isinstance(exists, logical_plan.Exists)
    assert exists.is_negated
    assert shape(exists.block) == ["outer", "p <- b", "filter"]


def test_a_block_may_close_on_two_outer_variables_and_scan_its_own() -> None:
    block = ExistsBlock(
        pattern(
            step("p", "c"), Binding("x", "Person"), Binding("p", "Person", (name_is("p"),)), own="x"
        ),
        is_negated=False,
    )
    query = read(pattern(Binding("p", "Person"), block, step("p", "c"), own="p c"))
    operators = chain(query)
    assert shape(operators) == ["unit", "scan p", "p -> c", "exists", "project"]
    exists = operators[3]
    assert isinstance(exists, logical_plan.Exists)
    assert shape(exists.block) == ["outer", "filter", "p -> c closing", "scan x"]


def test_a_block_variable_with_the_name_of_a_later_outer_one_stays_apart() -> None:
    block = AggregateBlock(
        pattern(step("p", "x"), Condition(name_is("x")), own="x"),
        AggregateFunction.MIN,
        PropertyValue("x", "name", STRING),
        CompareOp.LT,
        TEXT,
    )
    query = read(pattern(Binding("p", "Person"), block, Binding("x", "Person"), own="p x"))
    operators = chain(query)
    assert shape(operators) == ["unit", "scan p", "compareblock", "scan x", "project"]
    compare = operators[2]
    assert isinstance(compare, logical_plan.CompareBlock)
    assert shape(compare.block) == ["outer", "p -> x#2", "filter"]
    assert compare.argument == PropertyValue("x#2", "name", STRING)
    assert isinstance(compare.block, logical_plan.Filter)
    assert compare.block.condition == name_is("x#2")


def test_two_blocks_never_share_a_variable() -> None:
    blocks = [ExistsBlock(pattern(step("p", "x"), own="x"), is_negated=False) for _ in range(3)]
    operators = chain(read(pattern(Binding("p", "Person"), *blocks, own="p")))
    found = [shape(each.block) for each in operators if isinstance(each, logical_plan.Exists)]
    assert found == [["outer", f"p -> {name}"] for name in ("x", "x#2", "x#3")]


def test_blocks_nest_and_see_every_outer_variable() -> None:
    inner = ExistsBlock(pattern(step("b", "p"), own=""), is_negated=True)
    outer = ExistsBlock(pattern(step("p", "b"), inner, own="b"), is_negated=True)
    exists = chain(read(pattern(Binding("p", "Person"), outer, own="p")))[2]
    assert isinstance(exists, logical_plan.Exists)
    assert shape(exists.block) == ["outer", "p -> b", "exists"]
    assert isinstance(exists.block, logical_plan.Exists)
    assert shape(exists.block.block) == ["outer", "b -> p closing"]


def test_order_ends_with_ids_of_named_variables_then_of_anonymous_ones() -> None:
    traversals = (
        step("p", "_#1"),
        step("p", "_#2"),
        Traversal(
            "p",
            "Person",
            (EdgeStep("Knows"), EdgeStep("Likes")),
            "a",
            "Person",
            edge_variable="e",
            is_selection=True,
        ),
        step("p", "q", variable="w"),
    )
    matched = Pattern(
        (Binding("p", "Person"), *traversals),
        tuple((name, "Person") for name in ("p", "_#1", "_#2", "a", "q")),
        (("e", ("Knows", "Likes")), ("w", ("Knows",))),
    )
    key = OrderKey(PropertyValue("p", "name", STRING), is_descending=True)
    project = chain(read(matched, order=(key,), limit=5))[-1]
    assert isinstance(project, logical_plan.Project)
    assert isinstance(project.input, logical_plan.Limit)
    sort = project.input.input
    assert isinstance(sort, logical_plan.Sort)
    ties: list[Expr] = [each.value for each in sort.keys[1:]]
    assert sort.keys[0] == key
    assert ties == [
        SystemValue("a", SystemName.ID),
        SystemValue("e", SystemName.TYPE),
        SystemValue("e", SystemName.ID),
        SystemValue("p", SystemName.ID),
        SystemValue("q", SystemName.ID),
        SystemValue("w", SystemName.ID),
        SystemValue("_#1", SystemName.ID),
        SystemValue("_#2", SystemName.ID),
    ]


def test_a_limit_without_order_sorts_nothing() -> None:
    query = read(pattern(Binding("p", "Person"), own="p"), limit=0)
    assert shape(chain(query)) == ["unit", "scan p", "limit", "project"]


def test_a_ranked_read_sorts_by_score_then_keys_then_ids() -> None:
    person = pattern(Binding("p", "Person"), own="p")
    key = OrderKey(PropertyValue("p", "name", STRING))
    tie = OrderKey(SystemValue("p", SystemName.ID))
    for score, is_descending in ((NEAREST, False), (BM25, True), (RrfScore((NEAREST, BM25)), True)):
        operators = chain(read(person, rank=score, order=(key,), limit=3))
        assert shape(operators) == ["unit", "scan p", "rank", "sort", "limit", "project"]
        sort = operators[3]
        assert isinstance(sort, logical_plan.Sort)
        assert sort.keys == (OrderKey(score, is_descending), key, tie)


def test_only_rrf_needs_a_window_when_rows_are_returned() -> None:
    person = pattern(Binding("p", "Person"), own="p")
    for score, window in ((NEAREST, None), (BM25, None), (RrfScore((NEAREST, BM25)), 3)):
        rank = chain(read(person, rank=score, limit=3))[2]
        assert isinstance(rank, logical_plan.Rank)
        assert rank.window == window


def test_only_nearest_cuts_the_rows_of_an_aggregate() -> None:
    person = pattern(Binding("p", "Person"), own="p")
    for score, window in ((BM25, None), (RrfScore((NEAREST, BM25)), 3)):
        operators = chain(read(person, NAME, COUNT, rank=score, limit=3))
        assert shape(operators) == ["unit", "scan p", "rank", "aggregate", "sort", "limit"]
        rank = operators[2]
        assert isinstance(rank, logical_plan.Rank)
        assert rank.window == window
    operators = chain(read(person, NAME, COUNT, rank=NEAREST, limit=3))
    selected = ["unit", "scan p", "rank", "sort", "limit"]
    assert shape(operators) == [*selected, "aggregate", "sort", "limit"]
    sort, limit = operators[3:5]
    assert isinstance(sort, logical_plan.Sort)
    assert isinstance(limit, logical_plan.Limit)
    assert sort.keys == (OrderKey(NEAREST), OrderKey(SystemValue("p", SystemName.ID)))
    assert limit.count == 3


def test_groups_are_ordered_by_their_keys_then_by_the_remaining_key_columns() -> None:
    age = Column("p.age", PropertyValue("p", "age", I64), I64)
    by_count = OrderKey(ColumnValue("n", I64), is_descending=True)
    by_name = OrderKey(ColumnValue("p.name", STRING), is_descending=True)
    query = read(
        pattern(Binding("p", "Person"), own="p"), age, COUNT, NAME, order=(by_count, by_name)
    )
    sort = chain(query)[-1]
    assert isinstance(sort, logical_plan.Sort)
    assert sort.keys == (by_count, by_name, OrderKey(ColumnValue("p.age", I64)))


def test_a_single_group_is_not_sorted() -> None:
    query = read(pattern(Binding("p", "Person"), own="p"), COUNT, rank=BM25)
    assert shape(chain(query)) == ["unit", "scan p", "rank", "aggregate"]


def test_a_very_long_pattern_is_lowered() -> None:
    names = [f"v{number}" for number in range(3000)]
    steps = [step(first, second) for first, second in pairwise(names)]
    query = read(pattern(*reversed(steps), Binding("v0", "Person"), own=" ".join(names)))
    operators = chain(query)
    assert len(operators) == 3002
    assert shape(operators[:3]) == ["unit", "scan v0", "v0 -> v1"]
