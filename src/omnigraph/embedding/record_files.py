"""Vectors in files of records, without a graph: JSON lines in, JSON lines out.

A line whose `type` is that of the spec and whose `data` is an object is an entity; every other line
passes through as it is. A file that is there already gives the vectors of the entities that did not
change, so that a second run asks for nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import IO, Any, Final

from omnigraph.embedding.embed_spec import EmbeddedType, EmbedFiles, FileMode, Selection
from omnigraph.embedding.text_vectors import TextVectors
from omnigraph.errors import InvalidArgumentError

# Lines in memory at a time: many batches of a provider.
_LINES_AT_ONCE: Final = 8_192


@dataclass(slots=True)
class FileOutcome:
    """What became of the records of a file."""

    mode: FileMode
    model: str = ""
    records: int = 0
    entities: int = 0
    embedded: int = 0
    cleaned: int = 0
    kept: int = 0


@dataclass(slots=True)
class _Entity:
    """One entity of a file: its line, its place among the lines, and the text of its vector."""

    place: int
    record: dict[str, Any]  # Any: JSON
    type: EmbeddedType
    text: str


@dataclass(slots=True)
class _Block:
    """Some lines, and the entities among them."""

    lines: list[bytes]
    entities: list[_Entity] = field(default_factory=list)


def embed_file(
    files: EmbedFiles,
    mode: FileMode,
    *,
    texts: TextVectors | None,
    selections: Sequence[Selection] = (),
) -> FileOutcome:
    """Write a file of records with vectors; the file appears when it is whole."""
    outcome = FileOutcome(mode, "" if texts is None else texts.embedder.model)
    known = _read_known(files) if files.target != files.source else {}
    partial = files.target.with_name(f"{files.target.name}.tmp")
    files.target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with partial.open("wb") as out:
            for block in _read_blocks(files):
                outcome.records += sum(bool(line.strip()) for line in block.lines)
                outcome.entities += len(block.entities)
                _apply_mode(block, files, outcome, (texts, selections, known))
                out.writelines(block.lines)
            out.flush()
            os.fsync(out.fileno())
        partial.replace(files.target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    return outcome


def _apply_mode(
    block: _Block,
    files: EmbedFiles,
    outcome: FileOutcome,
    work: tuple[TextVectors | None, Sequence[Selection], dict[str, Any]],
) -> None:
    texts, selections, known = work
    if texts is None:
        _remove_vectors(block, outcome, selections, known)
        return
    asked = []
    for entity in block.entities:
        is_chosen = _is_selected(entity, selections)
        is_anew = is_chosen and outcome.mode is not FileMode.FILL_MISSING
        if not is_anew and _keep_vector(block, entity, known):
            outcome.kept += 1
        elif is_chosen and entity.text:
            asked.append(entity)
    distinct = list(dict.fromkeys(entity.text for entity in asked))
    vectors = texts.embed(distinct, files.spec.dimension)
    # The shortest spelling of 32 bits.
    shown = dict(zip(distinct, vectors.astype("U32").astype("f8").tolist(), strict=True))
    for entity in asked:
        entity.record["data"][entity.type.target] = shown[entity.text]
        _write_record(block, entity)
    outcome.embedded += len(asked)


def _remove_vectors(
    block: _Block,
    outcome: FileOutcome,
    selections: Sequence[Selection],
    known: dict[str, Any],  # Any: vectors
) -> None:
    """Count a vector that only the file of a run before has as removed; its line stays as it is."""
    for entity in block.entities:
        if not _is_selected(entity, selections):
            outcome.kept += _keep_vector(block, entity, known)
        elif entity.record["data"].pop(entity.type.target, None) is not None:
            outcome.cleaned += 1
            _write_record(block, entity)
        elif _identify(entity) in known:
            outcome.cleaned += 1


def _keep_vector(block: _Block, entity: _Entity, known: dict[str, Any]) -> bool:
    """Whether an entity has its vector already, in its own line or in the file of a run before."""
    data = entity.record["data"]
    if data.get(entity.type.target) is not None:
        return True
    vector = known.get(_identify(entity))
    if vector is None:
        return False
    data[entity.type.target] = vector
    _write_record(block, entity)
    return True


def _is_selected(entity: _Entity, selections: Sequence[Selection]) -> bool:
    record = entity.record
    return not selections or any(
        each.matches(record["type"], record["data"]) for each in selections
    )


def _read_known(files: EmbedFiles) -> dict[str, Any]:  # Any: vectors
    """The vectors of a run before, by their entities without them."""
    if not files.target.is_file():
        return {}
    found = {}
    before = EmbedFiles(files.target, files.target, files.spec)
    for block in _read_blocks(before):
        for entity in block.entities:
            vector = entity.record["data"].pop(entity.type.target, None)
            if isinstance(vector, list) and len(vector) == files.spec.dimension:
                found[_identify(entity)] = vector
    return found


def _identify(entity: _Entity) -> str:
    data = {k: v for k, v in entity.record["data"].items() if k != entity.type.target}
    return json.dumps({**entity.record, "data": data}, sort_keys=True)


def _write_record(block: _Block, entity: _Entity) -> None:
    text = json.dumps(entity.record, ensure_ascii=False)
    block.lines[entity.place] = f"{text}\n".encode(errors="surrogatepass")


def _read_blocks(files: EmbedFiles) -> Iterator[_Block]:
    try:
        with files.source.open("rb") as lines:
            yield from _iter_blocks(lines, files)
    except FileNotFoundError:
        raise InvalidArgumentError("input", f"there is no file {files.source}") from None


def _iter_blocks(lines: IO[bytes], files: EmbedFiles) -> Iterator[_Block]:
    start = 1
    while part := list(islice(lines, _LINES_AT_ONCE)):
        block = _Block(part)
        block.entities = list(_iter_entities(part, files, start))
        yield block
        start += len(part)


def _iter_entities(lines: Iterable[bytes], files: EmbedFiles, start: int) -> Iterator[_Entity]:
    for place, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as failure:
            where = f"{files.source} line {start + place}"
            raise InvalidArgumentError("input", f"{where} is not JSON: {failure}") from failure
        if not isinstance(record, dict) or not isinstance(record.get("data"), dict):
            continue
        name = record.get("type")
        type_ = files.spec.types.get(name) if isinstance(name, str) else None
        if type_ is not None:
            values = (record["data"].get(each) for each in type_.fields)
            shown = (
                each if isinstance(each, str) else json.dumps(each)
                for each in values
                if each is not None
            )
            yield _Entity(place, record, type_, "\n".join(shown))
