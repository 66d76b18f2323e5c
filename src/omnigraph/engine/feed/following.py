"""Following a branch: every commit as it comes, for as long as somebody listens."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import Final

from omnigraph.engine.feed.packing import Limits
from omnigraph.engine.feed.pages import Block, FeedPage
from omnigraph.engine.feed.polling import Feed, FromCursor, FromPage, Origin
from omnigraph.errors import InvalidArgumentError

# How long a follower that has seen everything waits before it looks again.
POLL_S: Final = 1.0


def follow(
    feed: Feed,
    origin: Origin,
    *,
    limits: Limits,
    poll_s: object = POLL_S,
    wait: Callable[[float], None] = time.sleep,
) -> Iterator[Block]:
    """The blocks behind a position and all that follow; the first look is now, not later."""
    if not isinstance(poll_s, int | float) or isinstance(poll_s, bool):
        raise InvalidArgumentError(
            "poll_s", f"a {type(poll_s).__name__} is not a number of seconds"
        )
    if not math.isfinite(poll_s) or poll_s < 0:
        raise InvalidArgumentError("poll_s", f"{poll_s} is not a time to wait")
    return _follow_pages(feed, feed.poll(origin, limits), limits=limits, pause=lambda: wait(poll_s))


def _follow_pages(
    feed: Feed, page: FeedPage, *, limits: Limits, pause: Callable[[], None]
) -> Iterator[Block]:
    while True:
        yield from page.blocks
        if page.next_page_token is not None:
            page = feed.poll(FromPage(page.next_page_token), limits)
            continue
        if page.caught_up:
            pause()
        assert page.cursor is not None, "the last page of a poll has a cursor"
        page = feed.poll(FromCursor(page.cursor), limits)
