"""Errors of policies: a bundle that cannot be used, an act that is denied or cannot be decided."""

from __future__ import annotations

from omnigraph.errors.base_error import OmnigraphError
from omnigraph.errors.config_errors import ConfigInvalidError


class PolicyInvalidError(ConfigInvalidError):
    """A policy bundle, or a file of its cases, that cannot be used; `problems` are all of them."""

    code = "policy_invalid"


class PolicyDeniedError(OmnigraphError):
    """An act that no rule of the policy allows to its actor."""

    code = "policy_denied"

    def __init__(
        self, message: str, *, actor: str | None, action: str, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.actor = actor
        self.action = action


class RowsGuardedError(PolicyDeniedError):
    """An act on types of which the actor may see some rows, where rows cannot be left out.

    `types` are their names.
    """

    code = "rows_guarded"

    def __init__(
        self,
        message: str,
        *,
        actor: str | None,
        action: str,
        types: tuple[str, ...],
        hint: str | None = None,
    ) -> None:
        super().__init__(message, actor=actor, action=action, hint=hint)
        self.types = types


class PolicyFailedError(OmnigraphError):
    """A policy that could not be compiled or evaluated: neither an allowance nor a denial."""

    code = "policy_failed"
