"""Sources: where the records of a pipeline come from, as Spark frames.

In: a source of a definition, with its secrets resolved. Out: first a position, which says what
exactly a run reads, and then a frame of those records. Guarantee: a position is small and JSON, it
is in the ledger before anything is written, and a source that is followed (`graph`, `kafka`) gives
the same records for the same position. Files are not pinned: whoever has read them asks with
`require_same` whether they are still those of the survey.

    survey        what there is to read now
    reading       a frame of what a survey found
    files, postgres, http, graph_feed, kafka     the kinds
    staging       records that only one process can read, in pieces for tasks
    json_lines    JSON texts as frames, for the kinds that have them
    known         the columns of a source, as far as they are known before it is asked
"""

from omnigraph.pipelines.sources.source_dispatch import (
    SourceState,
    build_location_sql,
    is_followed,
    open_source,
    read_source_state,
    require_unchanged,
)

__all__ = [
    "SourceState",
    "build_location_sql",
    "is_followed",
    "open_source",
    "read_source_state",
    "require_unchanged",
]
