"""Checks the entities of a snapshot: their ids, and that they obey the schema in force."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.check.check_problems import Problems
from omnigraph.engine.check.checked_reads import TornFiles, check_columns, read_rows
from omnigraph.errors import Violation, WriteRefusedError
from omnigraph.rows.columns import TableShape
from omnigraph.rows.entity_ids import compute_entity_ids
from omnigraph.rows.hashing import are_distinct
from omnigraph.rows.view import View, table_types_of
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.storage.tables.pins import Pin
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.versioning.log import Log
from omnigraph.writers.existing_rows import CommittedState
from omnigraph.writers.graph_change import COPIES, EDGE_COPIES, NO_IDS, TypeChange, WriteMode
from omnigraph.writers.key_cache import KeyCache
from omnigraph.writers.validate import validate_change


class _UnchangedRows(CommittedState):
    """The committed rows, for a write of exactly these: no entity ends, so none is looked up."""

    def get_ending(self, type_key: TypeKey) -> pa.Table:
        return (EDGE_COPIES if type_key.kind is TypeKind.EDGE else COPIES).empty_table()


class EntityCheck:
    """Looks at the types of snapshots; what several snapshots share is examined once."""

    def __init__(self, log: Log, torn: TornFiles, problems: Problems) -> None:
        self._keys = KeyCache(log)
        self._torn = torn
        self._problems = problems
        # Whether a table could be read, by everything that this depends on.
        self._is_sound: dict[tuple[str, TypeKey, tuple[Pin, ...]], bool] = {}
        self.count = 0
        # The versions read, each as a type of a schema.
        self.read: set[tuple[str, str, Pin]] = set()

    def check(self, view: View) -> None:
        """Report what is wrong with the entities of a snapshot."""
        for type_key, type_ in table_types_of(view.catalog).items():
            pins = _list_pins(view, type_key, type_)
            place = (view.schema.digest, type_key, pins)
            if pins and place not in self._is_sound:
                # Edges come after nodes: without their ends, their rows say nothing.
                has_ends = all(
                    self._is_known_sound(view, end) for end in _list_endpoint_types(type_)
                )
                self._is_sound[place] = self._check_type(view, type_key, has_ends=has_ends)

    def _is_known_sound(self, view: View, type_key: TypeKey) -> bool:
        pin = view.snapshot.pins.get(str(type_key))
        return pin is not None and self._is_sound.get((view.schema.digest, type_key, (pin,)), False)

    def _check_type(self, view: View, type_key: TypeKey, *, has_ends: bool) -> bool:
        where = f"branch '{view.snapshot.stream.branch}' {type_key}"
        pin = view.snapshot.pins[str(type_key)]
        rows = self._problems.attempt("table", where, partial(self._read, view, type_key, where))
        if rows is None:
            return False
        self.count += rows.num_rows
        self.read.add((view.schema.digest, str(type_key), pin))
        if rows.num_rows != pin.rows:
            message = f"{pin.path} has {rows.num_rows} rows, and its pin says {pin.rows}"
            self._problems.add("table", where, message)
        shape = view.get_shape(type_key)
        sound = self._with_ids(rows, where)
        if shape.key:
            self._problems.attempt("key", where, partial(self._check_keys, sound, shape, where))
        if has_ends:
            check = partial(self._check_rules, view, sound, shape, where)
            self._problems.attempt("table", where, check)
        return True

    def _read(self, view: View, type_key: TypeKey, where: str) -> pa.Table | None:
        with self._torn.explain_failures(view.snapshot.pins[str(type_key)]):
            table, shape = view.open_table(type_key), view.get_shape(type_key)
            if check_columns(table, shape, where=where, problems=self._problems):
                return read_rows(table, shape)
        return None

    def _with_ids(self, rows: pa.Table, where: str) -> pa.Table:
        """The first row of every id, after reporting rows without one and ids with several."""
        ids = rows[ID_COLUMN]
        if ids.null_count:
            self._problems.add("id", where, f"{ids.null_count} rows have no id")
            rows = rows.filter(ids.is_valid())
        if are_distinct(rows[ID_COLUMN]):
            return rows
        encoded = rows[ID_COLUMN].combine_chunks().dictionary_encode()
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        _, firsts, counts = np.unique(codes, return_index=True, return_counts=True)
        repeated = encoded.dictionary.filter(pa.array(counts > 1))
        self._problems.add_ids("id", where, repeated, "'{id}' is there more than once")
        return rows.take(pa.array(np.sort(firsts)))

    def _check_keys(self, rows: pa.Table, shape: TableShape, where: str) -> None:
        ids = rows[ID_COLUMN].combine_chunks()
        is_wrong = pc.not_equal(ids, compute_entity_ids(rows, shape).combine_chunks())
        self._problems.add_ids(
            "key", where, ids.filter(is_wrong), "'{id}' is not the id of its key"
        )

    def _check_rules(self, view: View, rows: pa.Table, shape: TableShape, where: str) -> None:
        """Let the validator of all writes look at the rows, as if they were written again."""
        change = {shape.type_key: TypeChange(shape, WriteMode.OVERWRITE, rows, NO_IDS)}
        try:
            validate_change(change, _UnchangedRows(view, self._keys, change))
        except WriteRefusedError as refusal:
            for violation in refusal.violations:
                self._problems.add(violation.rule, where, _format_violation(violation))
            if refusal.count > len(refusal.violations):
                more = refusal.count - len(refusal.violations)
                self._problems.add(refusal.violations[-1].rule, where, f"… and {more} more")


def _list_pins(view: View, type_key: TypeKey, type_: NodeType | EdgeType) -> tuple[Pin, ...]:
    """Every table that the soundness of a type depends on; none if one of them is not pinned."""
    keys = (type_key, *_list_endpoint_types(type_))
    pins = view.snapshot.pins
    if any(str(key) not in pins for key in keys):
        return ()
    return tuple(pins[str(key)] for key in keys)


def _list_endpoint_types(type_: NodeType | EdgeType) -> tuple[TypeKey, ...]:
    if isinstance(type_, NodeType):
        return ()
    return tuple(TypeKey(TypeKind.NODE, name) for name in (type_.source, type_.target))


def _format_violation(violation: Violation) -> str:
    if violation.entity_id is None:
        return violation.message
    return f"{violation.message} (entity '{violation.entity_id}')"
