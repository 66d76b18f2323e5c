"""Addresses that people write down: a secret in one would be stored, printed and logged.

Nothing here repeats an address that it refuses.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

ADDRESS_WITH_USER: Final = "an address has no user, no password and no token in it"
_SCHEMES: Final = ("http", "https")


def has_user(address: str) -> bool:
    """Whether an address names a user, or a key and its secret, before its host or bucket."""
    host = address.partition("://")[2].partition("/")[0]
    return "@" in host


def examine_service_url(url: str) -> str | None:
    """Why a text cannot be the address of an HTTP service, or None."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "the address cannot be read: write https://HOST or https://HOST:PORT"
    if parts.scheme not in _SCHEMES or not parts.hostname or port == 0:
        return "the address of a service begins with http:// or https:// and names a host"
    if has_user(url):
        return ADDRESS_WITH_USER
    if parts.query or parts.fragment or not url.isprintable() or " " in url:
        return "the address of a service is a host and a path alone"
    return None
