"""Tokens in the keyring of the system. A missing keyring is an error, never a reason for a file."""

from __future__ import annotations

from typing import Any, Final

from omnigraph.errors import CredentialsError
from omnigraph.errors.query_errors import require_extra

_SERVICE: Final = "omnigraph"


def store_token(server: str, token: str) -> None:
    """Keep the token of a server."""
    keyring, errors = _load_keyring()
    try:
        keyring.set_password(_SERVICE, server, token)
    except errors.KeyringError as failure:
        raise _describe_failure(failure) from None


def find_token(server: str) -> str | None:
    """The token of a server, if the keyring has one."""
    keyring, errors = _load_keyring()
    try:
        found: str | None = keyring.get_password(_SERVICE, server)
    except errors.KeyringError as failure:
        raise _describe_failure(failure) from None
    return found


def remove_token(server: str) -> None:
    """Forget the token of a server; without one, nothing happens."""
    keyring, errors = _load_keyring()
    try:
        keyring.delete_password(_SERVICE, server)
    except errors.PasswordDeleteError:
        return
    except errors.KeyringError as failure:
        raise _describe_failure(failure) from None


def _load_keyring() -> tuple[Any, Any]:  # Any: modules of an optional library
    with require_extra("keyring"):
        import keyring  # noqa: PLC0415 — an optional library
        from keyring import errors  # noqa: PLC0415 — as above
    return keyring, errors


def _describe_failure(failure: Exception) -> CredentialsError:
    # What a back end says is shown by its kind alone: its text may hold what it was given.
    return CredentialsError(
        f"the keyring of this system cannot be used ({type(failure).__name__})",
        hint="set one up, or keep the token in a private file: log in without --keyring",
    )
