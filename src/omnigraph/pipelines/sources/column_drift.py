"""Columns of files that are not those of the first one: what a source does with such files.

The columns of CSV are those of its header; tables have types too. JSON has no columns of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa

from omnigraph.errors import SourceRefusedError
from omnigraph.pipelines.config.definition import ColumnDrift, FileSource
from omnigraph.pipelines.sources.column_widths import widen_types
from omnigraph.pipelines.sources.csv_frames import read_header_names
from omnigraph.pipelines.sources.file_source import FileListing, read_file_schema
from omnigraph.storage.objects.source_files import SourceFile

FAIL: Final = "fail"
SKIP: Final = "skip"
NULL: Final = "null"
_TABLES: Final = ("parquet", "orc")
_HINT: Final = "mend or move the file, or say in the 'drift' of the source what becomes of it"


def select_fitting_files(
    source: FileSource, files: Sequence[SourceFile], listing: FileListing
) -> FileListing:
    """Those of the files whose columns fit the first one of a listing, and what became of others.

    A file that may not be left out is refused. With nothing to be done about any difference, the
    readers find those that matter: they have the columns of the first one, too.
    """
    # A file without a byte has no columns.
    first = next((file for file in listing.files if file.size), next(iter(listing.files), None))
    fills_missing = source.drift.missing == NULL
    whole = replace(listing, files=tuple(files), fills_missing=fills_missing, reference=first)
    if source.drift == ColumnDrift() or listing.format == "json" or first is None:
        return whole
    return select_by_columns(source.drift, whole, read_columns(listing, first))


def select_by_columns(
    drift: ColumnDrift, found: FileListing, wanted: Mapping[str, pa.DataType]
) -> FileListing:
    """The files whose columns fit the wanted ones, and what is wrong with those that do not."""
    fitting, skipped = [], list(found.skipped)
    for file in found.files:
        own = read_columns(found, file)
        problem = next(iter(_iter_problems(file, own, wanted, drift)), None)
        if problem is None:
            fitting.append(file)
        elif problem[0] == SKIP:
            skipped.append(f"skipped {problem[1]}")
        else:
            raise SourceRefusedError(problem[1], hint=_HINT)
    return replace(found, files=tuple(fitting), skipped=tuple(skipped))


def read_columns(found: FileListing, file: SourceFile) -> dict[str, pa.DataType]:
    """The columns of a file and their types."""
    if found.format in _TABLES:
        schema = read_file_schema(found, file)
        return dict(zip(schema.names, schema.types, strict=True))
    # A file without a byte has no header, and no record that would need one.
    names = read_header_names(found, file) if file.size else []
    return dict.fromkeys((name.lower() for name in names), pa.string())


def _iter_problems(
    file: SourceFile,
    own: Mapping[str, pa.DataType],
    wanted: Mapping[str, pa.DataType],
    drift: ColumnDrift,
) -> Iterator[tuple[str, str]]:
    """What becomes of a file, and why: first what is refused."""
    if not own:
        return
    problems = []
    for name, type_ in wanted.items():
        if name not in own and drift.missing != NULL:
            text = f"{file.uri} has no column {name}, of type {type_}"
            problems.append((drift.missing, text))
        elif name in own and widen_types(type_, own[name]) is None:
            text = f"{file.uri}: column {name} is of type {own[name]}, not {type_}"
            problems.append((drift.changed, text))
    if drift.new == FAIL:
        for name in own.keys() - wanted.keys():
            text = f"{file.uri}: column {name}, of type {own[name]}, is not in other files"
            problems.append((FAIL, text))
    yield from sorted(problems, key=lambda each: each[0] != FAIL)
