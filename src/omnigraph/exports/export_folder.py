"""The files of an export by their types, for a load."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final

from omnigraph.bulk.bulk_sources import BulkSource, CombinedSource, FileSource
from omnigraph.bulk.splits import build_input_error
from omnigraph.exports.export_formats import Format
from omnigraph.exports.file_export import FOLDERS, SUCCESS
from omnigraph.storage.objects.object_store import open_objects
from omnigraph.storage.objects.source_files import S3, list_source_files

# Lines of JSON name their types; files of these formats are of the type of their folder.
_TABLES: Final = (Format.PARQUET, Format.CSV)


def find_export(address: str, options: Mapping[str, str]) -> BulkSource | None:
    """The files of an export; None if a folder or prefix is something else.

    A file that the export wrote and that is not there is a `LoadError`.
    """
    paths = _read_paths(address, options)
    if paths is None:
        return None
    names: dict[str, set[str]] = defaultdict(set)
    for path in paths:
        folder, _, name = path.rpartition("/")
        names[folder].add(name)
    return CombinedSource(
        tuple(_open_folder(address, folder, names[folder], options) for folder in sorted(names))
    )


def _read_paths(address: str, options: Mapping[str, str]) -> list[str] | None:
    """What `_SUCCESS` lists; other programs write files of that name, too."""
    found = open_objects(address, is_durable=False, options=options).get(SUCCESS)
    try:
        document: Any = json.loads(found or b"null")  # Any: JSON
        return [str(path) for path in document["paths"]]
    except (KeyError, TypeError, ValueError):
        return None


def _open_folder(
    address: str, folder: str, names: set[str], options: Mapping[str, str]
) -> FileSource:
    uri = f"{address.rstrip('/')}/{folder}"
    files, _ = list_source_files(f"{uri}/" if address.startswith(S3) else uri, options)
    missing = names - {file.uri.rpartition("/")[2] for file in files}
    if missing:
        raise build_input_error(f"{uri}/{min(missing)}", "this file of the export is missing")
    kind, _, type_name = folder.partition("/")
    is_table = any(name.endswith(f".{each.value}") for name in names for each in _TABLES)
    kinds = {each: str(key) for key, each in FOLDERS.items()}
    return FileSource(uri, f"{kinds[kind]}:{type_name}" if is_table else None, options)
