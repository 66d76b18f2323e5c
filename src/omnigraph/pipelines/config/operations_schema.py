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
KEEP_RUNS: Final = FieldSpec(
    "keep_runs",
    FieldKind.SPAN,
    "How long the ledger keeps runs; for ever if absent. The newest run always stays.",
)
