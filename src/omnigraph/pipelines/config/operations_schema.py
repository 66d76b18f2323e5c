"""The sections of a definition about the operation of runs: what is expected, and who is notified.

They are part of the vocabulary of `config_schema`.
"""

from __future__ import annotations

from typing import Final

from omnigraph.config.yaml_reader import FieldKind, FieldSpec, SectionSchema

ACTIONS: Final = ("fail", "reject", "warn")

EXPECTATION: Final = SectionSchema(
    "expectation",
    "What the rows of a rule must be like: a condition, a number of rows, or few rejected ones.",
    (
        FieldSpec("name", FieldKind.TEXT, "Its name in the ledger; by default what it says."),
        FieldSpec(
            "that",
            FieldKind.SQL,
            "A condition over the columns of a mapped row, which is false for none of them.",
        ),
        FieldSpec("min_rows", FieldKind.INTEGER, "The least number of rows of the rule."),
        FieldSpec("max_rows", FieldKind.INTEGER, "The greatest number of rows of the rule."),
        FieldSpec(
            "max_rejected",
            FieldKind.TEXT,
            "How many rows of the type may be rejected, or which share: `100`, `5%`.",
        ),
        FieldSpec(
            "action",
            FieldKind.TEXT,
            "What happens where it is not met; `reject` rejects the rows, for `that` only.",
            False,
            "fail",
            ACTIONS,
        ),
    ),
)
EXPECT_FIELD: Final = FieldSpec(
    "expect", FieldKind.SECTIONS, "What is expected of the rows.", False, ()
)
OP: Final = SectionSchema(
    "op",
    "Which records of change data insert, update and delete. Any other value is a bad record.",
    (
        FieldSpec("column", FieldKind.SQL, "The expression that says it: usually a column.", True),
        FieldSpec("insert", FieldKind.TEXTS, "Values that insert.", False, ("insert",)),
        FieldSpec("update", FieldKind.TEXTS, "Values that update.", False, ("update",)),
        FieldSpec("delete", FieldKind.TEXTS, "Values that delete.", False, ("delete",)),
    ),
)
DELETION_FIELDS: Final = (
    FieldSpec("op", FieldKind.SECTION, "The column that says whether a record deletes its entity."),
    FieldSpec(
        "delete_missing",
        FieldKind.TEXT,
        "Delete the entities of the type that the source lacks, at most so many: `100`, `5%`.",
    ),
)
DRIFT: Final = SectionSchema(
    "drift",
    "What becomes of files whose columns are not those of the first one.",
    (
        FieldSpec(
            "new", FieldKind.TEXT, "A column that is new.", False, "ignore", ("ignore", "fail")
        ),
        FieldSpec(
            "missing",
            FieldKind.TEXT,
            "A column that is missing: `null` takes all columns of all files.",
            False,
            "fail",
            ("fail", "null", "skip"),
        ),
        FieldSpec(
            "changed",
            FieldKind.TEXT,
            "A column of another type; `skip` leaves the file out, with a warning.",
            False,
            "fail",
            ("fail", "skip"),
        ),
    ),
)
DRIFT_FIELD: Final = FieldSpec(
    "drift", FieldKind.SECTION, "What becomes of files with other columns."
)
KEEP_RUNS: Final = FieldSpec(
    "keep_runs",
    FieldKind.SPAN,
    "How long the ledger keeps runs; for ever if absent. The newest run always stays.",
)
HOOK: Final = SectionSchema(
    "hook",
    "What is run, or posted to, at the end of a run. It never changes the result of the run.",
    (
        FieldSpec(
            "command",
            FieldKind.TEXTS,
            "A program and its arguments, without a shell; it reads the document of the run.",
        ),
        FieldSpec("webhook", FieldKind.TEXT, "An address that the document is posted to."),
        FieldSpec("headers", FieldKind.NAMED, "Headers; a secret only as `${NAME}`."),
        FieldSpec("timeout", FieldKind.SPAN, "How long it may take.", False, 30, (), 1),
    ),
)
METRICS: Final = SectionSchema(
    "metrics",
    "Where the metrics of the last run go, in the text format of Prometheus.",
    (
        FieldSpec(
            "folder",
            FieldKind.TEXT,
            "The folder of a textfile collector; the file is `omnigraph_NAME.prom`.",
        ),
        FieldSpec("gateway", FieldKind.TEXT, "The address of a push gateway."),
        FieldSpec("headers", FieldKind.NAMED, "Headers; a secret only as `${NAME}`."),
    ),
)
LINEAGE: Final = SectionSchema(
    "lineage",
    "Where OpenLineage events go, instead of where the environment says.",
    (
        FieldSpec("url", FieldKind.TEXT, "The address of a service that takes events."),
        FieldSpec("endpoint", FieldKind.TEXT, "The path of its endpoint.", False, "api/v1/lineage"),
        FieldSpec("token", FieldKind.TEXT, "A bearer token: `${NAME}`."),
        FieldSpec("file", FieldKind.TEXT, "A file that gets an event on each line, instead."),
        FieldSpec("namespace", FieldKind.TEXT, "The namespace of the job."),
    ),
)
REPORT_FIELDS: Final = (
    FieldSpec("lineage", FieldKind.SECTION, "Where OpenLineage events go."),
    FieldSpec("metrics", FieldKind.SECTION, "Where metrics of runs go."),
    FieldSpec(
        "on_failure",
        FieldKind.SECTIONS,
        "Hooks for runs of which a target failed, or that were stopped.",
        False,
        (),
    ),
    FieldSpec(
        "on_success",
        FieldKind.SECTIONS,
        "Hooks for runs of which all targets succeeded.",
        False,
        (),
    ),
)
