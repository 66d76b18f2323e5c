"""Tags that have events of their own get events that they share with branches.

A tag is created in its new place before it is removed from the old one, so it can be read at any
moment; a tag in both places is one tag (`tags.Tags`). The old events of a name are removed
with the oldest one first, so that the newest one says what the name stands for until it is gone.
"""

from __future__ import annotations

from collections.abc import Callable

from omnigraph.errors import BranchRefusedError
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.object_store import Objects
from omnigraph.versioning.ref_events import RefEvents, build_deletion
from omnigraph.versioning.separate_tags import SeparateTags
from omnigraph.versioning.tag_events import Tag, build_tag_event, decode_tag


class MoveTags:
    """Moves the tags of one graph."""

    def __init__(self, objects: Objects, now_us: Callable[[], int]) -> None:
        self._objects = objects
        self._events = RefEvents(objects)
        self._separate = SeparateTags(objects, now_us)
        self._now_us = now_us

    def run(self, *, is_dry: bool) -> int:
        """Move every tag; the number of names that had events of their own."""
        found = self._separate.list_generations()
        for name, generation in sorted(found.items()):
            tag = self._separate.get(name)
            if tag is not None:
                self._create(tag, is_dry=is_dry)
            # What only a deleted tag kept loses the rest of its grace.
            for number in () if is_dry else range(1, generation + 1):
                self._objects.delete([layout.build_tag_event_path(name, number)])
        return len(found)

    def _create(self, tag: Tag, *, is_dry: bool) -> None:
        chain = self._events.complete_chain(tag.name, now_us=self._now_us())
        if chain.is_live:
            # An upgrade that stopped has created it.
            if not self._events.is_tag(tag.name, chain) or self._read(tag, chain.generation) != tag:
                raise BranchRefusedError(
                    f"the tag '{tag.name}' has the name of a branch or of another tag",
                    branch=tag.name,
                    hint="delete one of them, and run the upgrade again",
                )
        elif not is_dry:
            self._put(tag, chain.generation + 1)

    def _put(self, tag: Tag, generation: int) -> None:
        """Create a tag, unless it is deleted meanwhile."""
        is_made = self._events.put_tag(tag.name, generation, build_tag_event(tag))
        # A deletion ends the old events first: either it is seen here, or it sees the new event.
        if is_made and self._separate.is_deleted(tag.name):
            ended = build_deletion(now_us=self._now_us(), actor=None)
            self._events.put(tag.name, generation + 1, ended, what=f"tag '{tag.name}'")

    def _read(self, tag: Tag, generation: int) -> Tag:
        return decode_tag(tag.name, self._events.read_creation(tag.name, generation))
