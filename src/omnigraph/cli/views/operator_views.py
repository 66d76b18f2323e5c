"""Profiles, and what the operator config decides. A token is never part of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from omnigraph.cli.views.output_streams import align_columns
from omnigraph.errors import OmnigraphError
from omnigraph.operator_config.address_resolver import (
    PROFILE_VARIABLE,
    ClusterAddress,
    ServerAddress,
    find_server,
    resolve,
)
from omnigraph.operator_config.credentials import find_token
from omnigraph.operator_config.operator_home import CREDENTIALS_NAME, HOME_VARIABLE
from omnigraph.operator_config.operator_settings import Binding, OperatorConfig, Profile

if TYPE_CHECKING:
    from omnigraph.operator_config import Address, AddressFlags

_NONE: Final = "none"
_DEFAULTS_NAME: Final = "(defaults)"
_DEFAULT_OUTPUT: Final = "table"


@dataclass(frozen=True, slots=True)
class ProfileList:
    """All profiles, also those that cannot be used."""

    config: OperatorConfig
    active: str | None

    def to_json(self) -> list[dict[str, Any]]:  # Any: a JSON document
        """The document of `profile list`."""
        return [
            {
                "name": each.name,
                "binding": None if each.binding is None else f"{each.binding}:{each.target}",
                "scope_kind": each.binding or _NONE,
                "target": None if each.binding is None else each.target,
                "valid": each.error is None,
                "error": each.error,
                "default_graph": each.default_graph,
                "active": each.name == self.active,
            }
            for _, each in sorted(self.config.profiles.items())
        ]

    def to_lines(self) -> Iterator[str]:
        """A profile per line."""
        rows = [
            (
                "*" if each["active"] else "",
                each["name"],
                each["binding"] or f"invalid: {each['error']}",
                each["default_graph"] or "",
            )
            for each in self.to_json()
        ]
        yield from align_columns(rows) if rows else ["no profiles"]


@dataclass(frozen=True, slots=True)
class OneProfile:
    """One profile, or what holds without one."""

    config: OperatorConfig
    name: str | None

    def to_json(self) -> dict[str, Any]:  # Any: a JSON document
        """The document of `profile show`."""
        profile = self._make_default() if self.name is None else self.config.profiles[self.name]
        binding = profile.binding
        return {
            "name": profile.name,
            "scope_kind": binding or _NONE,
            "target": profile.target if binding else None,
            "endpoint": None if binding is None else self._find_endpoint(binding, profile.target),
            "default_graph": profile.default_graph,
            "output_format": self.config.output or _DEFAULT_OUTPUT,
        }

    def to_lines(self) -> Iterator[str]:
        """A field per line."""
        for name, value in self.to_json().items():
            yield f"{name}: {_NONE if value is None else value}"

    def _make_default(self) -> Profile:
        given = {
            Binding.SERVER: self.config.default_server,
            Binding.STORE: self.config.default_store,
        }
        targets = {binding: target for binding, target in given.items() if target is not None}
        return Profile(_DEFAULTS_NAME, targets, self.config.default_graph)

    def _find_endpoint(self, binding: Binding, target: str) -> str:
        match binding:
            case Binding.SERVER:
                return find_server(target, self.config)
            case Binding.CLUSTER:
                return self.config.find_root(target)
            case Binding.STORE:
                return self.config.locate(target)


@dataclass(frozen=True, slots=True)
class ConfigView:
    """What holds for one command line: each value, and the flag, variable or line that decided."""

    config: OperatorConfig
    flags: AddressFlags
    actor: str | None
    environment: Mapping[str, str]
    has_origins: bool = True

    def without_origins(self) -> ConfigView:
        """The same, with the values alone."""
        return replace(self, has_origins=False)

    def to_json(self) -> dict[str, Any]:  # Any: a JSON document
        """The document of `config show`."""
        home = self.config.home
        return {
            "config_path": None if home is None else str(self.config.path),
            "credentials_path": None if home is None else str(home / CREDENTIALS_NAME),
            "settings": [
                {"name": name, "value": value, "origin": origin}
                for name, value, origin in self._iter_settings()
            ],
        }

    def to_lines(self) -> Iterator[str]:
        """A value per line."""
        rows = [
            (name, _NONE if value is None else str(value), *([origin] if self.has_origins else []))
            for name, value, origin in self._iter_settings()
        ]
        yield from align_columns(rows)

    def _iter_settings(self) -> Iterator[tuple[str, str | int | None, str]]:
        config = self.config
        is_given = bool(self.environment.get(HOME_VARIABLE))
        home = None if config.home is None else str(config.home)
        yield "home", home, f"${HOME_VARIABLE}" if is_given else "the default"
        yield from self._iter_address()
        if self.actor is not None:
            yield "actor", self.actor, "--as"
        else:
            yield "actor", config.actor, config.origin_of("operator.actor")
        yield "output", config.output or _DEFAULT_OUTPUT, config.origin_of("defaults.output")
        for key, value in (
            ("table_max_column_width", config.table_width),
            ("table_cell_layout", config.cell_layout),
        ):
            yield key, value, config.origin_of(f"defaults.{key}")
        for name, url in sorted(config.servers.items()):
            yield f"servers.{name}.url", url, config.origin_of(f"servers.{name}.url")
            yield (f"servers.{name}.token", *self._describe_token(url))

    def _iter_address(self) -> Iterator[tuple[str, str | None, str]]:
        if self.flags.profile is not None:
            yield "profile", self.flags.profile, self.flags.spell("profile")
        elif self.environment.get(PROFILE_VARIABLE):
            yield "profile", self.environment[PROFILE_VARIABLE], f"${PROFILE_VARIABLE}"
        try:
            address = resolve(self.flags, self.environment, self.config)
        except OmnigraphError as error:
            yield "scope", None, error.message
            return
        yield "scope", _kind_of(address), address.origin
        yield "address", str(address), address.origin
        if not isinstance(address, ServerAddress | ClusterAddress):
            return
        is_flag = self.flags.graph is not None
        yield "graph", address.graph, self.flags.spell("graph") if is_flag else address.origin

    def _describe_token(self, url: str) -> tuple[str | None, str]:
        try:
            token = find_token(
                url,
                servers=self.config.servers,
                environment=self.environment,
                home=self.config.home,
            )
        except OmnigraphError as error:
            return None, error.message
        return (None, "no token") if token is None else ("set", token.origin)


def _kind_of(address: Address) -> Binding:
    match address:
        case ServerAddress():
            return Binding.SERVER
        case ClusterAddress():
            return Binding.CLUSTER
        case _:
            return Binding.STORE
