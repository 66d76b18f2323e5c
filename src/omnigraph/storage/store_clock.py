"""The store's clock: the one clock that all writers of a graph share."""

from __future__ import annotations

from omnigraph.storage import layout
from omnigraph.storage.objects import Objects


def read_store_time(objects: Objects) -> int | None:
    """The time of a store now (µs since 1970), by an object just written: two requests.

    None for a store that does not say when its objects were written.
    """
    objects.put(layout.CLOCK, b"")
    newest = max((entry.modified for entry in objects.list(layout.CLOCK_FOLDER)), default=0.0)
    return int(newest * 1_000_000) or None
