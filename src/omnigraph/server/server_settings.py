"""The bounds and addresses of a server, from its flags and its environment."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import Any, Final

from omnigraph.errors import InvalidArgumentError

_log = logging.getLogger(__name__)

BIND_DEFAULT: Final = "127.0.0.1:8080"
# The bounds that the environment may set, by their field.
VARIABLES: Final[Mapping[str, str]] = {
    "actor_writes_max": "OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX",
    "actor_bytes_max": "OMNIGRAPH_PER_ACTOR_BYTES_MAX",
    "connections_max": "OMNIGRAPH_CONNECTIONS_MAX",
    "read_s_max": "OMNIGRAPH_READ_SECONDS_MAX",
    "read_bytes_max": "OMNIGRAPH_READ_BYTES_MAX",
    "drain_s_max": "OMNIGRAPH_DRAIN_SECONDS",
}
NO_WEB: Final = "OMNIGRAPH_NO_WEB"
REVIEW_TOOLS: Final = "OMNIGRAPH_MCP_REVIEW_TOOLS"
_FALSE: Final = frozenset({"", "0", "false"})


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """How a server listens, and what one request may use."""

    host: str = "127.0.0.1"
    port: int = 8080
    body_bytes_max: int = 1024 * 1024
    load_bytes_max: int = 32 * 1024 * 1024
    # A client that takes longer to send its headers or its body is not waited for.
    header_s_max: float = 10.0
    body_s_max: float = 60.0
    # A client that takes next to nothing of an answer for so long has gone.
    stall_s_max: float = 60.0
    keep_alive_s: int = 30
    connections_max: int = 4_096
    # A read that is not done by then is refused; a client may ask for less.
    read_s_max: float = 60.0
    # None leaves it to the engine: a quarter of the machine.
    read_bytes_max: int | None = None
    actor_writes_max: int = 16
    actor_bytes_max: int = 4 * 1024**3
    # Between the signal to end and the end of what is under way.
    drain_s_max: int = 30
    reload_s: float = 2.0
    # Whether agents may approve and merge proposals, as the policy allows.
    has_review_tools: bool = False
    # Open without being asked to be: requests are answered only to names of this machine.
    is_private: bool = False
    # Whether browsers get pages.
    has_web: bool = True

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches the server."""
        return is_loopback_host(self.host)


def build_settings(
    bind: str, environment: Mapping[str, str], *, has_web: bool = True
) -> ServerSettings:
    """The settings of a server; a bound that cannot be read leaves the default, with a warning."""
    host, port = parse_bind(bind)
    has_web = has_web and not is_set(environment, NO_WEB)
    numbers = {field: _read_number(environment, name) for field, name in VARIABLES.items()}
    # Any: each field is a number of its own kind
    given: dict[str, Any] = {field: found for field, found in numbers.items() if found is not None}
    given["has_review_tools"] = is_set(environment, REVIEW_TOOLS)
    return replace(ServerSettings(host, port, has_web=has_web), **given)


def _read_number(environment: Mapping[str, str], name: str) -> int | None:
    text = environment.get(name)
    if text is None:
        return None
    if text.isascii() and text.isdigit() and int(text) > 0:
        return int(text)
    _log.warning("%s is not a positive number; the default is used", name)
    return None


def parse_bind(text: str) -> tuple[str, int]:
    """The host and the port of `HOST:PORT`; port 0 lets the system choose."""
    host, separator, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not separator or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise InvalidArgumentError("bind", f"'{text}' is not HOST:PORT")
    return host, int(port)


def is_loopback_host(host: str) -> bool:
    """Whether a host is this machine by its own name; that of a site may lead to it, too."""
    try:
        return host.lower() == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def is_set(environment: Mapping[str, str], name: str) -> bool:
    """Whether a switch of the environment is on."""
    return environment.get(name, "").lower() not in _FALSE
