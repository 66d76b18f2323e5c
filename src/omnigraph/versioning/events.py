"""Events of names: append only, one object each, so that a put-if-absent decides between two."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from omnigraph.errors import CorruptObject, InDoubt, StorageError, StorageUnknown
from omnigraph.storage.objects import Objects
from omnigraph.versioning.fields import Fields, read_fields, write_fields

# An event whose acknowledgement was lost is put again this often before it is in doubt.
_PUTS_MAX: Final = 4


def is_live(generation: int) -> bool:
    """Whether a name stands for something after so many events: an odd one creates it."""
    return generation % 2 == 1


def newest(
    objects: Objects, folder: str, parse: Callable[[str], tuple[str, int] | None]
) -> dict[str, int]:
    """The number of the newest event of each name below a folder."""
    generations: dict[str, int] = {}
    for entry in objects.list(folder):
        found = parse(entry.path)
        if found is not None:
            generations[found[0]] = max(found[1], generations.get(found[0], 0))
    return generations


def read_event(objects: Objects, path: str) -> Fields:
    """The fields of an event that was listed."""
    data = objects.get(path)
    if data is None:
        raise CorruptObject(path, "it was listed, and it is absent")
    return read_fields(path, data)


def put_event(objects: Objects, path: str, event: dict[str, object], *, what: str) -> bool:
    """Put an event; True if it is there, False if another one is. `what` is it about, in words."""
    data = write_fields(event)
    may_be_there = False
    for _ in range(_PUTS_MAX):
        try:
            if objects.put_new(path, data):
                return True
            may_be_there = True
        except StorageUnknown:
            may_be_there = True
        except StorageError:
            # This put did nothing; one before it may still have created the event.
            if not may_be_there:
                raise
        # "Exists" may be our own put: stores repeat a request whose first answer was lost.
        with suppress(StorageError):
            if (found := objects.get(path)) is not None:
                return found == data
    raise InDoubt(f"{what}: no answer whether it was changed ({path})")
