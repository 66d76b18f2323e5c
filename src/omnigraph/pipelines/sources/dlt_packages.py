"""Load packages of dlt as Parquet files, in a folder for each table.

A job of dlt copies a file of its package; the package is whole when dlt says that it is complete.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from dataclasses import field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from dlt.common.configuration import configspec
from dlt.common.destination import Destination, DestinationCapabilitiesContext
from dlt.common.destination.client import (
    DestinationClientConfiguration,
    JobClientBase,
    LoadJob,
    RunnableLoadJob,
)
from dlt.common.destination.typing import PreparedTableSchema
from dlt.common.libs.pyarrow import columns_to_arrow
from dlt.common.schema import Schema
from dlt.common.schema.utils import is_dlt_table_or_column
from dlt.destinations.job_impl import FinalizedLoadJob

from omnigraph.errors import SourceRefusedError
from omnigraph.lang.spellcheck import suggest_similar

if TYPE_CHECKING:
    from dlt.common.schema.typing import TTableSchemaColumns

_PARQUET: Final = "parquet"
_UTC: Final = "UTC"


@configspec
class PackageConfiguration(DestinationClientConfiguration):
    """Where packages are staged."""

    destination_type: Final[str] = field(  # type: ignore[misc]  # dlt declares it without Final
        default="omnigraph", init=False, repr=False, compare=False
    )
    folder: str = ""

    def __str__(self) -> str:
        return self.folder


class StageFile(RunnableLoadJob):
    """Copies a file of a package, with all columns that its table has by now."""

    def __init__(self, file_path: str, folder: Path) -> None:
        super().__init__(file_path)
        self._folder = folder

    def run(self) -> None:
        """Copy it; a file is there as a whole, or not at all."""
        self._folder.mkdir(parents=True, exist_ok=True)
        staged = self._folder / os.path.basename(self._file_path)
        # Hidden, so that a copy which was not finished is not read; dlt tries with another name.
        unfinished = staged.with_name(f".{staged.name}")
        schema = columns_to_arrow(self._load_table["columns"], self._job_client.capabilities, _UTC)
        _copy_rows(Path(self._file_path), unfinished, schema)
        os.replace(unfinished, staged)


def _copy_rows(source: Path, copy: Path, wanted: pa.Schema) -> None:
    with pq.ParquetFile(source) as rows:
        own = rows.schema_arrow
        missing = [each for each in wanted if each.name not in own.names]
        if not missing:
            shutil.copyfile(source, copy)
            return
        whole = pa.schema([*own, *(each.with_nullable(True) for each in missing)])
        with pq.ParquetWriter(copy, whole) as writer:
            for batch in rows.iter_batches():
                nulls = [pa.nulls(batch.num_rows, each.type) for each in missing]
                writer.write_batch(pa.record_batch([*batch.columns, *nulls], schema=whole))


class PackageClient(JobClientBase):
    """Stages the files of packages; tables of dlt itself are left out."""

    config: PackageConfiguration

    @property
    def folder(self) -> Path:
        """Where the packages of this pipeline go."""
        return Path(self.config.folder)

    def initialize_storage(self, truncate_tables: Iterable[str] | None = None) -> None:
        """Nothing has to be there before."""

    def is_storage_initialized(self) -> bool:
        """It always is."""
        return True

    def drop_storage(self) -> None:
        """Remove what is staged."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def create_load_job(
        self, table: PreparedTableSchema, file_path: str, load_id: str, restore: bool = False
    ) -> LoadJob:
        """What copies a file."""
        del restore
        name = table["name"] or ""
        if is_dlt_table_or_column(name, self.schema._dlt_tables_prefix):  # noqa: SLF001 — dlt's own way
            return FinalizedLoadJob(file_path)
        return StageFile(file_path, self.folder / load_id / name)

    def complete_load(self, load_id: str) -> None:
        """All files are there."""

    def __enter__(self) -> PackageClient:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        pass


class PackageDestination(Destination[PackageConfiguration, PackageClient]):
    """Packages in a folder."""

    spec = PackageConfiguration

    def __init__(self, folder: str, **others: Any) -> None:  # Any: what dlt passes on
        super().__init__(folder=folder, **others)

    def _raw_capabilities(self) -> DestinationCapabilitiesContext:
        capabilities = DestinationCapabilitiesContext.generic_capabilities(_PARQUET)
        capabilities.supported_loader_file_formats = [_PARQUET]
        return capabilities

    @property
    def client_class(self) -> type[PackageClient]:
        """What stages files."""
        return PackageClient


def list_table_files(package: Path, table: str, schema: Schema) -> Path:
    """The folder of a table of a package; of one without rows there is a file without any."""
    folder = package / table
    if folder.is_dir():
        return folder
    columns = _find_columns(table, schema)
    folder.mkdir(parents=True)
    pq.write_table(columns_to_arrow(columns, None, _UTC).empty_table(), folder / "empty.parquet")  # type: ignore[arg-type]  # None is what its body expects
    return folder


def _find_columns(table: str, schema: Schema) -> TTableSchemaColumns:
    known = [each["name"] or "" for each in schema.data_tables(include_incomplete=False)]
    if table in known:
        return schema.tables[table]["columns"]
    hint = suggest_similar(table, known) or "declare its columns in the resource"
    raise SourceRefusedError(
        f"dlt has no table '{table}': it has {', '.join(known) or 'none'}", hint=hint
    )
