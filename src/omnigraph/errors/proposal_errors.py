"""Errors of proposals: one that does not exist, and what may not happen to one."""

from __future__ import annotations

from omnigraph.errors.base_error import OmnigraphError


class ProposalNotFoundError(OmnigraphError):
    """No proposal has that number."""

    code = "proposal_not_found"

    def __init__(self, number: int) -> None:
        super().__init__(
            f"there is no proposal {number}", hint="look at `omnigraph proposal list --all`"
        )
        self.number = number


class ProposalRefusedError(OmnigraphError):
    """What may not happen to a proposal as it is now; `number` is None for one that is new."""

    code = "proposal_refused"

    def __init__(self, message: str, *, number: int | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.number = number
