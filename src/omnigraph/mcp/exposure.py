"""Which tools a graph offers, and how much one of them answers with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

# A page of rows that a model can read; the rest is asked for with a cursor.
ROWS_MAX: Final = 200
# About sixteen thousand tokens: an eighth of a small context.
ANSWER_BYTES_MAX: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Exposure:
    """What of a graph is offered, whatever the policy allows beyond it."""

    # Whether callers may write queries of their own.
    has_adhoc: bool = False
    is_read_only: bool = False
    # Whether proposals are approved and merged by agents too.
    has_review_tools: bool = False
    # Whether a cluster brings its schema into force, and nothing else may.
    is_managed: bool = False
    # Stored queries that are not offered, and tool names of others.
    hidden: frozenset[str] = frozenset()
    renamed: Mapping[str, str] = field(default_factory=dict)
    rows_max: int = ROWS_MAX
    answer_bytes_max: int = ANSWER_BYTES_MAX
