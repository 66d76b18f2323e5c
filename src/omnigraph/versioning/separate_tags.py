"""Tags whose events are apart from those of branches, in graphs that were not upgraded.

They are read and deleted where they are, and none is created there, so that they decide nothing
between two creators: a name that is not live there never will be. `upgrade` moves them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

from omnigraph.errors import CorruptObjectError, FormatTooNewError, UnknownFeatureError
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.object_store import Objects
from omnigraph.versioning import ref_events
from omnigraph.versioning.graph_format import SHARED_NAMES, read_format
from omnigraph.versioning.ref_events import (
    find_newest_generations,
    is_live,
    put_event,
    read_event,
)
from omnigraph.versioning.tag_events import Tag, decode_tag


class SeparateTags:
    """The tags of one graph that have a folder of their own."""

    def __init__(self, objects: Objects, now_us: Callable[[], int]) -> None:
        self._objects = objects
        self._now_us = now_us
        # Whether the graph can have such tags, once that is known: an upgrade ends it for good.
        self._may_exist: bool | None = None

    def list(self, deleted_since: int | None = None) -> Iterator[Tag]:
        """Those that are live; with those deleted since a time (µs), if one is given."""
        for name, generation in self.list_generations().items():
            if is_live(generation):
                yield self._read(name, generation)
            elif deleted_since is not None:
                deleted = read_event(self._objects, layout.build_tag_event_path(name, generation))
                if deleted.get_integer("created_at") >= deleted_since:
                    yield self._read(name, generation - 1)

    def list_generations(self) -> dict[str, int]:
        """The number of the newest event of every name."""
        return self._find_generations(layout.TAGS)

    def get(self, name: str) -> Tag | None:
        """A live tag by its name."""
        generation = self._find_generation(name)
        return self._read(name, generation) if is_live(generation) else None

    def is_tag(self, name: str) -> bool:
        """Whether a name stands for such a tag."""
        return is_live(self._find_generation(name))

    def is_deleted(self, name: str) -> bool:
        """Whether the newest event of a name ended it; a name without events is not deleted."""
        generation = self._find_generation(name)
        return generation > 0 and not is_live(generation)

    def delete(self, name: str, *, actor: str | None = None) -> bool:
        """Free a name; False if no such tag has it."""
        generation = self._find_generation(name)
        if not is_live(generation):
            return False
        event = ref_events.build_deletion(now_us=self._now_us(), actor=actor)
        path = layout.build_tag_event_path(name, generation + 1)
        return put_event(self._objects, path, event, what=f"tag '{name}'")

    def _find_generation(self, name: str) -> int:
        return self._find_generations(layout.build_tag_folder(name)).get(name, 0)

    def _find_generations(self, folder: str) -> dict[str, int]:
        if self._may_exist is None:
            self._may_exist = self._read_whether_any_may_exist()
        if self._may_exist is False:
            return {}
        listed = (entry.path for entry in self._objects.list(folder))
        return find_newest_generations(listed, layout.parse_tag_event_path)

    def _read_whether_any_may_exist(self) -> bool | None:
        # Where the format cannot be read, which is an error of its own, they are looked for.
        with suppress(CorruptObjectError, FormatTooNewError, UnknownFeatureError):
            found = read_format(self._objects)
            return found is not None and SHARED_NAMES not in found.features
        return None

    def _read(self, name: str, generation: int) -> Tag:
        fields = read_event(self._objects, layout.build_tag_event_path(name, generation))
        fields.require("op", "create")
        return decode_tag(name, fields)
