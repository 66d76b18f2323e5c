"""What a write does to the entities of a graph, as data: the input of validation and commits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN, TableShape
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.storage.tables.pins import Pin
from omnigraph.storage.tables.row_ids import ROW_ADDRESS, ROW_ID
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.versioning.id_sets import FEW_MAX

# Committed rows as they are looked up: whose they are, and where, so that their deletion does not
# look them up again.
COPIES: Final = pa.schema(
    [
        pa.field(ID_COLUMN, pa.utf8()),
        pa.field(ROW_ID, pa.uint64()),
        pa.field(ROW_ADDRESS, pa.uint64()),
    ]
)

# The same for edges, with the nodes at their ends.
EDGE_COPIES: Final = pa.schema(
    [*COPIES, pa.field(SOURCE_COLUMN, pa.utf8()), pa.field(TARGET_COLUMN, pa.utf8())]
)
NO_COPIES: Final = COPIES.empty_table()
NO_EDGE_COPIES: Final = EDGE_COPIES.empty_table()


def copies_schema_of(type_key: TypeKey) -> pa.Schema:
    """The columns of the committed copies of a type."""
    return EDGE_COPIES if type_key.kind is TypeKind.EDGE else COPIES


# Physical columns that a source of rows does not have: which rows of a type, by column.
AbsentRows: TypeAlias = Mapping[str, np.ndarray[Any, np.dtype[np.bool_]]]

# Marks are made one by one and kept in records; beyond this a write says "anything of the type".
MARKS_MAX: Final = FEW_MAX

# Of more entities than this, the write asks that none of their type is deleted.
PRESENT_MAX: Final = FEW_MAX

# A scan of the table costs less than asking a set of known ids this often.
LOOKUP_IDS_MAX: Final = FEW_MAX

# Up to so many marks, at a few microseconds each, are made when another commit asks for them; a
# write that read more depends on its whole type.
DEFERRED_MARKS_MAX: Final = 1_000_000


class WriteMode(Enum):
    """What happens to the committed entities of a type when rows are written."""

    # A written id that exists is a KeyConflictError.
    INSERT = "insert"
    # A written id that exists is replaced whole.
    UPSERT = "upsert"
    # Every committed entity of the type ends.
    OVERWRITE = "overwrite"


@dataclass(frozen=True)
class RowOrigins:
    """Where each row came from: a source such as `people.jsonl`, and a number of each row in it."""

    source: str
    # One int64 per row, counted from 1.
    numbers: pa.Array
    # What the numbers count: `line`, `record` or `row`.
    noun: str = "line"

    def location_of(self, row: int) -> str:
        """Where a row came from, for people."""
        return f"{self.source} {self.noun} {self.numbers[row].as_py()}"


@dataclass(frozen=True)
class TypeChange:
    """What a write does to one type.

    rows        the image after the write of every entity it writes: one row per id, with all
                columns of the shape's schema in its order, `__id` included; blobs as large binaries
    deleted     ids of committed entities that end (with OVERWRITE, all others end too)
    known       the committed copies of written and deleted entities (COPIES, for edges
                EDGE_COPIES), if the writer has looked them all up on the view; they need no second
                look. `_rowaddr` may be missing
    is_cascade  every committed edge at the deleted entities ends with them, and the request says
                what the writer read to know them; they need no second look either
    batches     what one statement or load wrote, where `rows` no longer shows it all: every batch
                must be unique in itself (columns as `rows`)
    origins     where each of `rows` came from
    distinct    refuses rows that share an id, where that is not known yet: of many rows it is
                asked while they are being written
    adopted     the type becomes this version of its table, which a commit elsewhere made of the
                committed one: the rules of its own hold in it already, and the rows, which are not
                written, need no vectors and blobs
    absent      rows that say nothing about a column, and hold null there: an entity that exists
                keeps its committed value, which is read from the view that the change is prepared
                on, and a new one gets a default, if there is one. A row image is complete once
                this is empty
    now         the time of the write in milliseconds, which defaults may read
    """

    shape: TableShape
    mode: WriteMode
    rows: pa.Table
    deleted: pa.Array
    known_copies: pa.Table | None = None
    is_cascade: bool = False
    batches: tuple[pa.Table, ...] = ()
    origins: RowOrigins | None = None
    require_distinct: Callable[[], None] | None = None
    adopted: Pin | None = None
    absent: AbsentRows = field(default_factory=dict)
    now: int | None = None

    @property
    def written(self) -> pa.Array:
        """The ids of the rows."""
        return combine_column(self.rows[ID_COLUMN])


# Types that are not touched are absent.
GraphChange: TypeAlias = Mapping[TypeKey, TypeChange]
NO_IDS = pa.array([], pa.utf8())


def combine_column(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array; most have one chunk, which is it."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
