"""Effects: what a commit does to tables, as data, and the one function that applies them."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from concurrent.futures import Executor, wait
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias, TypeVar, assert_never

import pyarrow as pa

from omnigraph.errors import ConflictError
from omnigraph.storage.tables.added_columns import ConvertedColumn
from omnigraph.storage.tables.pins import Pin, Staged
from omnigraph.versioning.id_sets import EMPTY, IdSet

ID_COLUMN = "__id"

# Up to here the memory of rows is a good measure of their size; above, they may be a slice of more.
_QUICK_BYTES_MAX: Final = 64 * 1024

# Rows of a write: still in memory, or already written and waiting for their commit.
Part: TypeAlias = pa.Table | Staged


_Result = TypeVar("_Result")
# Writes rows that no version refers to yet.
WriteRows: TypeAlias = Callable[[Pin, pa.Table], Staged]


def count_bytes(rows: pa.Table) -> int:
    """The size of rows in memory; a slice counts without what it leaves out."""
    size: int = rows.get_total_buffer_size()
    return size if size <= _QUICK_BYTES_MAX else rows.nbytes


@dataclass(frozen=True, slots=True)
class LocatedRows:
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
    found: LocatedRows | None = None


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
class ConvertColumns:
    """Columns at the end of a table whose values are made of those of others, which stay."""

    type_key: str
    columns: tuple[ConvertedColumn, ...]


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
    """A type that continues under another name."""

    type_key: str
    to: str


@dataclass(frozen=True, slots=True)
class Adopt:
    """A version of the table that another branch made on top of the one this branch has.

    Only a descendant of the version may be adopted: along a branch a row id means one row.
    """

    type_key: str
    over: Pin
    pin: Pin


@dataclass(frozen=True, slots=True)
class Maintain:
    """A compacted form of the table, to be replayed on whatever version it has by then."""

    type_key: str
    # What `compact` or `build_indexes` of the tables gave: files that no version has yet.
    compacted: object


Effect: TypeAlias = (
    Append
    | Replace
    | Overwrite
    | AddColumns
    | ConvertColumns
    | Adopt
    | Register
    | Drop
    | Rename
    | Maintain
)


class OpenTable(Protocol):
    """What effects need of an open table."""

    def find(self, column: str, values: pa.Array) -> pa.Table:
        """The rows that hold one of the values: the column and `_rowid`."""


class TableStore(Protocol):
    """What versioning needs of the tables of a graph."""

    def open(self, pin: Pin) -> OpenTable:
        """An immutable view of a version."""

    def write(self, pin: Pin, rows: pa.Table, *, is_synced: bool = True) -> Staged:
        """Write rows that no version refers to yet; the version syncs what is not synced."""

    def discard(self, written: Any) -> None:  # opaque to us
        """Remove files that will never be in a version."""

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

    def convert_columns(
        self, pin: Pin, columns: Sequence[ConvertedColumn], *, own: list[Any]
    ) -> Pin:
        """A version with more columns, made of others; `own` gets what it writes."""

    def forget_unpublished(self) -> None:
        """Forget files that were written for writes under way: they may be removed."""

    def plan_compaction(self, pin: Pin) -> Any:  # opaque to us
        """What is worth rewriting, or None."""

    def compact(self, plan: Any) -> Any:  # opaque to us
        """The rewritten rows, not yet in a version."""

    def replay(self, compacted: Any, pin: Pin) -> Pin | None:  # opaque to us
        """A version with the rewritten rows, or None when the plan no longer fits."""


@dataclass(frozen=True, slots=True)
class _Life:
    """A type that a write meets under a name, or one that it begins under that name."""

    type_key: str
    is_new: bool


class EffectApplier:
    """Applies the effects of one write to the pins of any head.

    Rows are written once, however often the effects are applied. A table whose pin is the one of
    the last time keeps its result, so that a retry after a lost race costs nothing for it. What
    follows a Register happens to the new type, whatever its name meant before.
    """

    def __init__(
        self, tables: TableStore, effects: Iterable[Effect], *, executor: Executor | None = None
    ) -> None:
        self._tables = tables
        self._executor = executor
        self._by_life: dict[_Life, list[Effect]] = {}
        self._renames: list[Rename] = []
        for effect in effects:
            if isinstance(effect, Rename):
                self._renames.append(effect)
                continue
            reborn = _Life(effect.type_key, is_new=True)
            is_new = isinstance(effect, Register) or reborn in self._by_life
            life = reborn if is_new else _Life(effect.type_key, is_new=False)
            self._by_life.setdefault(life, []).append(effect)
        self._applied: dict[_Life, tuple[Pin | None, Pin | None]] = {}
        # Files that it wrote itself; those of its effects belong to the writer that staged them.
        self._own: list[Any] = []  # opaque to us
        # Whether a record that names its files may be stored.
        self.is_offered = False

    def discard(self) -> None:
        """Remove the rows it wrote, and files of maintenance, unless a record may name them.

        Rows that were staged for it are kept: they may be needed again, or their author has them
        removed.
        """
        effects = [effect for group in self._by_life.values() for effect in group]
        work = [effect.compacted for effect in effects if isinstance(effect, Maintain)]
        own, self._own = [*self._own, *work], []
        for staged in [] if self.is_offered else own:
            # Any failure: it must not hide why the write itself failed.
            with suppress(Exception):
                self._tables.discard(staged)

    def write(self, pins: Mapping[str, Pin]) -> None:
        """Write the rows of tables that nothing else happens to, before the effects are applied."""
        alone = [life for life, group in self._by_life.items() if len(group) == 1]

        def write_one(life: _Life) -> None:
            group = self._by_life[life]
            group[0] = self._write_effect(group[0], pins[life.type_key])

        self._run(write_one, [each for each in alone if each.type_key in pins])

    def apply(self, pins: Mapping[str, Pin]) -> dict[str, Pin | None]:
        """The pins that the effects make of the given ones; None is a type that ends."""
        ended = {rename.type_key for rename in self._renames} | {
            effect.type_key
            for group in self._by_life.values()
            for effect in group
            if isinstance(effect, Drop)
        }

        def apply_one(life: _Life) -> Pin | None:
            is_free = life.is_new and life.type_key in ended
            return self._apply_group(life, None if is_free else pins.get(life.type_key))

        lives = list(self._by_life)
        results = dict(zip(lives, self._run(apply_one, lives), strict=True))
        touched = {life.type_key: pin for life, pin in results.items() if not life.is_new}
        begun = {life.type_key: pin for life, pin in results.items() if life.is_new}
        return touched | self._apply_renames({**pins, **touched}, begun) | begun

    def _run(self, work: Callable[[_Life], _Result], tasks: list[_Life]) -> list[_Result]:
        """Work on several tables at the same time; all have ended when one of them raises.

        Files that a table still writes would not be among those that are discarded.
        """
        if self._executor is None or len(tasks) < 2:
            return [work(task) for task in tasks]
        futures = [self._executor.submit(work, task) for task in tasks]
        wait(futures)
        return [future.result() for future in futures]

    def _apply_renames(
        self, pins: Mapping[str, Pin | None], begun: Container[str]
    ) -> dict[str, Pin | None]:
        """All renames at once, so that names may be swapped; no living type is overwritten."""
        old_names = {rename.type_key for rename in self._renames}
        moved: dict[str, Pin | None] = dict.fromkeys(old_names)
        for rename in self._renames:
            is_taken = pins.get(rename.to) is not None and rename.to not in old_names
            if is_taken or rename.to in begun:
                raise ConflictError(f"{rename.to} exists already", type_key=rename.to)
            moved[rename.to] = _require_pin(pins.get(rename.type_key), rename.type_key)
        return moved

    def _write_effect(self, effect: Effect, pin: Pin | None) -> Effect:
        def write(pin: Pin, rows: pa.Table) -> Staged:
            # Few rows: more are written ahead.
            staged = self._tables.write(pin, rows, is_synced=False)
            self._own.append(staged)
            return staged

        return _write_rows(effect, pin, write)

    def _apply_group(self, life: _Life, base: Pin | None) -> Pin | None:
        if life in self._applied and self._applied[life][0] == base:
            return self._applied[life][1]
        pin = base
        group = self._by_life[life]
        for number in range(len(group)):
            # Kept at once: if a later step fails, the rows are not written a second time.
            group[number] = self._write_effect(group[number], pin)
            pin = _apply_effect(group[number], pin, self._tables, self._own)
        self._applied[life] = (base, pin)
        return pin


def group_staged_files(effects: Iterable[Effect]) -> dict[int, list[str]]:
    """The files that were written before effects were prepared, by the sweep they came after."""
    files: dict[int, list[str]] = {}
    for effect in effects:
        if isinstance(effect, Append | Replace | Overwrite):
            for part in _select_staged(effect.new):
                files.setdefault(part.after_sweep, []).extend(part.list_files)
    return files


def is_rewritable(effect: Effect) -> bool:
    """Whether an effect names no file but those of staged rows, which can be compared by name."""
    return not isinstance(effect, Adopt | Register | Maintain)


def _write_rows(effect: Effect, pin: Pin | None, write: WriteRows) -> Effect:
    """The effect with all its rows written, one write for all tables of one schema."""
    match effect:
        case Append():
            return Append(effect.type_key, _stage_parts(effect.new, pin, effect.type_key, write))
        case Replace():
            staged = _stage_parts(effect.new, pin, effect.type_key, write)
            return Replace(effect.type_key, effect.dead, staged, effect.found)
        case Overwrite():
            return Overwrite(effect.type_key, _stage_parts(effect.new, pin, effect.type_key, write))
        case _:
            return effect


def _stage_parts(
    parts: tuple[Part, ...], pin: Pin | None, type_key: str, write: WriteRows
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
    base = _require_pin(pin, type_key)
    return (*staged, *(write(base, _concatenate_tables(group)) for group in groups))


def _concatenate_tables(tables: list[pa.Table]) -> pa.Table:
    # In one piece: a piece per waiting write would cost as much as a write of its own.
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables).combine_chunks()


def _apply_effect(
    effect: Effect, pin: Pin | None, tables: TableStore, own: list[Any]
) -> Pin | None:
    """The pin that one effect makes of another; `own` gets the files that it writes itself."""
    match effect:
        case Register():
            return _apply_register(effect, pin)
        case Drop():
            _require_pin(pin, effect.type_key)
            return None
        case Rename():
            raise AssertionError("a rename moves a pin and makes none")
        case _:
            return _create_version(effect, _require_pin(pin, effect.type_key), tables, own)


def _apply_register(effect: Register, pin: Pin | None) -> Pin:
    if pin is not None:
        raise ConflictError(f"{effect.type_key} already exists", type_key=effect.type_key)
    return effect.pin


def _create_version(
    effect: Append | Replace | Overwrite | AddColumns | ConvertColumns | Adopt | Maintain,
    pin: Pin,
    tables: TableStore,
    own: list[Any],
) -> Pin:
    match effect:
        case Append():
            return tables.append(pin, _select_staged(effect.new)) if effect.new else pin
        case Replace():
            found, staged = _locate_rows(effect, pin, tables), _select_staged(effect.new)
            return tables.replace(pin, dead=found.row_ids, staged=staged, addresses=found.addresses)
        case Overwrite():
            return tables.overwrite(pin, _select_staged(effect.new))
        case AddColumns():
            return tables.add_columns(pin, effect.schema)
        case ConvertColumns():
            return tables.convert_columns(pin, effect.columns, own=own)
        case Adopt():
            return _apply_adopt(effect, pin)
        case Maintain():
            return _apply_maintenance(effect, pin, tables)
        case _:
            assert_never(effect)


def _apply_adopt(effect: Adopt, pin: Pin) -> Pin:
    if pin != effect.over:
        message = f"{effect.type_key} is no longer at the version that was to be replaced"
        raise ConflictError(message, type_key=effect.type_key)
    return effect.pin


def _apply_maintenance(effect: Maintain, pin: Pin, tables: TableStore) -> Pin:
    replayed = tables.replay(effect.compacted, pin)
    if replayed is None:
        message = f"{effect.type_key} has no longer the fragments that were compacted"
        raise ConflictError(message, type_key=effect.type_key)
    return replayed


def _locate_rows(effect: Replace, pin: Pin, tables: TableStore) -> LocatedRows:
    """The dying rows on this pin; another pin may keep them at other places."""
    if effect.found is not None:
        known = effect.found.addresses if effect.found.version == pin.version else None
        return LocatedRows(pin.version, effect.found.row_ids, known)
    if effect.dead == EMPTY:
        return LocatedRows(pin.version, pa.array([], pa.uint64()))
    rows = tables.open(pin).find(ID_COLUMN, effect.dead.to_array())
    if rows.num_rows != len(effect.dead):
        message = f"{effect.type_key}: {len(effect.dead)} rows to replace, {rows.num_rows} found"
        raise ConflictError(message, type_key=effect.type_key)
    return LocatedRows(pin.version, rows["_rowid"].combine_chunks().cast(pa.uint64()))


def _select_staged(parts: tuple[Part, ...]) -> list[Staged]:
    return [part for part in parts if isinstance(part, Staged)]


def _require_pin(pin: Pin | None, type_key: str) -> Pin:
    if pin is None:
        raise ConflictError(f"{type_key} does not exist", type_key=type_key)
    return pin
