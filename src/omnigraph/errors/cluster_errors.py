"""Errors of clusters."""

from __future__ import annotations

from omnigraph.errors.base_error import OmnigraphError


class ClusterError(OmnigraphError):
    """A cluster cannot be used as it is applied; `reason` is the code of the finding."""

    code = "cluster_unusable"

    def __init__(self, reason: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.reason = reason
