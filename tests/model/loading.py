"""Loads: the ids of records, and the three modes."""

import json
from collections import Counter
from contextlib import suppress
from typing import Any

from dialects import Record, RecordReader
from dialects.values import from_json
from model.expressions import Entity
from model.statements import inserted
from model.store import Store, Type
from model.validation import Batch
from omnigraph.errors import KeyConflictError, LoadError
from omnigraph.query.typed_tree import NOW_NAME
from omnigraph.schema.catalog import EdgeType


def load(graph: Store, text: str, mode: str, *, is_strict: bool) -> list[Batch]:
    """Write the records of a text to a graph; the batches hold what was written."""
    batches = Loader(graph, is_strict, is_patch=mode == "patch").batches(text)
    for type_, entities in batches:
        table = graph.table(type_)
        if mode == "overwrite":
            table.clear()
        for id_, count in Counter(entity["@id"] for entity in entities).items():
            is_repeated = count > 1 and type_.key is None
            if mode not in ("merge", "patch") and (id_ in table or is_repeated):
                raise KeyConflictError(type_.name, id_)
        table.update({entity["@id"]: entity for entity in entities})
    return batches


class Loader:
    """Turns records into entities; every refusal names the line, or the record if compatible."""

    def __init__(self, graph: Store, is_strict: bool, *, is_patch: bool = False) -> None:
        self._graph, self._is_strict, self._is_patch = graph, is_strict, is_patch
        self._reader = RecordReader(graph.catalog, is_strict=is_strict, is_patch=is_patch)
        self._renamed: dict[tuple[str, str], str] = {}

    def batches(self, text: str) -> list[Batch]:
        """The entities of a text by type; nodes first, as they say which ids edges mean."""
        batches: dict[tuple[bool, str], Batch] = {}
        try:
            records = self._reader.records(text)
            for record in sorted(records, key=lambda record: isinstance(record.type_, EdgeType)):
                key = (isinstance(record.type_, EdgeType), record.type_.name)
                batches.setdefault(key, (record.type_, []))[1].append(self._entity(record))
        except (ValueError, OverflowError, RecursionError) as failure:
            number = self._reader.number
            place = f"{'line' if self._is_strict else 'record'} {number}"
            raise LoadError(f"{place}: {failure}", record=number) from failure
        return list(batches.values())

    def _entity(self, record: Record) -> Entity:
        self._reader.number, type_, given_id, values = record
        if isinstance(type_, EdgeType):
            for end, node_type in (("@src", type_.source), ("@dst", type_.target)):
                values[end] = self._renamed.get((node_type, values[end]), values[end])
        entity = self._graph.entity(type_, values, id_=given_id)
        id_ = entity["@id"]
        if given_id not in (None, id_):
            if self._is_strict or isinstance(type_, EdgeType) or not _spells_key(record, type_):
                raise ValueError(f"id '{given_id}' does not match its canonical @key id '{id_}'")
            if self._renamed.setdefault((type_.name, str(given_id)), id_) != id_:
                raise ValueError(f"id '{given_id}' is ambiguous: it names two entities")
        old = self._graph.table(type_).get(id_) if self._is_patch else None
        return (old or inserted(self._graph, type_, values, {NOW_NAME: 0}, id_=id_)) | values


def _spells_key(record: Record, type_: Type) -> bool:
    """Whether an old id is a component of the key, perhaps in another spelling."""
    candidates: list[Any] = [record.given_id]
    with suppress(ValueError):
        candidates.append(json.loads(str(record.given_id)))
    for name in type_.key or ():
        for candidate in candidates:
            with suppress(ValueError):
                value = from_json(candidate, type_.properties[name].type, is_strict=True)
                if value == record.values[name]:
                    return True
    return False
