"""How much a write lists one by one before it speaks of all: of a type, or of a table.

All of them are at most what a set of ids keeps in its quick form, so that no footprint outgrows it.
"""

from __future__ import annotations

from typing import Final

from omnigraph.versioning.idset import FEW_MAX

# Marks are made one by one and kept in records; beyond this a write says "anything of the type".
MARKS_MAX: Final = FEW_MAX
# Of more entities than this, the write asks that none of their type is deleted.
PRESENT_MAX: Final = FEW_MAX
# A scan of the table costs less than asking a set of known ids this often.
LOOKUP_IDS_MAX: Final = FEW_MAX
# Up to so many marks, at a few microseconds each, are made when another commit asks for them; a
# write that read more depends on its whole type.
DEFERRED_MARKS_MAX: Final = 1_000_000
