"""Exports by tasks: files of each type below one address, or one document of all types.

A directory or a document is written beside its place and renamed at the end. On S3, where nothing
can be renamed, `_SUCCESS` is written last: without it, an export is not complete. Another attempt
of a task writes the same rows to the same names, so that none is there twice however late it comes.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

from omnigraph.bulk.splits import group_fragments
from omnigraph.bulk.task_runner import Runner
from omnigraph.errors import InvalidArgumentError, StorageError
from omnigraph.exports.export_formats import Format, choose_format, encode_file
from omnigraph.exports.xml_format import ExportedType, XmlFormat
from omnigraph.html_views import HtmlDocument
from omnigraph.ids import generate_ulid
from omnigraph.rows.columns import TableShape
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.schema.catalog import EdgeType
from omnigraph.schema.schema_shape import JsonObject
from omnigraph.storage.objects.local_store import translate_errors
from omnigraph.storage.objects.object_store import Objects, open_objects
from omnigraph.storage.tables.pins import Pin
from omnigraph.storage.tables.store_address import StoreAddress, make_local_address

# Rows that become one file: so many bytes of them are in memory at once.
FILE_BYTES: Final = 64 * 1024 * 1024
# Texts of CSV and XML are made a column at a time, and take several times as much.
TEXT_FILE_BYTES: Final = 16 * 1024 * 1024
SUCCESS: Final = "_SUCCESS"
# Is at an S3 prefix while an export writes there, and says which one.
CLAIM: Final = "_EXPORTING"
_DOCUMENT: Final = "document"
_EXPORT: Final = "export"
FOLDERS: Final = {TypeKind.NODE: "nodes", TypeKind.EDGE: "edges"}


@dataclass(frozen=True, slots=True)
class ExportResult(HtmlDocument):
    """What was written where: how many entities of which types, in how many files."""

    uri: str
    format: str
    commit: str
    nodes: Mapping[str, int]
    edges: Mapping[str, int]
    files: int

    def to_json(self) -> JsonObject:
        """The document of an export, which is also what `_SUCCESS` holds."""
        return {
            "uri": self.uri,
            "format": self.format,
            "commit": self.commit,
            "nodes": dict(self.nodes),
            "edges": dict(self.edges),
            "files": self.files,
        }


@dataclass(frozen=True, slots=True)
class ExportSplit:
    """Fragments of a type that one task writes, and where to."""

    address: StoreAddress
    pin: Pin
    exported: ExportedType
    format: Format
    fragments: tuple[int, ...]
    target: StoreAddress
    # The path of its files, up to the part in which they differ. The id of the export is in it:
    # whatever else is at the target is not ours to remove.
    stem: str


@dataclass(frozen=True, slots=True)
class WrittenFiles:
    """The files of a unit, and how many entities are in them."""

    type_key: TypeKey
    files: tuple[str, ...]
    rows: int


def export_to(
    view: View,
    types: Sequence[TypeKey],
    runner: Runner,
    *,
    address: str,
    options: Mapping[str, str] | None,
    format_name: str | None,
) -> ExportResult:
    """Write the entities of some types to an address; without a format, as its name says."""
    form = choose_format(format_name, address)
    if form.document is None:
        root = open_objects(address, options=options).uri
        target = StoreAddress(root, tuple(sorted((options or {}).items())))
    else:
        target = StoreAddress(_resolve_file(address))
    return export_types(view, types, runner, target=target, form=form)


def export_types(
    view: View, types: Sequence[TypeKey], runner: Runner, *, target: StoreAddress, form: Format
) -> ExportResult:
    """Write the entities of some types."""
    id_ = generate_ulid()
    # What ends up in one document is in order: nodes before edges.
    ordered = sorted(types, key=lambda key: (key.kind is TypeKind.EDGE, key.name))
    document = form.document
    staging = _stage_files(target, id_) if document is None else _stage_document(target, id_)
    with staging as writing:
        units = _plan_splits(view, ordered, writing, form, id_)
        parts = runner.run(units, write_split, stage="export")
        files = [name for part in parts for name in part.files]
        result = ExportResult(
            target.root,
            form.value,
            view.snapshot.commit,
            _count_entities(types, parts, TypeKind.NODE),
            _count_entities(types, parts, TypeKind.EDGE),
            len(files) if document is None else 1,
        )
        if document is None:
            objects = open_objects(writing.root, options=dict(writing.options))
            objects.put(SUCCESS, json.dumps({**result.to_json(), "paths": sorted(files)}).encode())
        else:
            shapes = [view.get_shape(key) for key in ordered]
            with translate_errors(_EXPORT, target.root):
                _join_document(document, shapes, parts, Path(writing.root))
    return result


def _resolve_file(address: str) -> str:
    """The path of a document, which is put together on a disk."""
    if "://" in address:
        raise InvalidArgumentError(
            "path", f"a document is a file on a disk, not {address}", hint="copy it from there"
        )
    return os.path.abspath(address)


def write_split(unit: ExportSplit) -> WrittenFiles:
    """Write the files of a unit: always the same ones, as a version has its rows in one order."""
    # The parts of a document are of no use after a crash.
    is_durable = unit.format.document is None
    options = dict(unit.target.options)
    objects = open_objects(unit.target.root, is_durable=is_durable, options=options)
    files, rows = [], 0
    for number, part in enumerate(_read_file_tables(unit)):
        path = f"{unit.stem}-{number:04}.{unit.format.value}"
        objects.put(path, encode_file(part, unit.exported, unit.format))
        files.append(path)
        rows += part.num_rows
    return WrittenFiles(unit.exported.shape.type_key, tuple(files), rows)


def _read_file_tables(unit: ExportSplit) -> Iterator[pa.Table]:
    """The rows of a unit, as many at a time as one file takes."""
    table = unit.address.tables.open(unit.pin)
    table.require_whole(unit.fragments)
    is_text = unit.format is Format.CSV or unit.format.document is not None
    bytes_max = TEXT_FILE_BYTES if is_text else FILE_BYTES
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in table.scan_batches(
        columns=unit.exported.shape.schema.names, fragments=unit.fragments
    ):
        held.append(batch)
        size += batch.nbytes
        if size >= bytes_max:
            yield pa.Table.from_batches(held)
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held)


def _plan_splits(
    view: View, types: Sequence[TypeKey], writing: StoreAddress, form: Format, id_: str
) -> list[ExportSplit]:
    place, units = make_local_address(view.tables), []
    for key in types:
        type_, pin = view.types[key], view.snapshot.pins[str(key)]
        ends = (type_.source, type_.target) if isinstance(type_, EdgeType) else None
        exported = ExportedType(view.get_shape(key), ends)
        for number, fragments in enumerate(group_fragments(view.open_table(key))):
            stem = f"{FOLDERS[key.kind]}/{key.name}/part-{number:05}-{id_}"
            units.append(ExportSplit(place, pin, exported, form, fragments, writing, stem))
    return units


@contextmanager
def _stage_files(target: StoreAddress, id_: str) -> Iterator[StoreAddress]:
    """Where to write files, so that all of them appear at the target when it is complete."""
    if target.root.startswith("memory://"):
        raise InvalidArgumentError("path", "tasks cannot write to the memory of this process")
    if target.root.startswith("s3://"):
        with _claim_prefix(target, id_):
            yield target
        return
    folder = Path(target.root)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidArgumentError(
            "path", f"{folder} is there and not empty", hint="choose another one"
        )
    with _make_folder_beside(folder, id_) as beside:
        yield StoreAddress(str(beside))
        with translate_errors(_EXPORT, target.root):
            os.replace(beside, folder)


@contextmanager
def _stage_document(target: StoreAddress, id_: str) -> Iterator[StoreAddress]:
    """Where to write the parts of a document, and the document, until it is complete."""
    file = Path(target.root)
    _require_no_file(file)
    with _make_folder_beside(file, id_) as beside:
        yield StoreAddress(str(beside))
        # A rename would replace what came meanwhile, as from another export.
        _require_no_file(file)
        with translate_errors(_EXPORT, target.root):
            os.replace(beside / _DOCUMENT, file)


def _require_no_file(file: Path) -> None:
    if file.exists():
        raise InvalidArgumentError("path", f"{file} is there", hint="choose another one")


@contextmanager
def _make_folder_beside(place: Path, id_: str) -> Iterator[Path]:
    """A folder on the same disk as a place, which is removed with what is left in it."""
    beside = place.with_name(f".{place.name}.{id_}")
    with translate_errors(_EXPORT, str(place)):
        beside.mkdir(parents=True)
    try:
        yield beside
    finally:
        shutil.rmtree(beside, ignore_errors=True)


@contextmanager
def _claim_prefix(target: StoreAddress, id_: str) -> Iterator[None]:
    """Keep other exports from a prefix; if this one fails, nothing of it stays there."""
    objects = open_objects(target.root, options=dict(target.options))
    _require_empty(objects)
    try:
        if not objects.put_new(CLAIM, id_.encode()):
            _require_empty(objects)
            raise InvalidArgumentError("path", f"another export wrote to {target.root}; try again")
        # Again: an export that had the place before may have ended meanwhile.
        _require_empty(objects, besides=CLAIM)
        yield
    except BaseException:
        # A failure of the store that was the reason is raised, not that of this clean-up.
        with suppress(StorageError):
            _release_prefix(objects, id_)
        raise
    with suppress(StorageError):
        objects.delete([CLAIM])


def _release_prefix(objects: Objects, id_: str) -> None:
    """Remove everything of one export from its place, if that is its own."""
    # Whether the claim was made is not known if the store did not answer.
    if objects.get(CLAIM) != id_.encode():
        return
    # First: what is left must not pass for a whole export.
    objects.delete([SUCCESS] if id_.encode() in (objects.get(SUCCESS) or b"") else [])
    _remove_files(objects, id_)
    # Last: while anything of it is there, the claim explains it.
    objects.delete([CLAIM])


def _require_empty(objects: Objects, *, besides: str | None = None) -> None:
    found = next((entry.path for entry in objects.list("") if entry.path != besides), None)
    if found is None:
        return
    hint = "choose another one"
    if found == CLAIM and objects.get(SUCCESS) is None:
        hint += ", or wait: an export is writing there. If none is, it was killed: remove its files"
    raise InvalidArgumentError("path", f"{objects.uri} is not empty: {found} is there", hint=hint)


def _remove_files(objects: Objects, id_: str) -> None:
    """Remove the files of one export."""
    objects.delete(
        [
            entry.path
            for folder in FOLDERS.values()
            for entry in objects.list(folder)
            if f"-{id_}-" in entry.path
        ]
    )


def _join_document(
    form: XmlFormat, shapes: Sequence[TableShape], parts: Sequence[WrittenFiles], folder: Path
) -> None:
    """One document of all parts, which are in order: nodes before edges."""
    with (folder / _DOCUMENT).open("wb") as whole:
        whole.write(form.encode_start(shapes))
        for kind, end in ((TypeKind.NODE, form.between), (TypeKind.EDGE, form.end)):
            for name in (
                name for part in parts if part.type_key.kind is kind for name in part.files
            ):
                with (folder / name).open("rb") as part:
                    shutil.copyfileobj(part, whole)
            whole.write(end)
        whole.flush()
        # A crash after the rename must not leave an empty document.
        os.fsync(whole.fileno())


def _count_entities(
    types: Sequence[TypeKey], parts: Sequence[WrittenFiles], kind: TypeKind
) -> dict[str, int]:
    counts = {key.name: 0 for key in types if key.kind is kind}
    for part in parts:
        if part.type_key.kind is kind:
            counts[part.type_key.name] += part.rows
    return counts
