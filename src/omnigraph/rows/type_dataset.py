"""The entities of one type as a dataset of Arrow, for DuckDB, DataFusion, polars and others.

Columns are called as in the schema, after `@id` and, for edges, `@src` and `@dst`; blobs are among
them if they are asked for. Only the columns that a scan asks for are read. A scan of all columns
compares all files with their digests before, one of some columns as many as a query does.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import and_
from typing import Any, NoReturn, TypeAlias

import pyarrow as pa
import pyarrow.dataset as ds

from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN
from omnigraph.rows.result_types import ID_FIELD, result_type_of, to_result_values
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey
from omnigraph.schema.catalog import SOURCE, TARGET
from omnigraph.versioning.effects import ID_COLUMN

_SYSTEM = {ID_FIELD: ID_COLUMN, SOURCE: SOURCE_COLUMN, TARGET: TARGET_COLUMN}
_Projection: TypeAlias = list[str] | dict[str, ds.Expression] | None


class TypeDataset(ds.Dataset):  # type: ignore[misc]  # pyarrow is untyped
    """One type at one snapshot; never changes, and may be scanned again and again."""

    def __init__(
        self, view: View, type_key: TypeKey, *where: ds.Expression, has_blobs: bool = False
    ) -> None:
        shape, properties = view.get_shape(type_key), view.types[type_key].properties
        self._view = view
        self._type_key = type_key
        self._where = where
        self._has_blobs = has_blobs
        self._columns = {
            name: column for name, column in _SYSTEM.items() if column in shape.schema.names
        }
        kinds = dict.fromkeys(self._columns, pa.utf8())
        for name, each in properties.items():
            if has_blobs or not each.type.is_blob:
                self._columns[name] = shape.columns[name]
                is_blob = each.type.is_blob
                kinds[name] = (
                    pa.large_binary() if is_blob else result_type_of(each.type, view.catalog)
                )
        self._schema = pa.schema(list(kinds.items()))

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._schema

    def scanner(
        self,
        columns: _Projection = None,
        filter: ds.Expression | None = None,  # noqa: A002 — the name that callers use
        **options: Any,  # Any: whatever a scanner takes
    ) -> ds.Scanner:
        """A scan of some columns of the rows that pass a filter."""
        tests = [*self._where, *([] if filter is None else [filter])]
        names = self._list_needed_columns(columns, tests)
        return ds.Scanner.from_batches(
            self._read_batches(names),
            schema=pa.schema([self._schema.field(name) for name in names]),
            columns=self._schema.names if columns is None else columns,
            filter=reduce(and_, tests) if tests else None,
            **{name: value for name, value in options.items() if value is not None},
        )

    def filter(self, expression: ds.Expression) -> TypeDataset:
        """The rows that pass a filter."""
        where, has_blobs = (*self._where, expression), self._has_blobs
        return TypeDataset(self._view, self._type_key, *where, has_blobs=has_blobs)

    def get_fragments(self, filter: ds.Expression | None = None) -> Iterator[_DatasetFragment]:  # noqa: A002
        """The dataset as its only part."""
        yield _DatasetFragment(self if filter is None else self.filter(filter))

    def count_rows(
        self,
        filter: ds.Expression | None = None,  # noqa: A002
        **options: Any,  # Any: whatever a scanner takes
    ) -> int:
        """How many rows pass a filter."""
        if filter is None and not self._where:
            return self._view.snapshot.pins[str(self._type_key)].rows
        count: int = self.scanner(filter=filter, **options).count_rows()
        return count

    def _raise_unsupported(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("this dataset cannot do that: read it with to_table() first")

    # Arrow would do these with a dataset of its own, which is not there.
    sort_by = join = join_asof = replace_schema = _raise_unsupported
    partition_expression = property(_raise_unsupported)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a dataset of a snapshot cannot be pickled: open the graph there")

    def _list_needed_columns(self, columns: _Projection, tests: list[ds.Expression]) -> list[str]:
        """The columns to read: Arrow does not say what an expression reads, but it prints it."""
        names: list[str] = self._schema.names
        match columns:
            case None:
                return names
            case dict():
                wanted, expressions = [], [*columns.values(), *tests]
            case _:
                wanted, expressions = columns, tests
        text = " ".join(map(str, expressions))
        needed = [name for name in names if name in wanted or name in text]
        # Something has to be read to count the rows.
        return needed or [ID_FIELD]

    def _read_batches(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        schema = pa.schema([self._schema.field(name) for name in names])
        physical = [self._columns[name] for name in names]
        table = self._view.open_table(self._type_key)
        if len(names) == len(self._schema.names):
            # All of it leaves the graph.
            table.require_whole()
        for batch in table.scan_batches(columns=physical):
            values = [to_result_values(batch.column(name)) for name in physical]
            yield pa.record_batch(values, schema=schema)


class _DatasetFragment:
    """A dataset as the part of itself that DataFusion scans."""

    def __init__(self, dataset: TypeDataset) -> None:
        self._dataset = dataset

    def scanner(self, _: pa.Schema = None, **options: Any) -> ds.Scanner:
        """A scan of the part."""
        return self._dataset.scanner(**options)
