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

from omnigraph.execution.search.asked import Asked
from omnigraph.execution.search.fields import Fields, fields_of, share_memory
from omnigraph.execution.search.predicates import (
    is_answered,
    searched,
    text_candidates,
    text_mask,
)
from omnigraph.execution.search.ranking import rank

__all__ = [
    "Asked",
    "Fields",
    "fields_of",
    "is_answered",
    "rank",
    "searched",
    "share_memory",
    "text_candidates",
    "text_mask",
]
