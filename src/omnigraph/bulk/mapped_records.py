"""Records that rules map to rows while they are read: one reading, any number of rules."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class RecordBlock:
    """Some records: the columns that rules need, and which records they are.

    `part` and `numbers` identify them in every reading of their source. `unreadable` has the texts
    of records that could not be read, whose values are null. `read_all` gives the same records with
    all columns.
    """

    rows: pa.RecordBatch
    part: int
    numbers: pa.Array
    read_all: Callable[[], pa.RecordBatch]
    unreadable: pa.Array | None = None


class RecordReader(ABC):
    """A part of the source with a name; equal readers read the same records, in any process."""

    __slots__ = ()
    source: str

    @abstractmethod
    def iter_blocks(self) -> Iterator[RecordBlock]:
        """The records, the same in the same order each time."""


class RowMapper(ABC):
    """A rule: what makes rows of one type of records."""

    __slots__ = ()

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns of the rows, as a table of the type has them."""

    @abstractmethod
    def map_block(self, block: RecordBlock, *, has_origins: bool = False) -> pa.RecordBatch:
        """The rows of some records, if asked with the records that they are made of."""


@dataclass(frozen=True, slots=True)
class MappedRange:
    """The rows that a rule makes of the records of a reader, which other rules may share."""

    reader: RecordReader
    rule: RowMapper
