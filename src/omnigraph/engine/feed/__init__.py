"""The change feed: what commits changed, in pages, behind cursors that consumers keep.

In: a commit or a branch, filters, and a position. Out: blocks of changes with their images, one for
each commit of the branch, in order. Guarantee: a page costs what it shows, however long the history
is; tokens hold all there is to know of a consumer, so nothing is stored for them; every commit is
told at least once, and a cursor is only handed out behind whole commits.

    tokens        positions as texts: cursors and page tokens
    binding       what tokens belong to
    content       the types and ids that one commit wrote
    hydration     changes with their images, read as far as somebody looks
    packing       as many of them as fit into a page
    pages         what is answered
    commits       the pages of one commit
    polling       the pages of a branch behind a position
    following     every commit as it comes
    baseline      everything as of one commit, and the cursor behind it
"""

from omnigraph.engine.feed.branch_feed import POLL_S, Baseline, Feed, follow, parse_origin
from omnigraph.engine.feed.feed_pages import Block, Cause, ChangesPage, FeedPage
from omnigraph.engine.feed.page_builder import Limits, parse_limits, read_commit_changes

__all__ = [
    "POLL_S",
    "Baseline",
    "Block",
    "Cause",
    "ChangesPage",
    "Feed",
    "FeedPage",
    "Limits",
    "follow",
    "parse_limits",
    "parse_origin",
    "read_commit_changes",
]
