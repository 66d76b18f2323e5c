"""Compiled queries, kept by their text, their name, their schema and what their reader may see."""

from __future__ import annotations

import gc
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from traceback import clear_frames
from typing import Final, TypeAlias

import pyarrow as pa

from omnigraph.engine.visible_rows import compile_limits
from omnigraph.execution.query_budget import Budget
from omnigraph.lang.lexer import Mode
from omnigraph.lru_cache import LruCache
from omnigraph.query import CompiledQuery, compile_query
from omnigraph.query.row_limits import RowLimits
from omnigraph.versioning.schema_store import StoredSchema

# A plan holds a few kilobytes; a program has some dozens of texts.
PLANS_MAX: Final = 512

# A longer text, such as one with its data written into it, is hardly run twice.
TEXT_LENGTH_MAX: Final = 64 * 1024

# What tokens, trees and plans take for each character of a text: 60 to 140 bytes were measured.
COMPILED_BYTES: Final = 128

# Of the ids of a bulk load, a million take about this much.
BYTES_MAX: Final = 128 * 1024 * 1024


# What a caller may see is part of what his text means.
_Key: TypeAlias = tuple[str, str | None, str, RowLimits | None]


class CompiledQueryCache:
    """The compiled queries of one graph; safe to share between threads."""

    def __init__(self, mode: Mode) -> None:
        self._mode = mode
        self._known: LruCache[_Key, CompiledQuery] = LruCache(PLANS_MAX)

    def get(
        self,
        text: str,
        *,
        name: str | None,
        schema: StoredSchema,
        limits: RowLimits | None = None,
        budget: Budget | None = None,
    ) -> CompiledQuery:
        """The query of that name in a text, or the only one; to compile it draws on a budget."""
        key = (text, name, schema.digest, limits)
        if (known := self._known.get(key)) is not None:
            return known
        budget = budget or Budget()
        guards = () if limits is None else compile_limits(limits, schema.catalog)
        with budget.reserve(COMPILED_BYTES * len(text)), _pause_collector():
            compiled = compile_query(
                text,
                schema.catalog,
                name=name,
                mode=self._mode,
                guards=guards,
                poll=budget.check_interrupts,
            )
        if len(text) <= TEXT_LENGTH_MAX:
            self._known.put(key, compiled)
        return compiled


@contextmanager
def _pause_collector() -> Iterator[None]:
    """Run without Python's collector of cycles, unless the program has turned it off itself.

    Tokens and trees have no cycles, and are many: the collector would examine all objects of the
    process again and again, for tenths of a second in which nothing checks the time. It would do
    so at the end too, for all that a failure still holds, so a failure lets go of it first. Of
    several threads the first that ends turns the collector on.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    except BaseException as failure:
        clear_frames(failure.__traceback__)
        raise
    finally:
        gc.enable()


class ArrayCache:
    """Arrays by key, within a number of bytes; safe to share between threads."""

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self._arrays: LruCache[Hashable, pa.Array] = LruCache(bytes_max=bytes_max)

    def get(self, key: Hashable, make: Callable[[], pa.Array]) -> pa.Array:
        """The array of a key, made if it is not known; one that is too large is not kept."""
        if (known := self._arrays.get(key)) is not None:
            return known
        made = make()
        return self._arrays.put(key, made, made.nbytes)
