"""Compiled queries, kept by their text, their name and the schema they were compiled for."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final

from omnigraph.query import CompiledQuery, compile_query
from omnigraph.syntax import Mode
from omnigraph.versioning.schemas import StoredSchema

# A plan holds a few kilobytes; a program has some dozens of texts.
PLANS_MAX: Final = 512
# A longer text, such as one with its data written into it, is hardly run twice.
TEXT_LENGTH_MAX: Final = 64 * 1024


class Plans:
    """The compiled queries of one graph; safe to share between threads."""

    def __init__(self, mode: Mode) -> None:
        self._mode = mode
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, str | None, str], CompiledQuery] = OrderedDict()

    def get(self, text: str, *, name: str | None, schema: StoredSchema) -> CompiledQuery:
        """The query of that name in a text, or the only one."""
        place = (text, name, schema.digest)
        with self._lock:
            if (known := self._known.get(place)) is not None:
                self._known.move_to_end(place)
                return known
        compiled = compile_query(text, schema.catalog, name=name, mode=self._mode)
        if len(text) <= TEXT_LENGTH_MAX:
            self._keep(place, compiled)
        return compiled

    def _keep(self, place: tuple[str, str | None, str], compiled: CompiledQuery) -> None:
        with self._lock:
            self._known[place] = compiled
            while len(self._known) > PLANS_MAX:
                self._known.popitem(last=False)
