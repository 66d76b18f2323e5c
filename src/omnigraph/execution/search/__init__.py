"""Search: text predicates, scores and ranks over the nodes of one type.

In: rows that bind a variable, and a rank or a text predicate on one of its properties. Out: the
rows with scores, or which nodes satisfy the predicate. Guarantee: an answer depends on the rows of
the snapshot alone, not on an index of a table; each score is rounded once, in a fixed order of
operations.

    ranking           the score of each row: `bm25`, `nearest`, `rrf`, and texts to embed
    row_queries       vectors to be near to that rows have
    stored_vectors    the vectors of some nodes
    text_filter       which nodes satisfy a text predicate
    bm25              scores of texts
    nearest_vectors   exact distances, of vectors in memory or streamed from the table
    vector_metrics    how far vectors are from each other, and bounds of that
    vector_sketch     lower bounds of distances, which skip most vectors
    scored_nodes      nodes with scores, and the fusion of two ranks
    field_ref         a property of a node type at a snapshot
    field_cache       the fields of one graph, built once per version, in bounded memory
    field_index       the segments of a field at one version
    text_segment      postings of the texts of some rows
    vector_segment    the vectors of some rows, as a matrix
"""

from omnigraph.execution.search.field_cache import FieldCache, field_cache_of, share_memory
from omnigraph.execution.search.field_ref import FieldRef
from omnigraph.execution.search.ranking import rank_rows, score_values
from omnigraph.execution.search.text_filter import (
    find_text_candidates,
    search_nodes,
)

__all__ = [
    "FieldCache",
    "FieldRef",
    "field_cache_of",
    "find_text_candidates",
    "rank_rows",
    "score_values",
    "search_nodes",
    "share_memory",
]
