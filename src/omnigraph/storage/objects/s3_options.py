"""How S3 is reached: options first, then the AWS_* environment, alike for objects and tables.

Objects go through obstore and tables through Lance. Both read the environment, and would settle
some contradictions each in its own way; here they are settled once, for both.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from omnigraph.errors import StorageRefusedError

# Options of the connection rather than of S3; the environment has them as AWS_ALLOW_HTTP and so on.
CLIENT_OPTIONS: Final = frozenset(
    {
        "allow_http",
        "allow_invalid_certificates",
        "connect_timeout",
        "pool_idle_timeout",
        "pool_max_idle_per_host",
        "proxy_url",
        "timeout",
        "user_agent",
    }
)
# One name for the endpoint: this one wins over every other name, in options and environment.
_ENDPOINT = "aws_endpoint_url_s3"
_ENDPOINTS = (_ENDPOINT, "aws_endpoint_url", "aws_endpoint", "endpoint_url", "endpoint")
_PATH_STYLE = "aws_s3_force_path_style"
_VIRTUAL_HOSTS = "aws_virtual_hosted_style_request"
_YES = {"1", "true", "on", "yes", "y"}


def resolve_s3_options(
    options: Mapping[str, str], environment: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """The options with everything from the environment that the clients would read differently."""
    settled = {_normalize_name(key): value for key, value in options.items()}
    endpoint = _find_first(settled, _ENDPOINTS) or _first_of(environment, _ENDPOINTS)
    if endpoint:
        settled = {key: value for key, value in settled.items() if key not in _ENDPOINTS}
        settled[_ENDPOINT] = endpoint
    for name in CLIENT_OPTIONS:
        value = environment.get(f"AWS_{name.upper()}")
        if value:
            settled.setdefault(name, value)
    is_path_style = settled.pop(_PATH_STYLE, None)
    if is_path_style is None and _VIRTUAL_HOSTS not in settled:
        is_path_style = environment.get(_PATH_STYLE.upper())
    if is_path_style is not None and is_path_style.lower() in _YES:
        settled[_VIRTUAL_HOSTS] = "false"
    if endpoint and endpoint.startswith("http://"):
        _require_allowed(endpoint, settled.get("allow_http", ""))
    return settled


def _normalize_name(key: str) -> str:
    """The name of an option, which may be written like its variable."""
    name = key.lower()
    return name.removeprefix("aws_") if name.removeprefix("aws_") in CLIENT_OPTIONS else name


def _find_first(options: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((options[name] for name in names if options.get(name)), None)


def _first_of(environment: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    variables = tuple(name.upper() for name in names if name.startswith("aws_"))
    return _find_first(environment, variables)


def _require_allowed(endpoint: str, allow_http: str) -> None:
    if allow_http.lower() not in _YES:
        raise StorageRefusedError(
            "open",
            endpoint,
            "the endpoint is not encrypted",
            hint="use https://, or set AWS_ALLOW_HTTP=true (as an option: allow_http)",
        )
