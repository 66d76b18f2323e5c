"""Errors of addressing: flags, credentials, aliases, and graphs that cannot be reached."""

from __future__ import annotations

from typing import Final

from omnigraph.errors.base_error import OmnigraphError


class AddressError(OmnigraphError):
    """No graph is addressed, or several are, or one in a way that cannot be used."""

    code = "address_refused"


class CredentialsError(OmnigraphError):
    """A token cannot be read or stored."""

    code = "credentials_refused"


class AliasError(OmnigraphError):
    """No alias has that name, or its arguments do not fit."""

    code = "alias_refused"


class RemoteUnavailableError(OmnigraphError):
    """A server that cannot be reached, or does not answer as one; `url` is its address."""

    code = "remote_unavailable"
    retryable = True

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(
            f"{url}: {reason}", hint="check the address and whether the server runs, then repeat it"
        )
        self.url = url


class RemoteRefusedError(OmnigraphError):
    """A request that a server refused before its graph was asked; `status` is that of HTTP."""

    code = "remote_refused"

    def __init__(self, message: str, *, status: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint or _HINTS.get(status))
        self.status = status


class RemoteBusyError(RemoteRefusedError):
    """A request that a server refused for now, before it began, so that nothing happened.

    `retry_after_s` is how long the server asks to wait.
    """

    code = "remote_busy"
    retryable = True

    def __init__(
        self, message: str, *, status: int, hint: str | None = None, retry_after_s: float = 0.0
    ) -> None:
        hint = hint or "wait, then repeat it: nothing was done"
        super().__init__(message, status=status, hint=hint)
        self.retry_after_s = retry_after_s


class RemoteUnsupportedError(OmnigraphError):
    """What only works on the storage of a graph, and was asked of one on a server."""

    code = "remote_unsupported"

    def __init__(self, url: str, what: str) -> None:
        super().__init__(
            f"{what} needs the storage of a graph, and {url} is a server",
            hint="address the graph's storage directly: a path, file:// or s3://",
        )
        self.url = url


_HINTS: Final = {
    401: "log in with `omnigraph login NAME`, or set $OMNIGRAPH_BEARER_TOKEN",
}
