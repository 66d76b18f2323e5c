"""Errors of addressing: flags, credentials, aliases, and graphs that cannot be reached."""

from __future__ import annotations

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
    """A graph on a server, which this version cannot reach; `url` is its address."""

    code = "remote_unavailable"

    def __init__(self, url: str) -> None:
        super().__init__(
            f"{url}: remote graphs are not available in this version yet",
            hint="address the graph's storage directly: a path, file:// or s3://",
        )
        self.url = url
