"""An alias and its arguments as a call of a stored query."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from omnigraph.errors import AliasError
from omnigraph.operator_config.address_resolver import ServerAddress, find_server
from omnigraph.operator_config.operator_settings import Alias, OperatorConfig


@dataclass(frozen=True, slots=True)
class StoredQueryCall:
    """A request for a stored query of a server; one that expects a read cannot write."""

    server: ServerAddress
    query: str
    params: Mapping[str, Any]  # Any: JSON values
    branch: str | None = None
    snapshot: str | None = None
    expects_mutation: bool = False
    timeout_s: float | None = None
    memory_bytes: int | None = None

    @property
    def url(self) -> str:
        """Where the request goes."""
        return f"{self.server.url}/queries/{quote(self.query, safe='')}"

    def to_json(self) -> dict[str, Any]:  # Any: a JSON document
        """The body of the request."""
        bounds = {"timeout": self.timeout_s, "memory": self.memory_bytes}
        return {
            "params": dict(self.params),
            "branch": self.branch,
            "snapshot": self.snapshot,
            "expect_mutation": self.expects_mutation,
            **{name: value for name, value in bounds.items() if value is not None},
        }


def find_alias(name: str, config: OperatorConfig) -> Alias:
    """The alias of a name."""
    if name not in config.aliases:
        known = ", ".join(sorted(config.aliases))
        hint = f"known are {known}" if known else "the operator config declares none"
        raise AliasError(f"no alias has the name '{name}'", hint=hint)
    return config.aliases[name]


def build_call(
    alias: Alias,
    arguments: Sequence[str],
    params: Mapping[str, Any] | None,  # Any: JSON values
    config: OperatorConfig,
) -> StoredQueryCall:
    """The call that an alias stands for: its own parameters, then arguments, then `params`."""
    if len(arguments) > len(alias.args):
        expected = ", ".join(alias.args) or "none"
        raise AliasError(
            f"alias '{alias.name}' takes {len(alias.args)} arguments, and {len(arguments)} are"
            " given",
            hint=f"its arguments: {expected}",
        )
    given = {
        name: _decode_argument(text) for name, text in zip(alias.args, arguments, strict=False)
    }
    origin = config.origin_of(f"aliases.{alias.name}")
    server = ServerAddress(find_server(alias.server, config), alias.graph, origin)
    return StoredQueryCall(server, alias.query, {**alias.params, **given, **(params or {})})


def _decode_argument(text: str) -> Any:  # Any: a JSON value
    try:
        return json.loads(text)
    except ValueError:
        return text
