"""Expressions that refuse a record instead of ending a job.

Spark fails a job when an expression meets a value that it can do nothing with: a text that is not a
number, a day that does not exist, a zero to divide by. So an expression that can fail is tried
first: where it does, its column is null, and the row says why it is refused. The load reports such
rows, or leaves them out, like all others that it cannot write.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from omnigraph.config.yaml_reader import Position
from omnigraph.pipelines.config.text_encodings import REPLACEMENT
from omnigraph.pipelines.mapping.mapping_sql import quote_literal, quote_name
from omnigraph.pipelines.mapping.record_ids import is_record_id_column
from omnigraph.writers.inputs.input_tables import REFUSED_MESSAGE, REFUSED_PROPERTY, REFUSED_RECORD

# The text of a record that could not be read; null for all others.
CORRUPT: Final = "_corrupt_record"
RECORD_CHARS_MAX: Final = 16 * 1024


def build_failure_condition(sql: str) -> str:
    """A condition: whether an expression has no result for a record.

    `try_to_binary` is null for whatever fails inside. The lambda keeps Spark from computing parts
    that several columns share before all of them, which is outside.
    """
    tried = f"transform(array(0), __each -> {sql})"
    return f"try_to_binary(cast(xxhash64({tried}) AS string), 'utf-8') IS NULL"


@dataclass(frozen=True, slots=True)
class RowGuard:
    """Says why records of a source are refused by a rule; `record` is the SQL of their text."""

    type_name: str
    source: str
    file: str
    record: str

    @classmethod
    def from_columns(
        cls, type_name: str, source: str, file: str, columns: Sequence[str]
    ) -> RowGuard:
        """The guard of a rule over records with these columns."""
        return cls(type_name, source, file, build_record_sql(columns))

    def build_rejection(
        self, condition: str, property_: str | None, sql: str, place: Position
    ) -> str:
        """Why a record is refused where a condition holds, else null."""
        message = self.format_rejection(property_, sql, place)
        return f"CASE WHEN {condition} THEN {_build_reason(property_, message, self.record)} END"

    def format_rejection(self, property_: str | None, sql: str, place: Position) -> str:
        """What is said of a record for which an expression has no result."""
        about = self.type_name if property_ is None else f"{self.type_name}.{property_}"
        shown = sql.removeprefix("(").removesuffix(")") if sql.startswith("(") else sql
        return (
            f"{about}: {shown} has no result for this record of source '{self.source}'"
            f" ({self.file}:{place})"
        )

    def build_unknown(self, condition: str, sql: str, known: str, place: Position) -> str:
        """Why a record is refused whose operation is not one that is declared, else null."""
        message = f"{self.type_name}: {sql} is not one of {known} ({self.file}:{place})"
        return f"CASE WHEN {condition} THEN {_build_reason(None, message, self.record)} END"

    def build_unmet(
        self, condition: str, expected: str, place: Position, *, columns: Sequence[str]
    ) -> str:
        """Why a row with these columns is refused where it is not as expected, else null."""
        message = f"{self.type_name}: expected {expected} ({self.file}:{place})"
        row = build_record_sql(columns)
        return f"CASE WHEN {condition} THEN {_build_reason(None, message, row)} END"

    @property
    def unreadable_messages(self) -> tuple[str, str]:
        """What is said of a record that cannot be read, and of one that is not text."""
        about = f"source '{self.source}' holds a record that cannot be read"
        return about, f"{about}: it has bytes that are not text in the encoding of the source"

    @property
    def unreadable(self) -> str:
        """Why a record that could not be read is refused, else null."""
        about, bytes_ = self.unreadable_messages
        corrupt = quote_name(CORRUPT)
        text = f"left({corrupt}, {RECORD_CHARS_MAX})"
        return (
            f"CASE WHEN contains({corrupt}, '{REPLACEMENT}')"
            f" THEN {_build_reason(None, bytes_, text)}"
            f" WHEN {corrupt} IS NOT NULL THEN {_build_reason(None, about, text)} END"
        )


def build_record_sql(columns: Sequence[str]) -> str:
    """The text of a record with these columns, as JSON."""
    names = [name for name in columns if name != CORRUPT and not is_record_id_column(name)]
    # A name that is there twice means neither column.
    named = ", ".join(quote_name(name) for name in names if names.count(name) == 1)
    return f"left(to_json(struct({named})), {RECORD_CHARS_MAX})" if named else "''"


def _build_reason(property_: str | None, message: str, record: str) -> str:
    named = "cast(NULL AS string)" if property_ is None else quote_literal(property_)
    return (
        f"named_struct('{REFUSED_PROPERTY}', {named},"
        f" '{REFUSED_MESSAGE}', {quote_literal(message)}, '{REFUSED_RECORD}', {record})"
    )
