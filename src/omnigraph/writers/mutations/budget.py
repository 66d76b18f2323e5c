"""How much a mutation may hold in memory, counted while it reads."""

from __future__ import annotations

from typing import Final

from omnigraph.errors import ResourceLimitError

# What a mutation reads is held until it is committed, and is there about twice while it is written.
MUTATION_BYTES_MAX: Final = 1024 * 1024 * 1024


class MutationBudget:
    """The bytes that the statements of one mutation have read so far."""

    def __init__(self) -> None:
        self._spent = 0

    def spend_bytes(self, size: int) -> None:
        """Count more bytes; too many in all are refused."""
        self._spent += size
        if self._spent > MUTATION_BYTES_MAX:
            raise ResourceLimitError(
                "the number of bytes that one mutation reads",
                limit=MUTATION_BYTES_MAX,
                actual=self._spent,
                hint="narrow its conditions, and run it in several parts",
            )
