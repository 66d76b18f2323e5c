"""What a client of a store says about a failure, without what differs from one time to the next."""

from __future__ import annotations

import re

# "Error performing GET http://… in 3.38ms": alike failures have to be told alike.
_DURATION = re.compile(r" in \d+(\.\d+)?(ns|µs|ms|s)\b")


def reason_of(error: BaseException) -> str:
    """The first line of the message: the rest describes the internals of the client."""
    return _DURATION.sub("", str(error).partition("\n")[0])
