"""Time spans as people write them (`90`, `30s`, `15m`, `12h`, `7d`, `2w`) and as they pass."""

from __future__ import annotations

import re
import time
from typing import Final

_SPAN: Final = re.compile(r"([0-9]{1,12})([smhdw]?)")
# It goes on while the machine is suspended, where the system has such a clock.
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_SECONDS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def parse_duration(text: str) -> int | None:
    """The seconds of a time span in a text; None for a text that is not a time span."""
    found = _SPAN.fullmatch(text.strip())
    return int(found[1]) * _SECONDS[found[2]] if found else None


def format_duration(seconds: float) -> str:
    """A number of seconds in the largest unit that fits."""
    for unit in "wdhm":
        if seconds > _SECONDS[unit] and seconds % _SECONDS[unit] == 0:
            return f"{int(seconds) // _SECONDS[unit]}{unit}"
    return f"{seconds:g}s"


def read_clock_s() -> float:
    """The seconds of a clock that only goes forward, also during suspend where that is known."""
    return time.clock_gettime(_CLOCK)
