"""Commits that are stamped in the future: odd, harmless, and worth knowing."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import timedelta

from omnigraph.engine.checks.problems import Problems
from omnigraph.storage import layout
from omnigraph.versioning.record import Record
from omnigraph.versioning.stamps import AHEAD_S_MAX


def report_future_stamps(
    stream_id: str, records: Mapping[int, Record], stored: Mapping[int, float], problems: Problems
) -> None:
    """Name the first commit of a stream that is stamped later than it was stored.

    Times of the store are s since 1970, and 0 where it does not say them.
    """
    now = time.time()
    ahead = {
        seq: lead
        for seq, record in sorted(records.items())
        if record.made_at is None
        and (lead := record.created_at / 1_000_000 - min(stored.get(seq) or now, now)) > AHEAD_S_MAX
    }
    if not ahead:
        return
    first, lead = next(iter(ahead.items()))
    others = f", and so are {len(ahead) - 1} after it" if len(ahead) > 1 else ""
    message = (
        f"is commit {records[first].commit}, stamped {_format_span(lead)} after it was stored{others}:"
        " a clock was wrong; commits made from now on say their own time and are found by it"
    )
    problems.add_notice("clock", layout.build_record_path(stream_id, first), message)


def _format_span(seconds: float) -> str:
    days = timedelta(seconds=seconds).days
    return f"{days} days" if days else f"{seconds / 3600:.1f} hours"
