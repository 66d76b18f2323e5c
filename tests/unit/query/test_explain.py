from __future__ import annotations

from omnigraph.query.logical_plan import ReadPlan
from omnigraph.query.query_compiler import compile_query
from omnigraph.query.query_explain import ExplainRow, explain_plan
from omnigraph.schema import load_catalog

CATALOG = load_catalog("""
node Doc {
  slug: String @key
  body: String?
  born: Date?
  seen: DateTime?
  weight: F32?
  vec: Vector(2)?
  tags: [String]?
}
edge Cites: Doc -> Doc { note: String? }
edge Links: Doc -> Doc
""")


def details(text: str) -> dict[str, str]:
    plan = compile_query(text, CATALOG).plan
    assert isinstance(plan, ReadPlan)
    return {f"{row.tree}/{row.node}": row.detail for row in explain_plan(plan)}


def test_rows_go_from_the_result_to_the_leaf_and_then_through_the_blocks() -> None:
    plan = compile_query(
        "query q() { match { $d: Doc  not { $d cites $x } } return { $d.slug } }", CATALOG
    ).plan
    assert isinstance(plan, ReadPlan)
    assert explain_plan(plan) == (
        ExplainRow("plan", 0, "Project", "$d.slug as d.slug"),
        ExplainRow("plan", 1, "Exists", "block 1 has no row"),
        ExplainRow("plan", 2, "Scan", "$d: Doc; reads slug"),
        ExplainRow("plan", 3, "Unit", ""),
        ExplainRow("block 1", 0, "Expand", "$d [Cites->] $x: Doc"),
        ExplainRow("block 1", 1, "Outer", ""),
    )


def test_the_plans_of_stages_follow_that_of_the_result() -> None:
    plan = compile_query(
        """
        query q() {
          match { $d: Doc  $d $c:cites $x }
          with { $d, $c, $x.slug as s }
          limit 2
          match { $d links $x  $s != "a" }
          return { $x.slug as slug }
          union all
          return { "z" as slug }
        }""",
        CATALOG,
    ).plan
    assert isinstance(plan, ReadPlan)
    found = [(row.tree, row.node, row.detail) for row in explain_plan(plan)]
    assert found == [
        ("plan", "Project", "$slug as slug"),
        ("plan", "StageRows", "stage 1 union all stage 2: $slug"),
        ("stage 1", "Project", "$x#2.slug as slug"),
        ("stage 1", "Expand", "$d [Links->] $x#2: Doc; reads slug"),
        ("stage 1", "Filter", '$s != "a"'),
        ("stage 1", "StageRows", "stage 3: $d, $c, $s"),
        ("stage 2", "Project", '"z" as slug'),
        ("stage 2", "Unit", ""),
        ("stage 3", "Project", "$d.@id as d, $c.@id as c, $x.slug as s"),
        ("stage 3", "Limit", "2"),
        ("stage 3", "Expand", "$d [$c: Cites->] $x: Doc; reads slug"),
        ("stage 3", "Scan", "$d: Doc"),
        ("stage 3", "Unit", ""),
    ]


def test_expressions_read_like_the_language() -> None:
    found = details("""
    query q($t: [String], $n: I64?) {
      match {
        $d: Doc { born: date("2024-05-06") }
        $d.seen < now() or $d.seen > datetime("2024-05-06T07:08:09Z") or not ($d.body in ["a", "b"])
        $d.body starts_with "x"
        "t" in $d.tags
        search($d.body, "sea") and fuzzy($d.body, "se", 1)
        count { $d cites $x } >= $n
        max($y.slug) { $d links $y } != "z"
      }
      return { $d.body is not null as has, $d.slug, true as yes }
      order { $d.body desc, $d.slug }
      limit 4
    }
    """)
    assert found["plan/Scan"] == (
        '$d: Doc; where ($d.born = date("2024-05-06")) and (($d.seen < now()) or '
        '($d.seen > datetime("2024-05-06T07:08:09.000Z")) or (not ($d.body in ["a", "b"]))) and '
        '($d.body starts_with "x") and ("t" in $d.tags) and search($d.body, "sea") and '
        'fuzzy($d.body, "se", 1); reads body, slug'
    )
    assert found["plan/CompareBlock"] == "block 2: count >= $n"
    assert found["plan/Project"] == "$d.body is not null as has, $d.slug as d.slug, true as yes"
    assert found["plan/Sort"] == "$d.body desc, $d.slug"
    assert found["plan/Limit"] == "4"


def test_constants_inside_lists_read_like_the_language() -> None:
    found = details("""
    query q($n: F32) {
      match {
        $d: Doc
        $d.born in [date("2020-01-01")]
        $d.seen in [datetime("2024-05-06T07:08:09Z")]
        $d.weight in [0.1, 2]
        $d.weight in [0.1, $n]
        $d.weight > 0.1
      }
      return { $d.slug }
      order { nearest($d.vec, [0.1, 1]) }
      limit 1
    }
    """)
    assert found["plan/Scan"] == (
        '$d: Doc; where ($d.born in [date("2020-01-01")]) and '
        '($d.seen in [datetime("2024-05-06T07:08:09.000Z")]) and ($d.weight in [0.1, 2.0]) and '
        "($d.weight in [0.1, $n]) and ($d.weight > 0.1); reads slug, vec"
    )
    assert found["plan/Rank"] == "nearest($d.vec, [0.1, 1.0])"


def test_ranks_and_aggregates_show_their_arguments() -> None:
    found = details("""
    query q($v: Vector(2)) {
      match { $d: Doc  $d <cites | links>{1,2} $e  $e $c:cites $d }
      return { $d.slug, count($e) as n }
      order { rrf(nearest($d.vec, $v), bm25($d.body, "sea"), 10), n desc }
      limit 7
    }
    """)
    assert found["plan/Rank"] == ('rrf(nearest($d.vec, $v), bm25($d.body, "sea"), 10) window 7')
    assert found["plan/Aggregate"] == "$d.slug as d.slug, count($e) as n"
    assert found["plan/Sort"] == "n desc, d.slug"
    assert found["plan/Expand"] == "$d [<Cites> | <Links> {1,2}] $e: Doc"


def test_a_bound_edge_and_a_closing_traversal_are_named() -> None:
    found = details("query q() { match { $d: Doc  $d $c:cites $d } return { $c.note } }")
    assert found["plan/Expand"] == "$d [$c: Cites->] $d; closing"
