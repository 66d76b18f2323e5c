"""What people who know other languages write in a query, and what to write instead."""

from __future__ import annotations

_COMMENT = "a comment starts with '//', or stands between '/*' and '*/'"
_PATTERN = "a traversal is written '$a edge $b'; its direction follows from the types"
_SHAPE = "a query is written: query name() { match { … } return { … } }"
_ARITHMETIC = "an operator stands between two values"
_CASE = "a choice is written: case { condition: value, else: value }"
_OFFSET = "after 'limit' write: offset 20"
_INSERT = "'upsert' changes a node that has the same key, or inserts one; 'create' only inserts"
_KEYWORDS = (
    *("query", "match", "return", "order", "limit", "as", "asc", "desc"),
    *("and", "or", "not", "in", "is", "null", "contains", "starts_with", "true", "false"),
    *("exists", "optional", "each", "count", "sum", "avg", "min", "max"),
    *("insert", "create", "upsert", "replace", "update", "delete", "set", "where"),
)

# Wherever something else is expected.
QUERY_HINTS = {
    **{word.upper(): f"keywords are in lower case: write '{word}'" for word in _KEYWORDS},
    "==": "write '='",
    "<>": "write '!='",
    "&&": "write 'and'",
    "||": "write 'or'; texts are joined with '+'",
    "!": "write 'not'",
    "=~": 'write: matches($v.name, "pattern")',
    "'": "a text stands in double quotes",
    "`": "a text stands in double quotes; a name stands bare",
    "#": _COMMENT,
    "--": _COMMENT,
    "$": "a variable is '$' and a name that starts with a lower-case letter or '_'",
    "-[": _PATTERN,
    "<-[": _PATTERN,
    "<--": _PATTERN,
    "-->": _PATTERN,
    "->": _PATTERN,
    **dict.fromkeys(("select", "SELECT", "find", "get"), _SHAPE),
    **dict.fromkeys(("offset", "OFFSET", "skip", "SKIP"), _OFFSET),
    **dict.fromkeys(("merge", "MERGE"), _INSERT),
    "group": "a query that returns an aggregate is grouped by everything else it returns",
    "having": "after 'return' write: having { count(*) > 2 }",
    **dict.fromkeys(
        ("union", "intersect", "except"),
        "a read with an 'order' or a 'limit' of its own is combined in braces: { … } union { … }",
    ),
    **dict.fromkeys(("unwind", "UNWIND"), "a row for each item is written: for $x in $v.list"),
    "with": "'with { … }' stands after a 'match', and before the next 'match' or 'return'",
}
# Where a value may start.
VALUE_HINTS = {
    "(*": "only rows are counted so: count(*)",
    **dict.fromkeys("+*/%", _ARITHMETIC),
}
# Where a clause of `match` may start.
CLAUSE_HINTS = {
    ",": "clauses are separated by blanks, line ends or ';'",
    "and": "a block is a clause of its own; clauses stand one after the other and must all hold",
    "or": "'not { … }' is a clause of its own: in a condition write 'not exists { … }'",
    "where": "a condition stands in 'match' without a keyword",
    "filter": "a condition stands in 'match' without a keyword",
    "forall": "write 'not { … }' with the opposite condition",
    "none": "write 'not { … }'",
    "any": "write 'exists { … }'",
}
# After the edge name of a traversal.
TARGET_HINTS = {
    **dict.fromkeys("*+", "write how many hops are taken: edge{1,3}"),
    "|": "put several edge names in parentheses: (likes|knows)",
}
# Bare words that the grammar takes for names, and that no value is called.
WORD_HINTS = {
    "distinct": "write 'return distinct { … }', or count(distinct $v.property)",
    **{word: CLAUSE_HINTS[word] for word in ("where",)},
    **dict.fromkeys(("case", "when", "then", "end"), _CASE),
}
