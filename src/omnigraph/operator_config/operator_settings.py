"""`config.yaml` of an operator: servers, clusters, profiles, defaults and aliases.

A file that cannot be read is an error. An unknown key is a warning, so that one file serves
versions of the program that know more keys and fewer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from omnigraph.operator_config.operator_home import CONFIG_NAME, expand_user, find_home

TABLE_WIDTH_DEFAULT: Final = 80
OUTPUT_FORMATS: Final = ("table", "kv", "csv", "jsonl", "json")
CELL_LAYOUTS: Final = ("truncate", "wrap")


class Binding(StrEnum):
    """What a profile stands for."""

    SERVER = "server"
    CLUSTER = "cluster"
    STORE = "store"


@dataclass(frozen=True, slots=True)
class Profile:
    """A named address; an invalid one is listed, and refused where it is used."""

    name: str
    targets: Mapping[Binding, str]
    default_graph: str | None = None

    @property
    def error(self) -> str | None:
        """Why the profile cannot be used."""
        if len(self.targets) != 1:
            given = ", ".join(self.targets) or "none"
            return f"it needs one of server, cluster and store, and has {given}"
        if Binding.STORE in self.targets and self.default_graph is not None:
            return "a store is one graph already, so it takes no default_graph"
        return None

    @property
    def binding(self) -> Binding | None:
        """What the profile is bound to; None if it is invalid."""
        return None if self.error else next(iter(self.targets))

    @property
    def target(self) -> str:
        """What the binding names, as it is written."""
        return next(iter(self.targets.values()), "")


@dataclass(frozen=True, slots=True)
class Alias:
    """A stored query of a server under a short name, with some of its parameters."""

    name: str
    server: str
    query: str
    graph: str | None = None
    args: tuple[str, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)  # Any: JSON values
    format: str | None = None


@dataclass(frozen=True, slots=True)
class OperatorConfig:
    """What the file says; `lines` are those of its keys, by their dotted paths."""

    home: Path | None = None
    actor: str | None = None
    servers: Mapping[str, str] = field(default_factory=dict)
    clusters: Mapping[str, str] = field(default_factory=dict)
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    aliases: Mapping[str, Alias] = field(default_factory=dict)
    output: str | None = None
    default_server: str | None = None
    default_store: str | None = None
    default_graph: str | None = None
    table_width: int = TABLE_WIDTH_DEFAULT
    cell_layout: str = CELL_LAYOUTS[0]
    lines: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def path(self) -> Path | None:
        """The file, which need not exist."""
        return None if self.home is None else self.home / CONFIG_NAME

    def origin_of(self, key: str) -> str:
        """Where a key stands: the file and the line."""
        return f"{self.path}:{self.lines[key]}" if key in self.lines else "the default"

    def find_root(self, cluster: str) -> str:
        """The root of a cluster by its name, or by itself."""
        return self.locate(self.clusters.get(cluster, cluster))

    def locate(self, uri: str) -> str:
        """An address of the file: a relative path is one below the folder of the file.

        It never depends on the working directory, or the same command would write elsewhere.
        """
        if "://" in uri or self.home is None:
            return uri
        return str(self.home.absolute() / expand_user(uri, self.environment))


def read_config(environment: Mapping[str, str]) -> OperatorConfig:
    """The config of the operator; empty without a file. Raises `ConfigInvalidError`."""
    found = OperatorConfig(home=find_home(environment), environment=environment)
    if found.path is None or not found.path.exists():
        return found
    # Most commands meet no file: the reader of YAML is loaded for those that do.
    from omnigraph.operator_config.settings_reader import read_settings  # noqa: PLC0415

    return read_settings(found.path, found)
