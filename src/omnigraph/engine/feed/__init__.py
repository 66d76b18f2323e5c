"""The change feed: what commits changed, in pages, with cursors that consumers keep.

In: a commit or a branch, filters, and a position. Out: blocks of changes with their values, one for
each commit of the branch, in order. Guarantee: a page costs what it shows, whatever the length of
the history; a token holds the whole state of a consumer, so the graph stores nothing for it; every
commit is delivered at least once, and a cursor is returned only after complete commits.

    branch_feed      polls a branch after a position, follows it, and makes baselines
    feed_tokens      cursors and page tokens, bound to a graph, a branch and filters
    page_builder     pages and their blocks, filled with the changes of one commit after the other
    commit_content   the types and ids that one commit wrote
    feed_batches     the same changes as Arrow batches, for readers that take all of them
"""

from omnigraph.engine.feed.branch_feed import (
    POLL_S,
    Baseline,
    Feed,
    follow,
    parse_origin,
    require_poll_interval,
)
from omnigraph.engine.feed.page_builder import (
    Block,
    Cause,
    ChangesPage,
    FeedPage,
    Limits,
    parse_limits,
    read_commit_changes,
)

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
    "require_poll_interval",
]
