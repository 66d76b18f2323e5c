"""Random query trees that the parser can produce, for tests of printing and reading."""

from __future__ import annotations

from hypothesis import strategies as st

from omnigraph.query import ast
from omnigraph.query.query_dialect_hints import CLAUSE_HINTS
from omnigraph.schema.ast import Name
from omnigraph.schema.property_types import (
    DECLARED_SCALARS,
    ListType,
    PropertyType,
    Scalar,
    ScalarType,
    VectorType,
)

RESERVED = ["and", "or", "not", "is", "null", "in"]
# Every keyword is contextual, so all of them are good names.
KEYWORDS = [
    *("limit", "order", "return", "match", "count", "sum", "min", "date", "datetime", "exists"),
    *("contains", "starts_with", "query", "set", "where", "insert", "update", "delete", "as"),
    *("asc", "desc", "now", "search", "nearest", "bm25", "rrf", "branch", "show", "explain"),
]
PLAIN = ["a", "b", "name", "x_1", "_", "_y", "trueness", "nothing", "android", "inner"]

# Aggregates that a block may have, and those that are written with one argument.
OF_BLOCKS = [ast.AggregateFunction(name) for name in ("count", "sum", "avg", "min", "max")]
ONE_ARGUMENT = [
    each for each in ast.AggregateFunction if each not in {"percentile", "min_by", "max_by"}
]

words = st.sampled_from([*PLAIN, *KEYWORDS])
any_words = st.sampled_from([*PLAIN, *KEYWORDS, *RESERVED, "true", "false"])
names = st.builds(Name, any_words)
type_names = st.builds(Name, st.sampled_from(["Person", "T", "In", "Query_1"]))
texts = st.text(max_size=6)

variables = st.builds(ast.Variable, any_words)
accesses = st.builds(ast.PropertyAccess, variables, names)
floats = st.from_regex(r"[0-9]{1,3}\.[0-9]{1,3}", fullmatch=True)
scalars = st.one_of(
    st.builds(ast.IntegerLiteral, st.integers(0, 2**63 - 1)),
    st.builds(ast.FloatLiteral, floats),
    st.builds(ast.StringLiteral, texts),
    st.builds(ast.BooleanLiteral, st.booleans()),
    st.builds(ast.DateLiteral, texts),
    st.builds(ast.DateTimeLiteral, texts),
)
lists = st.recursive(
    st.builds(ast.ListLiteral, st.lists(scalars | variables, max_size=3).map(tuple)),
    lambda inner: st.builds(ast.ListLiteral, st.lists(inner | variables, max_size=2).map(tuple)),
    max_leaves=3,
)
leaves = st.one_of(
    scalars,
    lists,
    variables,
    accesses,
    st.builds(ast.SystemAccess, variables, names),
    st.builds(ast.SystemField, any_words),
    # A clause cannot start with a word that means a clause elsewhere; no value is called so.
    st.builds(ast.Identifier, words.filter(lambda word: word not in CLAUSE_HINTS)),
    st.builds(ast.Now),
)


def _larger(inner: st.SearchStrategy[ast.Expr]) -> st.SearchStrategy[ast.Expr]:
    several = st.lists(inner, min_size=2, max_size=4).map(tuple)
    named = st.builds(ast.NamedArgument, names, inner)
    options = st.lists(named, max_size=2).map(tuple)
    arms = st.builds(ast.Nearest, accesses, inner, options) | st.builds(ast.Bm25, inner, inner)
    return st.one_of(
        st.builds(ast.Or, several),
        st.builds(ast.And, several),
        st.builds(ast.Not, inner),
        st.builds(ast.Comparison, st.sampled_from(ast.CompareOp), inner, inner),
        st.builds(ast.TextTest, st.sampled_from(ast.TextOp), inner, inner, st.booleans()),
        st.builds(ast.Membership, inner, inner),
        st.builds(ast.NullTest, inner, st.booleans()),
        st.builds(ast.AggregateCall, st.sampled_from(ONE_ARGUMENT), inner),
        st.builds(ast.Rrf, st.lists(arms, min_size=2, max_size=3).map(tuple), st.none() | inner),
        arms,
        st.builds(
            ast.TextPredicate,
            st.sampled_from([each for each in ast.TextFunction if each != "fuzzy"]),
            inner,
            inner,
        ),
        st.builds(
            ast.TextPredicate, st.just(ast.TextFunction.FUZZY), inner, inner, st.none() | inner
        ),
    )


exprs: st.SearchStrategy[ast.Expr] = st.recursive(leaves, _larger, max_leaves=8)

# ---- clauses ----

quoted_edges = st.builds(ast.EdgeName, texts, st.just(True))
bare_edges = st.builds(ast.EdgeName, words)
edge_names = quoted_edges | bare_edges
# Where an edge name cannot be an operator, lenient mode reads a reserved word as a name.
bare_reserved = st.builds(ast.EdgeName, st.sampled_from(["and", "or", "is", "null", "in"]))
alternatives = st.builds(ast.NamedEdges, st.lists(edge_names, min_size=2, max_size=3).map(tuple))
single_edges = st.builds(ast.NamedEdges, st.tuples(edge_names))
safe_edges = st.builds(ast.NamedEdges, st.tuples(edge_names | bare_reserved))
any_edge = st.builds(ast.AnyEdge)
bounds = st.builds(ast.HopBounds, st.integers(0, 2**32 - 1), st.none() | st.integers(0, 9))
traversals = st.one_of(
    st.builds(
        ast.Traversal,
        variables,
        st.none(),
        single_edges | alternatives | any_edge,
        st.just(False),
        st.none() | bounds,
        variables,
    ),
    st.builds(
        ast.Traversal,
        variables,
        st.none() | variables,
        safe_edges | alternatives | any_edge,
        st.just(True),
        st.none() | bounds,
        variables,
    ),
    st.builds(
        ast.Traversal,
        variables,
        variables,
        safe_edges | alternatives | any_edge,
        st.just(False),
        st.none() | bounds,
        variables,
    ),
)
bindings = st.builds(
    ast.Binding,
    variables,
    type_names,
    st.lists(st.builds(ast.PropertyMatch, names, exprs), max_size=3).map(tuple),
)
filters = st.builds(ast.Filter, exprs)
lets = st.builds(ast.Let, variables, exprs)
for_each = st.builds(ast.ForEach, variables, st.none() | variables, exprs)

ranked_keys = st.builds(ast.OrderKey, st.builds(ast.Nearest, accesses, leaves))
alias_keys = st.builds(
    ast.OrderKey,
    st.builds(ast.Identifier, st.sampled_from(RESERVED)),
    st.none() | st.sampled_from(ast.Direction),
)
order_keys = st.one_of(
    ranked_keys,
    alias_keys,
    st.builds(
        ast.OrderKey,
        exprs.filter(lambda expr: not isinstance(expr, ast.Nearest)),
        st.none() | st.sampled_from(ast.Direction),
    ),
)
counts = st.none() | st.integers(0, 2**64 - 1) | variables


def _blocks(inner: st.SearchStrategy[ast.Clause]) -> st.SearchStrategy[ast.Clause]:
    several = st.lists(inner, min_size=1, max_size=3).map(tuple)
    return st.one_of(
        st.builds(ast.NotBlock, several),
        st.builds(ast.ExistsBlock, several),
        st.builds(
            ast.AggregateBlock,
            st.sampled_from(OF_BLOCKS),
            st.none() | exprs,
            several,
            st.sampled_from(ast.CompareOp),
            # Compared with anything else, a block is part of a filter.
            scalars | lists | variables | st.builds(ast.Now),
        ),
        st.builds(
            ast.LateralBlock,
            several,
            st.booleans(),
            st.lists(order_keys, max_size=2).map(tuple),
            counts,
            counts,
            st.lists(exprs, max_size=2).map(tuple),
        ),
    )


clauses: st.SearchStrategy[ast.Clause] = st.recursive(
    st.one_of(bindings, traversals, filters, lets, for_each), _blocks, max_leaves=4
)

# ---- declarations and files ----

block_clauses = st.lists(clauses, min_size=1, max_size=2).map(tuple)
block_values = st.one_of(
    st.builds(ast.BlockValue, st.none() | st.sampled_from(OF_BLOCKS), st.none(), block_clauses),
    st.builds(
        lambda call, inner: ast.BlockValue(call.function, call, inner),
        st.builds(ast.AggregateCall, st.sampled_from(ONE_ARGUMENT), exprs),
        block_clauses,
    ),
)
projections = st.builds(ast.Projection, exprs | block_values, st.none() | names)
whole_reads = st.builds(
    ast.ReadBody,
    st.lists(clauses, min_size=1, max_size=4).map(tuple),
    st.lists(projections, min_size=1, max_size=3).map(tuple),
    having=st.lists(exprs, max_size=1).map(tuple),
    order=st.lists(order_keys, max_size=2).map(tuple),
    limit=st.none() | st.integers(0, 2**64 - 1),
    offset=st.none() | st.integers(0, 2**64 - 1),
)
# Reads of several parts, each of which is short.
short_sections = (
    st.lists(traversals, max_size=1).map(tuple),
    st.lists(st.builds(ast.Projection, leaves, st.none() | names), min_size=1, max_size=2).map(
        tuple
    ),
)
short_tails: dict[str, st.SearchStrategy[object]] = {
    "order": st.lists(alias_keys, max_size=1).map(tuple),
    "limit": st.none() | st.integers(0, 9),
}
distinct = st.booleans()
stages = st.builds(ast.ReadBody, *short_sections, **short_tails, is_distinct=distinct)
later_stages = st.builds(ast.ReadBody, *short_sections, **short_tails, input=stages)
terms = st.one_of(
    st.builds(ast.ReadBody, *short_sections, input=st.none() | stages, is_distinct=distinct),
    st.builds(ast.ReadBody, *short_sections, **short_tails),
    st.builds(ast.ReadBody, *short_sections, is_graph=st.just(True)),
)
combined = st.builds(
    lambda first, second, operator: ast.SetOperation((first, second), (operator,)),
    terms,
    terms,
    st.sampled_from(ast.SetOperator),
)
combined_reads = st.builds(ast.ReadBody, st.just(()), st.just(()), **short_tails, input=combined)
staged_reads = st.builds(ast.ReadBody, *short_sections, **short_tails, input=stages | later_stages)
read_bodies = st.one_of(whole_reads, staged_reads, combined_reads)
reserved_conditions = st.builds(
    ast.Comparison,
    st.sampled_from(ast.CompareOp),
    st.builds(ast.Identifier, st.sampled_from(RESERVED)),
    leaves,
)
conditions = st.one_of(
    exprs,
    reserved_conditions,
    st.builds(ast.Not, reserved_conditions),
    st.builds(ast.And, st.tuples(exprs, reserved_conditions, reserved_conditions)),
)
assignments = st.lists(st.builds(ast.Assignment, names, exprs), min_size=1, max_size=3).map(tuple)
mutations = st.one_of(
    st.builds(ast.Insert, type_names, assignments),
    st.builds(ast.Update, type_names, assignments, conditions),
    st.builds(ast.Delete, type_names, conditions),
)
row_loops = st.builds(
    ast.RowsWrite,
    variables,
    variables,
    st.lists(mutations, min_size=1, max_size=2).map(tuple),
)
value_types = st.one_of(
    st.builds(ScalarType, st.sampled_from(DECLARED_SCALARS)),
    st.builds(
        ListType, st.sampled_from([item for item in DECLARED_SCALARS if item is not Scalar.BLOB])
    ),
    st.builds(VectorType, st.integers(1, 2**31 - 1)),
)
property_types = st.builds(PropertyType, value_types, st.booleans())
record_fields = st.lists(st.builds(ast.RecordField, names, property_types), min_size=1, max_size=3)
record_lists = st.builds(ast.RecordListType, record_fields.map(tuple))
parameters = st.builds(ast.Parameter, names, property_types | record_lists)
headers = (names, st.lists(parameters, max_size=6).map(tuple))
notes = (st.none() | texts, st.none() | texts)
reads = st.builds(ast.Query, *headers, read_bodies, *notes)
writes = st.builds(
    ast.Query,
    *headers,
    st.builds(ast.MutationBody, st.lists(mutations | row_loops, min_size=1, max_size=3).map(tuple)),
    *notes,
)

setting_names = st.sampled_from(["ann_nprobes", "a.b", "set", "in"]).map(Name)
settings = st.one_of(
    st.builds(ast.SetSetting, setting_names, st.integers(0, 2**63 - 1)),
    st.builds(ast.SetSetting, setting_names, any_words, st.just(True)),
    st.builds(ast.SetSetting, setting_names, texts, st.just(False)),
    st.builds(ast.ResetSetting, st.none() | setting_names),
)
branch_names = st.sampled_from(["main", "review/x", "Release 1", "from", "in", "1", "ä"]).map(Name)
statements = st.one_of(
    st.builds(ast.BranchCreate, branch_names, st.none() | branch_names),
    st.builds(ast.BranchDelete, branch_names),
    st.builds(ast.BranchMerge, branch_names, st.none() | branch_names),
    st.builds(ast.BranchList),
    st.builds(ast.Show, st.none() | setting_names),
    st.builds(ast.Explain, reads),
)
several_settings = st.lists(settings, max_size=2).map(tuple)
files = st.one_of(
    st.builds(ast.File, several_settings, st.lists(reads | writes, max_size=3).map(tuple)),
    st.builds(ast.File, several_settings, st.just(()), statements),
)
