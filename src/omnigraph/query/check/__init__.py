"""The type checker of `.gq`.

In: the syntax tree of one query and a catalog. Out: a `typed.CheckedQuery`, or None when there are
errors. Guarantee: every error of the query is reported once, at the name or expression that is
wrong; nothing is reported about what depends on it.

Modules, in order of control flow: `checker` (one query), `context` (shared state), `parameters`,
`patterns` (blocks of clauses), `rereading` (clauses that depend on the schema), `scope`
(variables), `bindings`, `traversals`, `anchors` (groups without a declared variable), `expressions`
(operators over the leaves of a position), `access` (variables, properties, fields), `literals`,
`comparisons`, `search`, `aggregates`, `returns`, `ordering`, `constants` (values for properties),
`mutations`.
"""

from omnigraph.query.check.query_checker import check_query

__all__ = ["check_query"]
