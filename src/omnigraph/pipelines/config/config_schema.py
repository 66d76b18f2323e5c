"""Every section of a pipeline's definition: its fields, and what they mean.

This is the vocabulary of the files; the reference page is made of it.
"""

from __future__ import annotations

from typing import Final

from omnigraph.config.yaml_reader import FieldKind, FieldSpec, SectionSchema
from omnigraph.pipelines.config.csv_dialect import CSV_SECTION
from omnigraph.pipelines.config.operations_schema import (
    DELETION_FIELDS,
    DRIFT,
    DRIFT_FIELD,
    EXPECT_FIELD,
    EXPECTATION,
    HOOK,
    KEEP_RUNS,
    LINEAGE,
    METRICS,
    OP,
    REPORT_FIELDS,
)
from omnigraph.pipelines.config.text_encodings import (
    ENCODINGS,
    UTF_8,
    normalize_encoding,
)

MODES: Final = ("append", "merge", "overwrite")
ON_ERROR: Final = ("fail", "quarantine")
MERGES: Final = ("automatic", "review")
FORMATS: Final = ("json", "csv", "parquet", "orc")
STARTS: Final = ("beginning", "now")
OPS: Final = ("insert", "update", "delete")
PER: Final = ("entity", "change")

PIPELINE: Final = SectionSchema(
    "pipeline",
    "A file of its own; its name is that of the file, without `.yaml`.",
    (
        FieldSpec("name", FieldKind.TEXT, "The name, if it is not that of the file."),
        FieldSpec("description", FieldKind.TEXT, "What it is for, for people."),
        FieldSpec(
            "graphs", FieldKind.NAMED, "The graphs it writes to, by the id that targets use."
        ),
        FieldSpec(
            "providers", FieldKind.NAMED, "`source:` holds sources that are referred to by name."
        ),
        FieldSpec(
            "source",
            FieldKind.ANY,
            "Where records come from: a section, or `provider.source.NAME`.",
        ),
        FieldSpec("sources", FieldKind.NAMED, "Several sources by name, instead of one."),
        FieldSpec("into", FieldKind.SECTIONS, "The targets: where records go, and as what.", True),
        FieldSpec("schedule", FieldKind.TEXT, "When it runs: five fields of cron, in UTC."),
        FieldSpec("retry", FieldKind.SECTION, "How often a target is tried again."),
        FieldSpec(
            "env_file", FieldKind.TEXT, "A file of `NAME=value` lines, beside the definition."
        ),
        KEEP_RUNS,
        *REPORT_FIELDS,
        FieldSpec(
            "ledger", FieldKind.TEXT, "Where runs are recorded; the first target's graph if absent."
        ),
    ),
)
GRAPH: Final = SectionSchema(
    "graph",
    "A graph, by its address alone or as a section.",
    (
        FieldSpec(
            "uri", FieldKind.TEXT, "Its address: a path beside the definition, or `s3://…`.", True
        ),
        FieldSpec(
            "schema", FieldKind.TEXT, "A `.pg` file to check mappings with before the graph exists."
        ),
    ),
)
RETRY: Final = SectionSchema(
    "retry",
    "Only failures that may pass are tried again.",
    (
        FieldSpec(
            "attempts", FieldKind.INTEGER, "How often a target is tried at most.", False, 3, (), 1
        ),
        FieldSpec(
            "wait", FieldKind.SPAN, "The pause before the second attempt; it doubles.", False, 2
        ),
    ),
)
TARGET: Final = SectionSchema(
    "target",
    "One commit on one branch of one graph; targets succeed or fail on their own.",
    (
        FieldSpec("graph", FieldKind.TEXT, "An id of `graphs`, or `graph.` and the id.", True),
        FieldSpec("branch", FieldKind.TEXT, "The branch that is written to.", False, "main"),
        FieldSpec("map", FieldKind.ANY, "The mapping, or the path of a `.map.yaml` file.", True),
        FieldSpec(
            "mode",
            FieldKind.TEXT,
            "What happens to entities that exist: `merge` changes what is set.",
            False,
            "merge",
            MODES,
        ),
        FieldSpec(
            "run_branch", FieldKind.SECTION, "Write to a branch of the run, not to `branch` itself."
        ),
        FieldSpec(
            "on_error", FieldKind.TEXT, "What bad rows do to the run.", False, "fail", ON_ERROR
        ),
        FieldSpec("rejects", FieldKind.TEXT, "The folder that quarantined rows go to."),
        FieldSpec(
            "max_rejected",
            FieldKind.TEXT,
            "How many rows may be quarantined, or which share: `100`, `5%`. All never may.",
            False,
            "10%",
        ),
        FieldSpec(
            "min_rows", FieldKind.INTEGER, "Fewer rows to load than these fail the run.", False, 0
        ),
    ),
)
RUN_BRANCH: Final = SectionSchema(
    "run_branch",
    "A branch for each run, which starts from the branch of the target.",
    (
        FieldSpec(
            "name",
            FieldKind.TEXT,
            "Its name; `{pipeline}` and `{slot}` stand for those of the run.",
            False,
            "runs/{pipeline}/{slot}",
        ),
        FieldSpec(
            "merge", FieldKind.TEXT, "Who merges it into the target.", False, "automatic", MERGES
        ),
    ),
)
MAPPING: Final = SectionSchema(
    "map",
    "Which nodes and edges a record becomes.",
    (
        FieldSpec("nodes", FieldKind.SECTIONS, "A section for each node type.", False, ()),
        FieldSpec("edges", FieldKind.SECTIONS, "A section for each edge type.", False, ()),
    ),
)
_RULE_FIELDS: Final = (
    FieldSpec("type", FieldKind.TEXT, "The type of the target graph.", True),
    FieldSpec("source", FieldKind.TEXT, "Which of several sources the records are of."),
    FieldSpec("where", FieldKind.SQL, "Only records for which this is true."),
    FieldSpec(
        "explode",
        FieldKind.TEXTS,
        "`ARRAY as NAME`: one record for each element, which has this name.",
        False,
        (),
    ),
    FieldSpec("chunk", FieldKind.SECTION, "Cut a text into pieces: one record for each piece."),
    FieldSpec("distinct", FieldKind.BOOLEAN, "Whether equal rows are one row.", False, False),
    FieldSpec(
        "latest",
        FieldKind.TEXTS,
        "Columns by which the last record of an entity is found: the others are left out.",
        False,
        (),
    ),
    FieldSpec("id", FieldKind.VALUE, "The id of the entity, for types without a key."),
    *DELETION_FIELDS,
    EXPECT_FIELD,
)
NODE_RULE: Final = SectionSchema(
    "node",
    "What a record gives of one node type.",
    (*_RULE_FIELDS, FieldSpec("set", FieldKind.VALUES, "A value for each property.", True)),
)
EDGE_RULE: Final = SectionSchema(
    "edge",
    "What a record gives of one edge type.",
    (
        *_RULE_FIELDS,
        FieldSpec(
            "from", FieldKind.ANY, "The key of the source: a value, or values by key member.", True
        ),
        FieldSpec(
            "to", FieldKind.ANY, "The key of the target: a value, or values by key member.", True
        ),
        FieldSpec("set", FieldKind.VALUES, "A value for each property."),
    ),
)
CHUNK: Final = SectionSchema(
    "chunk",
    "`chunk.text` and `chunk.number`, from 0, are the piece and its number.",
    (
        FieldSpec("text", FieldKind.SQL, "The text that is cut.", True),
        FieldSpec(
            "words", FieldKind.INTEGER, "How many words a piece has at most.", False, 200, (), 1
        ),
        FieldSpec("overlap", FieldKind.INTEGER, "How many words a piece repeats.", False, 0),
    ),
)
VALUE: Final = SectionSchema(
    "value",
    "A text alone is a Spark SQL expression over the record.",
    (
        FieldSpec("value", FieldKind.ANY, "A constant: a text, a number, true, false, or a list."),
        FieldSpec("template", FieldKind.TEXT, "A text; `{expression}` in it stands for a value."),
        FieldSpec("embed", FieldKind.SQL, "The text whose vector is stored, made by the embedder."),
    ),
)
_COLUMNS_FIELD: Final = FieldSpec(
    "columns", FieldKind.TEXT, "The columns, as Spark writes them: `name string, age int`."
)
_INCREMENTAL_FIELD: Final = FieldSpec(
    "incremental", FieldKind.SECTION, "Read only what is new since the last run."
)
FILES: Final = SectionSchema(
    "files",
    "On disk or S3. JSON has an object on each line. CSV has a header; its columns are texts.",
    (
        FieldSpec("kind", FieldKind.TEXT, "`files`, or `s3-files`.", True),
        FieldSpec(
            "paths", FieldKind.TEXTS, "Paths, folders or patterns, beside the definition.", True
        ),
        FieldSpec(
            "format",
            FieldKind.TEXT,
            "The format, if names do not show it.",
            False,
            None,
            FORMATS,
        ),
        _COLUMNS_FIELD,
        FieldSpec(
            "multiline",
            FieldKind.BOOLEAN,
            "Whether a JSON file is one array. Values of CSV may always have line breaks.",
            False,
            False,
        ),
        FieldSpec(
            "encoding",
            FieldKind.TEXT,
            "The encoding of JSON and CSV, by any of its usual names.",
            False,
            UTF_8,
            ENCODINGS,
            normalize=normalize_encoding,
        ),
        FieldSpec("csv", FieldKind.SECTION, "How CSV files are written."),
        FieldSpec("options", FieldKind.NAMED, "How S3 is reached, beside the `AWS_…` environment."),
        FieldSpec(
            "new_files",
            FieldKind.BOOLEAN,
            "Whether a run reads only files that are new or changed since the last run.",
            False,
            False,
        ),
        DRIFT_FIELD,
    ),
)
POSTGRES: Final = SectionSchema(
    "postgres",
    "A table or query of PostgreSQL, read in parallel ranges of one snapshot.",
    (
        FieldSpec("kind", FieldKind.TEXT, "`postgres`.", True),
        FieldSpec(
            "url", FieldKind.TEXT, "The address: `${NAME}`, or one without a password.", True
        ),
        FieldSpec("table", FieldKind.TEXT, "The table, with its schema if it is not `public`."),
        FieldSpec("query", FieldKind.TEXT, "A query, instead of a table."),
        FieldSpec("key", FieldKind.TEXT, "An integer column of a query or view to cut it by."),
        FieldSpec(
            "ranges", FieldKind.INTEGER, "How many ranges are read in parallel.", False, 8, (), 1
        ),
        _INCREMENTAL_FIELD,
    ),
)
HTTP: Final = SectionSchema(
    "http",
    "JSON from an HTTP service, page by page.",
    (
        FieldSpec("kind", FieldKind.TEXT, "`http`.", True),
        FieldSpec("url", FieldKind.TEXT, "The address of the first page.", True),
        FieldSpec("headers", FieldKind.NAMED, "Headers; a secret only as `${NAME}`."),
        FieldSpec("params", FieldKind.NAMED, "Parameters of the address."),
        FieldSpec("token", FieldKind.TEXT, "A bearer token: `${NAME}`."),
        FieldSpec("records", FieldKind.TEXT, "Where the array is in the answer: `data.items`."),
        FieldSpec("body", FieldKind.TEXT, "A JSON text that is posted; without it, a GET is sent."),
        FieldSpec("oauth", FieldKind.SECTION, "Where to get a token, instead of `token`."),
        FieldSpec(
            "rate", FieldKind.INTEGER, "At most so many requests a second.", False, None, (), 1
        ),
        FieldSpec("paging", FieldKind.SECTION, "How to get the next page."),
        FieldSpec("timeout", FieldKind.SPAN, "How long to wait for an answer.", False, 30),
        _COLUMNS_FIELD,
        _INCREMENTAL_FIELD,
    ),
)
INCREMENTAL: Final = SectionSchema(
    "incremental",
    "A run reads the records whose cursor is above the highest one of the last run.",
    (
        FieldSpec(
            "cursor",
            FieldKind.TEXT,
            "A column that grows: a time of change, or a key that counts up.",
            True,
        ),
        FieldSpec(
            "lag",
            FieldKind.SPAN,
            "How far below the last time records may still appear: those are read again.",
            False,
            0,
        ),
        FieldSpec(
            "param",
            FieldKind.TEXT,
            "HTTP: the parameter that asks the service for records after the position.",
        ),
    ),
)
OAUTH: Final = SectionSchema(
    "oauth",
    "The client credentials of OAuth 2: a token is fetched, and again when it has expired.",
    (
        FieldSpec("token_url", FieldKind.TEXT, "The address that issues tokens.", True),
        FieldSpec("client_id", FieldKind.TEXT, "The id of the client.", True),
        FieldSpec("client_secret", FieldKind.TEXT, "Its secret: `${NAME}`.", True),
        FieldSpec("scope", FieldKind.TEXT, "What the token is for."),
    ),
)
PAGING: Final = SectionSchema(
    "paging",
    "One of: `link`, `cursor`, `page`, `offset`.",
    (
        FieldSpec(
            "link", FieldKind.TEXT, "Where the address of the next page is; `header`: the header."
        ),
        FieldSpec("cursor", FieldKind.TEXT, "Where the cursor of the next page is in the answer."),
        FieldSpec("page", FieldKind.TEXT, "The parameter with the number of the page."),
        FieldSpec("offset", FieldKind.TEXT, "The parameter with the number of records to skip."),
        FieldSpec("param", FieldKind.TEXT, "The parameter that takes the cursor.", False, "cursor"),
        FieldSpec("first", FieldKind.INTEGER, "The number of the first page.", False, 1),
        FieldSpec(
            "pages_max", FieldKind.INTEGER, "More pages than these are an error.", False, 10_000
        ),
    ),
)
GRAPH_FEED: Final = SectionSchema(
    "graph feed",
    "What the commits of another graph's branch changed since the last run.",
    (
        FieldSpec("kind", FieldKind.TEXT, "`graph`.", True),
        FieldSpec("uri", FieldKind.TEXT, "The address of the graph.", True),
        FieldSpec("branch", FieldKind.TEXT, "The branch that is followed.", False, "main"),
        FieldSpec("types", FieldKind.TEXTS, "Only changes of these types."),
        FieldSpec("ops", FieldKind.TEXTS, "Only these changes.", False, OPS[:2], OPS),
        FieldSpec(
            "start", FieldKind.TEXT, "Where the first run starts.", False, "beginning", STARTS
        ),
        FieldSpec(
            "changes_max", FieldKind.INTEGER, "About how many a run takes.", False, 1_000_000, (), 1
        ),
        FieldSpec(
            "per",
            FieldKind.TEXT,
            "A record for each changed `entity`, as it is in the end, or for each `change` of it.",
            False,
            PER[0],
            PER,
        ),
        _COLUMNS_FIELD,
    ),
)
KAFKA: Final = SectionSchema(
    "kafka",
    "What topics got since the last run, up to where they end when a run begins.",
    (
        FieldSpec("kind", FieldKind.TEXT, "`kafka`.", True),
        FieldSpec("servers", FieldKind.TEXT, "Bootstrap servers: `host:port,…`.", True),
        FieldSpec("topics", FieldKind.TEXTS, "The topics.", True),
        FieldSpec(
            "start", FieldKind.TEXT, "Where the first run starts.", False, "beginning", STARTS
        ),
        FieldSpec("options", FieldKind.NAMED, "Options of the client; secrets only as `${NAME}`."),
        FieldSpec(
            "messages_max", FieldKind.INTEGER, "At most so many each run.", False, 10_000_000, (), 1
        ),
        _COLUMNS_FIELD,
    ),
)
SPARK: Final = SectionSchema(
    "spark",
    "What any data source of Spark reads: Delta, Iceberg, JDBC, Avro, partitioned folders.",
    (
        FieldSpec("kind", FieldKind.TEXT, "`spark`.", True),
        FieldSpec("format", FieldKind.TEXT, "The format: `csv`, `parquet`, `delta`, `jdbc`.", True),
        FieldSpec("paths", FieldKind.TEXTS, "Paths beside the definition, or addresses."),
        FieldSpec("options", FieldKind.NAMED, "Its options; secrets only as `${NAME}`."),
        _COLUMNS_FIELD,
    ),
)
SQL: Final = SectionSchema(
    "sql",
    "A query of Spark SQL over the other sources, each of which is a view with its name.",
    (
        FieldSpec("kind", FieldKind.TEXT, "`sql`.", True),
        FieldSpec("query", FieldKind.TEXT, "The query: joins, windows, aggregates.", True),
    ),
)
PYTHON: Final = SectionSchema(
    "python",
    "What a Python function returns: a DataFrame, or Arrow tables or batches.",
    (
        FieldSpec("kind", FieldKind.TEXT, "`python`.", True),
        FieldSpec(
            "function",
            FieldKind.TEXT,
            "`module:name`, of a file beside the definition or installed: `name(spark, options)`.",
            True,
        ),
        FieldSpec("options", FieldKind.NAMED, "Its options; secrets only as `${NAME}`."),
    ),
)
DLT: Final = SectionSchema(
    "dlt",
    "A table of a source of dlt, or of a pipeline of dlt that delivers to this definition.",
    (
        FieldSpec("kind", FieldKind.TEXT, "`dlt`.", True),
        FieldSpec(
            "function",
            FieldKind.TEXT,
            "`module:name` of the source or the resource; without it, dlt delivers the table.",
        ),
        FieldSpec("table", FieldKind.TEXT, "The table of dlt; the name of the source if absent."),
        FieldSpec("options", FieldKind.NAMED, "Its arguments; secrets only as `${NAME}`."),
    ),
)
SOURCES: Final = {
    "files": FILES,
    "s3-files": FILES,
    "postgres": POSTGRES,
    "http": HTTP,
    "graph": GRAPH_FEED,
    "kafka": KAFKA,
    "spark": SPARK,
    "sql": SQL,
    "python": PYTHON,
    "dlt": DLT,
}
# In the order of the reference.
SECTION_SCHEMAS: Final = (
    PIPELINE,
    GRAPH,
    RETRY,
    HOOK,
    METRICS,
    LINEAGE,
    TARGET,
    RUN_BRANCH,
    MAPPING,
    NODE_RULE,
    EDGE_RULE,
    VALUE,
    CHUNK,
    OP,
    EXPECTATION,
    FILES,
    CSV_SECTION,
    DRIFT,
    POSTGRES,
    HTTP,
    OAUTH,
    PAGING,
    INCREMENTAL,
    GRAPH_FEED,
    KAFKA,
    SPARK,
    SQL,
    PYTHON,
    DLT,
)
