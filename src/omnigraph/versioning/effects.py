"""Effects: what a commit does to tables, as data, and the one function that applies them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias, TypeVar, assert_never

import pyarrow as pa

from omnigraph.errors import Conflict
from omnigraph.storage.pins import Pin, Staged
from omnigraph.versioning.idset import EMPTY, IdSet

ID_COLUMN = "__id"

# Up to here the memory of rows tells their size well enough; above, they may be a slice of more.
_QUICK_BYTES_MAX: Final = 64 * 1024

# Rows of a write: still in memory, or already written and waiting for their commit.
Part: TypeAlias = pa.Table | Staged


_Made = TypeVar("_Made")


def byte_count(rows: pa.Table) -> int:
    """The size of rows in memory; a slice counts without what it leaves out."""
    size: int = rows.get_total_buffer_size()
    return size if size <= _QUICK_BYTES_MAX else rows.nbytes


@dataclass(frozen=True, slots=True)
class Found:
    """Rows that were looked up on one version of a table.

    On later versions of the branch the same row ids mean the same copies of the same entities: a
    copy that another write replaced is not found any more. `addresses`, if they were read along,
    are the places of the rows in that one version.
    """

    version: str
    row_ids: pa.Array
    addresses: pa.Array | None = None


@dataclass(frozen=True, slots=True)
class Append:
    """New rows of entities that the type does not hold."""

    type_key: str
    new: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Replace:
    """Rows that die, all of them present, and rows that take their place or join them."""

    type_key: str
    dead: IdSet
    new: tuple[Part, ...] = ()
    found: Found | None = None


@dataclass(frozen=True, slots=True)
class Overwrite:
    """Every row dies; these are the new ones."""

    type_key: str
    new: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class AddColumns:
    """Nullable columns at the end of a table."""

    type_key: str
    schema: pa.Schema


@dataclass(frozen=True, slots=True)
class Register:
    """A type that starts with a table made for it."""

    type_key: str
    pin: Pin


@dataclass(frozen=True, slots=True)
class Drop:
    """A type that ends; its table stays readable at older commits."""

    type_key: str


@dataclass(frozen=True, slots=True)
class Rename:
    """A type that goes on under another name."""

    type_key: str
    to: str


@dataclass(frozen=True, slots=True)
class Maintain:
    """A compacted form of the table, to be replayed on whatever version it has by then."""

    type_key: str
    compacted: Any  # opaque to us: what `compact` of the tables gave


Effect: TypeAlias = Append | Replace | Overwrite | AddColumns | Register | Drop | Rename | Maintain


class Rows(Protocol):
    """What effects need of an open table."""

    def find(self, column: str, values: pa.Array) -> pa.Table:
        """The rows that hold one of the values: the column and `_rowid`."""


class TableStore(Protocol):
    """What versioning needs of the tables of a graph."""

    def open(self, pin: Pin) -> Rows:
        """An immutable view of a version."""

    def write(self, pin: Pin, rows: pa.Table) -> Staged:
        """Write rows that no version refers to yet."""

    def append(self, pin: Pin, staged: Sequence[Staged]) -> Pin:
        """A version with more rows."""

    def replace(
        self,
        pin: Pin,
        *,
        dead: pa.Array,
        staged: Sequence[Staged] = (),
        addresses: pa.Array | None = None,
    ) -> Pin:
        """A version without some rows, and with others."""

    def overwrite(self, pin: Pin, staged: Sequence[Staged]) -> Pin:
        """A version with other rows."""

    def add_columns(self, pin: Pin, schema: pa.Schema) -> Pin:
        """A version with more columns."""

    def plan_compaction(self, pin: Pin) -> Any:  # opaque to us
        """What is worth rewriting, or None."""

    def compact(self, plan: Any) -> Any:  # opaque to us
        """The rewritten rows, not yet in a version."""

    def replay(self, compacted: Any, pin: Pin) -> Pin | None:  # opaque to us
        """A version with the rewritten rows, or None when the plan no longer fits."""


class Workbench:
    """Applies the effects of one write to the pins of any head.

    Rows are written once, however often the effects are applied. A table whose pin is the one of
    the last time keeps its result, so that a retry after a lost race costs nothing for it.
    """

    def __init__(
        self, tables: TableStore, effects: Iterable[Effect], *, executor: Executor | None = None
    ) -> None:
        self._tables = tables
        self._executor = executor
        self._by_type: dict[str, list[Effect]] = {}
        self._renames: list[Rename] = []
        for effect in effects:
            if isinstance(effect, Rename):
                self._renames.append(effect)
            else:
                self._by_type.setdefault(effect.type_key, []).append(effect)
        self._applied: dict[str, tuple[Pin | None, Pin | None]] = {}

    def write(self, pins: Mapping[str, Pin]) -> None:
        """Write the rows of tables that nothing else happens to, before the effects are applied."""
        tasks = [key for key, group in self._by_type.items() if len(group) == 1 and key in pins]

        def write_one(key: str) -> None:
            self._by_type[key][0] = _written(self._by_type[key][0], pins[key], self._tables)

        list(self._run(write_one, tasks))

    def apply(self, pins: Mapping[str, Pin]) -> dict[str, Pin | None]:
        """The pins that the effects make of the given ones; None is a type that ends."""
        tasks = list(self._by_type)
        results = list(self._run(lambda key: self._apply_group(key, pins.get(key)), tasks))
        touched: dict[str, Pin | None] = dict(zip(tasks, results, strict=True))
        return touched | self._renamed({**pins, **touched})

    def _run(self, work: Callable[[str], _Made], tasks: list[str]) -> Iterable[_Made]:
        """Work on several tables at the same time."""
        if self._executor is None or len(tasks) < 2:
            return map(work, tasks)
        return self._executor.map(work, tasks)

    def _renamed(self, pins: Mapping[str, Pin | None]) -> dict[str, Pin | None]:
        """All renames at once, so that names may be swapped; no living type is overwritten."""
        old_names = {rename.type_key for rename in self._renames}
        moved: dict[str, Pin | None] = dict.fromkeys(old_names)
        for rename in self._renames:
            if pins.get(rename.to) is not None and rename.to not in old_names:
                raise Conflict(f"{rename.to} exists already", type_key=rename.to)
            moved[rename.to] = _required(pins.get(rename.type_key), rename.type_key)
        return moved

    def _apply_group(self, type_key: str, base: Pin | None) -> Pin | None:
        if type_key in self._applied and self._applied[type_key][0] == base:
            return self._applied[type_key][1]
        pin = base
        group = self._by_type[type_key]
        for number in range(len(group)):
            # Kept at once: if a later step fails, the rows are not written a second time.
            group[number] = _written(group[number], pin, self._tables)
            pin = _applied(group[number], pin, self._tables)
        self._applied[type_key] = (base, pin)
        return pin


def oldest_staged_at(effects: Iterable[Effect]) -> float | None:
    """When the first already written rows of some effects were written."""
    times = (
        part.staged_at
        for effect in effects
        if isinstance(effect, Append | Replace | Overwrite)
        for part in effect.new
        if isinstance(part, Staged)
    )
    return min(times, default=None)


def _written(effect: Effect, pin: Pin | None, tables: TableStore) -> Effect:
    """The effect with all its rows written, one write for all tables of one schema."""
    match effect:
        case Append():
            return Append(effect.type_key, _staged(effect.new, pin, effect.type_key, tables))
        case Replace():
            staged = _staged(effect.new, pin, effect.type_key, tables)
            return Replace(effect.type_key, effect.dead, staged, effect.found)
        case Overwrite():
            return Overwrite(effect.type_key, _staged(effect.new, pin, effect.type_key, tables))
        case _:
            return effect


def _staged(
    parts: tuple[Part, ...], pin: Pin | None, type_key: str, tables: TableStore
) -> tuple[Staged, ...]:
    staged = [part for part in parts if isinstance(part, Staged)]
    groups: list[list[pa.Table]] = []
    for part in parts:
        if not isinstance(part, Staged) and part.num_rows:
            alike = (each for each in groups if each[0].schema.equals(part.schema))
            if (group := next(alike, None)) is None:
                groups.append([part])
            else:
                group.append(part)
    if not groups:
        return tuple(staged)
    base = _required(pin, type_key)
    return (*staged, *(tables.write(base, _joined(group)) for group in groups))


def _joined(tables: list[pa.Table]) -> pa.Table:
    # In one piece: a piece per waiting write would cost as much as a write of its own.
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables).combine_chunks()


def _applied(effect: Effect, pin: Pin | None, tables: TableStore) -> Pin | None:
    """The pin that one effect makes of another."""
    match effect:
        case Register():
            return _registered(effect, pin)
        case Drop():
            _required(pin, effect.type_key)
            return None
        case Rename():
            raise AssertionError("a rename moves a pin and makes none")
        case _:
            return _next_version(effect, _required(pin, effect.type_key), tables)


def _registered(effect: Register, pin: Pin | None) -> Pin:
    if pin is not None:
        raise Conflict(f"{effect.type_key} already exists", type_key=effect.type_key)
    return effect.pin


def _next_version(
    effect: Append | Replace | Overwrite | AddColumns | Maintain,
    pin: Pin,
    tables: TableStore,
) -> Pin:
    match effect:
        case Append():
            return tables.append(pin, _only_staged(effect.new)) if effect.new else pin
        case Replace():
            found, staged = _found(effect, pin, tables), _only_staged(effect.new)
            return tables.replace(pin, dead=found.row_ids, staged=staged, addresses=found.addresses)
        case Overwrite():
            return tables.overwrite(pin, _only_staged(effect.new))
        case AddColumns():
            return tables.add_columns(pin, effect.schema)
        case Maintain():
            return _replayed(effect, pin, tables)
        case _:
            assert_never(effect)


def _replayed(effect: Maintain, pin: Pin, tables: TableStore) -> Pin:
    replayed = tables.replay(effect.compacted, pin)
    if replayed is None:
        message = f"{effect.type_key} has no longer the fragments that were compacted"
        raise Conflict(message, type_key=effect.type_key)
    return replayed


def _found(effect: Replace, pin: Pin, tables: TableStore) -> Found:
    """The dying rows on this pin; another pin may keep them at other places."""
    if effect.found is not None:
        known = effect.found.addresses if effect.found.version == pin.version else None
        return Found(pin.version, effect.found.row_ids, known)
    if effect.dead == EMPTY:
        return Found(pin.version, pa.array([], pa.uint64()))
    rows = tables.open(pin).find(ID_COLUMN, effect.dead.to_array())
    if rows.num_rows != len(effect.dead):
        message = f"{effect.type_key}: {len(effect.dead)} rows to replace, {rows.num_rows} found"
        raise Conflict(message, type_key=effect.type_key)
    return Found(pin.version, rows["_rowid"].combine_chunks().cast(pa.uint64()))


def _only_staged(parts: tuple[Part, ...]) -> list[Staged]:
    return [part for part in parts if isinstance(part, Staged)]


def _required(pin: Pin | None, type_key: str) -> Pin:
    if pin is None:
        raise Conflict(f"{type_key} does not exist", type_key=type_key)
    return pin
