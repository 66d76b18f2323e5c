"""Search: text predicates, scores and ranks over the nodes of one type.

In: rows that bind a variable, and a rank or a text predicate about one of its properties. Out: the
rows with scores, or which nodes satisfy the predicate. Guarantee: answers depend on the rows of
the snapshot alone, never on an index of a table, and each score is rounded once, in an order of
operations that is fixed.

`ranking` ranks rows: `bm25` scores texts, `nearest` measures vectors that are in memory (through a
`sketch` when there are many) and `streamed` those that are too many, `fusion` joins two ranks, and
`embedded` turns a text into a vector. `predicates` answers text predicates. They have `asked` for a
property of a snapshot, and `fields` keeps what they asked for: a `field` is made of `text_segment`s
(`saved_texts` keeps them for the next process) or of `vector_segment`s; `segment_types` and
`scored` are what they share. Words are cut out of texts by `tokens`, and found by `vocabulary`.
"""

from omnigraph.execution.search.field_cache import FieldCache, field_cache_of, share_memory
from omnigraph.execution.search.field_ref import FieldRef
from omnigraph.execution.search.ranking import rank_rows
from omnigraph.execution.search.text_filter import (
    find_text_candidates,
    match_texts,
    search_nodes,
    should_use_index,
)

__all__ = [
    "FieldCache",
    "FieldRef",
    "field_cache_of",
    "find_text_candidates",
    "match_texts",
    "rank_rows",
    "search_nodes",
    "share_memory",
    "should_use_index",
]
