"""Names of branches and tags: what may be one, and what a new one would be mistaken for."""

from __future__ import annotations

import re
import unicodedata
from datetime import datetime
from typing import Final

from omnigraph.ids import decode_ulid_ms, generate_ulid
from omnigraph.versioning.record import MAIN_BRANCH

LENGTH_MAX: Final = 200
# Controls, formats, halves of surrogate pairs, unassigned and private characters, separators.
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"})
_FORBIDDEN: Final = re.compile(r"[\x00-\x1f\x7f\\]|^\s|\s$")


def find_name_problem(name: str) -> str | None:
    """Why a text cannot be a name; None if it can be."""
    if not name:
        return "it is empty"
    if len(name) > LENGTH_MAX:
        return f"it has more than {LENGTH_MAX} characters"
    if _FORBIDDEN.search(name):
        return "it has control characters, a backslash, or space at an end"
    if any(part in ("", ".", "..") for part in name.split("/")):
        return "a part between slashes is empty or only dots"
    return None


def find_new_name_problem(name: str) -> str | None:
    """Why nothing may be given a name from now on: it means something else wherever it is read."""
    if name == MAIN_BRANCH:
        return "it is the name of the first branch"
    if decode_ulid_ms(name) is not None:
        return "it looks like the id of a commit"
    if parse_time(name) is not None:
        return "it looks like a time"
    if any(part.startswith("-") for part in name.split("/")):
        return "it looks like an option of a command"
    if any(unicodedata.category(each) in _UNSEEN for each in name):
        return "it has characters that are not seen, such as marks of direction"
    return find_name_problem(name)


def parse_time(text: str) -> datetime | None:
    """The time that a text with a zone is; None for any other text."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if found.tzinfo is None else found


def build_deletion(*, now_us: int, actor: str | None) -> dict[str, object]:
    """The event that ends a name."""
    # The id makes two deletions different objects, of which one is told that it came late.
    return {"op": "delete", "id": generate_ulid(), "created_at": now_us, "actor": actor}
