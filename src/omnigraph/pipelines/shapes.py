"""Every section of a pipeline's definition: its fields, and what they mean.

This is the vocabulary of the files; the reference page is made of it.
"""

from __future__ import annotations

from typing import Final

from omnigraph.pipelines.encodings import ENCODINGS, UTF_8
from omnigraph.pipelines.fields import Field, Kind, Shape

MODES: Final = ("append", "merge", "overwrite")
ON_ERROR: Final = ("fail", "quarantine")
MERGES: Final = ("automatic", "review")
FORMATS: Final = ("json", "csv", "parquet", "orc")
STARTS: Final = ("beginning", "now")
OPS: Final = ("insert", "update", "delete")
PER: Final = ("entity", "change")

PIPELINE: Final = Shape(
    "pipeline",
    "A file of its own; its name is that of the file, without `.yaml`.",
    (
        Field("name", Kind.TEXT, "The name, if it is not that of the file."),
        Field("description", Kind.TEXT, "What it is for, for people."),
        Field("graphs", Kind.NAMED, "The graphs it writes to, by the id that targets use."),
        Field("providers", Kind.NAMED, "`source:` holds sources that are referred to by name."),
        Field("source", Kind.ANY, "Where records come from: a section, or `provider.source.NAME`."),
        Field("sources", Kind.NAMED, "Several sources by name, instead of one."),
        Field("into", Kind.SECTIONS, "The targets: where records go, and as what.", True),
        Field("schedule", Kind.TEXT, "When it runs: five fields of cron, in UTC."),
        Field("retry", Kind.SECTION, "How often a target is tried again."),
        Field("env_file", Kind.TEXT, "A file of `NAME=value` lines, beside the definition."),
        Field("ledger", Kind.TEXT, "Where runs are recorded; the first target's graph if absent."),
    ),
)
GRAPH: Final = Shape(
    "graph",
    "A graph, by its address alone or as a section.",
    (
        Field("uri", Kind.TEXT, "Its address: a path beside the definition, or `s3://…`.", True),
        Field("schema", Kind.TEXT, "A `.pg` file to check mappings with before the graph exists."),
    ),
)
RETRY: Final = Shape(
    "retry",
    "Only failures that may pass are tried again.",
    (
        Field("attempts", Kind.INTEGER, "How often a target is tried at most.", False, 3, (), 1),
        Field("wait", Kind.SPAN, "The pause before the second attempt; it doubles.", False, 2),
    ),
)
TARGET: Final = Shape(
    "target",
    "One commit on one branch of one graph; targets succeed or fail on their own.",
    (
        Field("graph", Kind.TEXT, "An id of `graphs`, or `graph.` and the id.", True),
        Field("branch", Kind.TEXT, "The branch that is written to.", False, "main"),
        Field("map", Kind.ANY, "The mapping, or the path of a `.map.yaml` file.", True),
        Field(
            "mode",
            Kind.TEXT,
            "What happens to entities that exist: `merge` changes what is set.",
            False,
            "merge",
            MODES,
        ),
        Field("run_branch", Kind.SECTION, "Write to a branch of the run, not to `branch` itself."),
        Field("on_error", Kind.TEXT, "What bad rows do to the run.", False, "fail", ON_ERROR),
        Field("rejects", Kind.TEXT, "The folder that quarantined rows go to."),
        Field(
            "max_rejected",
            Kind.TEXT,
            "How many rows may be quarantined, or which share: `100`, `5%`. All never may.",
            False,
            "10%",
        ),
        Field("min_rows", Kind.INTEGER, "Fewer rows to load than these fail the run.", False, 0),
    ),
)
RUN_BRANCH: Final = Shape(
    "run_branch",
    "A branch for each run, which starts from the branch of the target.",
    (
        Field(
            "name",
            Kind.TEXT,
            "Its name; `{pipeline}` and `{slot}` stand for those of the run.",
            False,
            "runs/{pipeline}/{slot}",
        ),
        Field("merge", Kind.TEXT, "Who merges it into the target.", False, "automatic", MERGES),
    ),
)
MAPPING: Final = Shape(
    "map",
    "Which nodes and edges a record becomes.",
    (
        Field("nodes", Kind.SECTIONS, "A section for each node type.", False, ()),
        Field("edges", Kind.SECTIONS, "A section for each edge type.", False, ()),
    ),
)
_RULE: Final = (
    Field("type", Kind.TEXT, "The type of the target graph.", True),
    Field("source", Kind.TEXT, "Which of several sources the records are of."),
    Field("where", Kind.SQL, "Only records for which this is true."),
    Field(
        "explode",
        Kind.TEXTS,
        "`ARRAY as NAME`: one record for each element, which has this name.",
        False,
        (),
    ),
    Field("chunk", Kind.SECTION, "Cut a text into pieces: one record for each piece."),
    Field("distinct", Kind.BOOLEAN, "Whether equal rows are one row.", False, False),
    Field("id", Kind.VALUE, "The id of the entity, for types without a key."),
)
NODE_RULE: Final = Shape(
    "node",
    "What a record gives of one node type.",
    (*_RULE, Field("set", Kind.VALUES, "A value for each property.", True)),
)
EDGE_RULE: Final = Shape(
    "edge",
    "What a record gives of one edge type.",
    (
        *_RULE,
        Field("from", Kind.ANY, "The key of the source: a value, or values by key member.", True),
        Field("to", Kind.ANY, "The key of the target: a value, or values by key member.", True),
        Field("set", Kind.VALUES, "A value for each property."),
    ),
)
CHUNK: Final = Shape(
    "chunk",
    "`chunk.text` and `chunk.number`, from 0, are the piece and its number.",
    (
        Field("text", Kind.SQL, "The text that is cut.", True),
        Field("words", Kind.INTEGER, "How many words a piece has at most.", False, 200, (), 1),
        Field("overlap", Kind.INTEGER, "How many words a piece repeats.", False, 0),
    ),
)
VALUE: Final = Shape(
    "value",
    "A text alone is a Spark SQL expression over the record.",
    (
        Field("value", Kind.ANY, "A constant: a text, a number, true, false, or a list."),
        Field("template", Kind.TEXT, "A text; `{expression}` in it stands for a value."),
        Field("embed", Kind.SQL, "The text whose vector is stored, made by the embedder."),
    ),
)
_COLUMNS: Final = Field(
    "columns", Kind.TEXT, "The columns, as Spark writes them: `name string, age int`."
)
FILES: Final = Shape(
    "files",
    "On disk or S3. JSON has an object on each line. CSV has a header; its columns are texts.",
    (
        Field("kind", Kind.TEXT, "`files`, or `s3-files`.", True),
        Field("paths", Kind.TEXTS, "Paths, folders or patterns, beside the definition.", True),
        Field("format", Kind.TEXT, "The format, if file names do not tell.", False, None, FORMATS),
        _COLUMNS,
        Field(
            "multiline",
            Kind.BOOLEAN,
            "Whether a JSON file is one array, or values of a CSV file have line breaks.",
            False,
            False,
        ),
        Field("encoding", Kind.TEXT, "The encoding of JSON and CSV.", False, UTF_8, ENCODINGS),
        Field("options", Kind.NAMED, "How S3 is reached, beside the `AWS_…` environment."),
    ),
)
POSTGRES: Final = Shape(
    "postgres",
    "A table or query of PostgreSQL, read in parallel ranges of one snapshot.",
    (
        Field("kind", Kind.TEXT, "`postgres`.", True),
        Field("url", Kind.TEXT, "The address: `${NAME}`, or one without a password.", True),
        Field("table", Kind.TEXT, "The table, with its schema if it is not `public`."),
        Field("query", Kind.TEXT, "A query, instead of a table."),
        Field("key", Kind.TEXT, "An integer column of a query or view to cut it by."),
        Field("ranges", Kind.INTEGER, "How many ranges are read in parallel.", False, 8, (), 1),
    ),
)
HTTP: Final = Shape(
    "http",
    "JSON from an HTTP service, page by page.",
    (
        Field("kind", Kind.TEXT, "`http`.", True),
        Field("url", Kind.TEXT, "The address of the first page.", True),
        Field("headers", Kind.NAMED, "Headers; a secret only as `${NAME}`."),
        Field("params", Kind.NAMED, "Parameters of the address."),
        Field("token", Kind.TEXT, "A bearer token: `${NAME}`."),
        Field("records", Kind.TEXT, "Where the array is in the answer: `data.items`."),
        Field("paging", Kind.SECTION, "How to get the next page."),
        Field("timeout", Kind.SPAN, "How long to wait for an answer.", False, 30),
        _COLUMNS,
    ),
)
PAGING: Final = Shape(
    "paging",
    "One of: `link`, `cursor`, `page`, `offset`.",
    (
        Field("link", Kind.TEXT, "Where the address of the next page is; `header`: the header."),
        Field("cursor", Kind.TEXT, "Where the cursor of the next page is in the answer."),
        Field("page", Kind.TEXT, "The parameter with the number of the page."),
        Field("offset", Kind.TEXT, "The parameter with the number of records to skip."),
        Field("param", Kind.TEXT, "The parameter that takes the cursor.", False, "cursor"),
        Field("first", Kind.INTEGER, "The number of the first page.", False, 1),
        Field("pages_max", Kind.INTEGER, "More pages than these are an error.", False, 10_000),
    ),
)
GRAPH_FEED: Final = Shape(
    "graph feed",
    "What the commits of another graph's branch changed since the last run.",
    (
        Field("kind", Kind.TEXT, "`graph`.", True),
        Field("uri", Kind.TEXT, "The address of the graph.", True),
        Field("branch", Kind.TEXT, "The branch that is followed.", False, "main"),
        Field("types", Kind.TEXTS, "Only changes of these types."),
        Field("ops", Kind.TEXTS, "Only these changes.", False, OPS[:2], OPS),
        Field("start", Kind.TEXT, "Where the first run starts.", False, "beginning", STARTS),
        Field("changes_max", Kind.INTEGER, "About how many a run takes.", False, 1_000_000, (), 1),
        Field(
            "per",
            Kind.TEXT,
            "A record for each changed `entity`, as it is in the end, or for each `change` of it.",
            False,
            PER[0],
            PER,
        ),
        _COLUMNS,
    ),
)
KAFKA: Final = Shape(
    "kafka",
    "What topics got since the last run, up to where they end when a run begins.",
    (
        Field("kind", Kind.TEXT, "`kafka`.", True),
        Field("servers", Kind.TEXT, "Bootstrap servers: `host:port,…`.", True),
        Field("topics", Kind.TEXTS, "The topics.", True),
        Field("start", Kind.TEXT, "Where the first run starts.", False, "beginning", STARTS),
        Field("options", Kind.NAMED, "Options of the client; secrets only as `${NAME}`."),
        Field("messages_max", Kind.INTEGER, "At most so many each run.", False, 10_000_000, (), 1),
        _COLUMNS,
    ),
)
SOURCES: Final = {
    "files": FILES,
    "s3-files": FILES,
    "postgres": POSTGRES,
    "http": HTTP,
    "graph": GRAPH_FEED,
    "kafka": KAFKA,
}
# In the order of the reference.
SHAPES: Final = (
    PIPELINE,
    GRAPH,
    RETRY,
    TARGET,
    RUN_BRANCH,
    MAPPING,
    NODE_RULE,
    EDGE_RULE,
    VALUE,
    CHUNK,
    FILES,
    POSTGRES,
    HTTP,
    PAGING,
    GRAPH_FEED,
    KAFKA,
)
