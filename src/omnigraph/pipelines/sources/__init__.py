"""Sources: the records of a pipeline as Spark frames.

In: a source of a definition, with its secrets resolved. Out: a position, which states exactly what
a run reads, and then a frame of those records. Guarantee: a position is small JSON and is in the
ledger before anything is written; a followed source (`graph`, `kafka`) gives the same records for
the same position. Files are not pinned: after reading them, the caller checks with
`require_unchanged` that they are still the files that were listed.

    source_dispatch     the state of a source, and its frame, by kind
    file_source         files on disk or S3
    column_drift        files whose columns are not those of the first one
    column_widths       the type that holds the values of two columns
    row_groups          Parquet files, cut between their row groups
    postgres_source     a table or query of PostgreSQL, at one snapshot
    http_source         pages of an HTTP service, staged for tasks
    http_increments     what is new in an HTTP service
    kafka_source        ranges of topics
    graph_feed_source   the change feed of another graph
    spark_source        any format of Spark, queries over sources, Python functions
    dlt_source          tables of sources of dlt
    dlt_packages        load packages of dlt as Parquet files
    json_frames         JSON texts as frames, for the kinds that have them
    csv_frames          CSV files as frames, by the reader of loads
    csv_signs           CSV with other signs than commas and double quotes
    record_readers      CSV and Parquet files read by tasks for rules that need no Spark
    provenance          rejected rows, traced to the records they were made from
    file_locations      the line or row of a record in its file
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
