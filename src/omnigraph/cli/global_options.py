"""The global flags, which verbs take them, and the graph they address."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from enum import Enum, StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.command_errors import fail
from omnigraph.cli.views import print_warning

if TYPE_CHECKING:
    from omnigraph.engine.gate import Gate
    from omnigraph.operator_config import Address, AddressFlags, OperatorConfig

GLOBAL_PANEL = "Global options (before or after the command)"
# A file of an earlier program, which selected graphs by the folder that a command ran in.
_FOLDER_CONFIG = "omnigraph.yaml"


class Capability(StrEnum):
    """What a verb needs to do its work."""

    DATA = "data"
    SERVED = "served"
    DIRECT = "direct (storage-native)"
    CONTROL = "cluster control"
    LOCAL = "local"


class Flag(Enum):
    """A flag of the scope that only some verbs take: its spelling and its meaning."""

    SERVER = ("--server", "a graph that a server serves")
    CLUSTER = ("--cluster", "a cluster of graphs")
    GRAPH = ("--graph", "one graph of a server or cluster")
    STORE = ("--store", "the storage of one graph")
    AS = ("--as", "the actor of a write")
    PROFILE = ("--profile", "a named set of addresses")

    @property
    def spelling(self) -> str:
        """What the user types."""
        return self.value[0]

    @property
    def meaning(self) -> str:
        """What the flag stands for."""
        return self.value[1]


def _declare(flag: Flag, metavar: str, description: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(
        flag.spelling, metavar=metavar, help=description, rich_help_panel=GLOBAL_PANEL
    )
    return option


@dataclass(frozen=True, slots=True)
class GlobalOptions:
    """The global flags of one run."""

    store: Annotated[
        str | None,
        _declare(Flag.STORE, "URI", "The graph's storage: a path, file:// or s3://."),
    ] = None
    graph_uri: Annotated[
        str | None,
        typer.Option(
            "--uri", metavar="URI", help="The same as --store.", rich_help_panel=GLOBAL_PANEL
        ),
    ] = None
    server: Annotated[
        str | None,
        _declare(Flag.SERVER, "NAME|URL", "A server, by its name in the operator config or URL."),
    ] = None
    cluster: Annotated[
        str | None,
        _declare(Flag.CLUSTER, "NAME|ROOT", "A cluster, by its name, directory or storage root."),
    ] = None
    graph_id: Annotated[
        str | None, _declare(Flag.GRAPH, "ID", "The graph of a server or cluster.")
    ] = None
    profile: Annotated[
        str | None,
        _declare(Flag.PROFILE, "NAME", "A named address; $OMNIGRAPH_PROFILE if not given."),
    ] = None
    actor: Annotated[str | None, _declare(Flag.AS, "ACTOR", "Who makes the commits.")] = None
    is_confirmed: Annotated[
        bool,
        typer.Option(
            "--yes",
            help="Consent to destroying data that is not local.",
            rich_help_panel=GLOBAL_PANEL,
        ),
    ] = False
    is_quiet: Annotated[
        bool,
        typer.Option(
            "--quiet", help="Do not say where a write goes.", rich_help_panel=GLOBAL_PANEL
        ),
    ] = False

    def merge(self, outer: GlobalOptions) -> GlobalOptions:
        """These flags and those given before the command; one given twice must say the same."""
        given = {
            each.name: getattr(outer, each.name)
            for each in fields(self)
            if getattr(outer, each.name)
        }
        for name, value in given.items():
            own = getattr(self, name)
            if own and own != value:
                raise typer.BadParameter(f"a global option is given twice: {value!r} and {own!r}")
        return replace(self, **given)

    def iter_flags(self) -> Iterator[Flag]:
        """The flags of this run that not every verb takes, in the order they are refused in."""
        values = (
            self.server,
            self.cluster,
            self.graph_id,
            self.store or self.graph_uri,
            self.actor,
            self.profile,
        )
        for flag, value in zip(Flag, values, strict=True):
            if value is not None:
                yield flag

    def require_supported(self, verb: str, capability: Capability, takes: frozenset[Flag]) -> None:
        """Refuse a flag that the verb cannot use, before anything is read or written."""
        for flag in self.iter_flags():
            if flag not in takes:
                fail(
                    f"'{verb}' is a {capability} verb and does not take {flag.spelling}"
                    f" ({flag.meaning})",
                    hint=_suggest_remedy(flag, capability, takes),
                )


class Scope:
    """What one run of a verb is about: its graph, its actor, and how it answers."""

    def __init__(
        self, options: GlobalOptions, verb: str, capability: Capability, takes: frozenset[Flag]
    ) -> None:
        self.options = options
        self.verb = verb
        self._capability = capability
        self._takes = takes
        self.is_confirmed = options.is_confirmed
        self.is_quiet = options.is_quiet
        # The policy of the graph, once it is found in a cluster.
        self.gate: Gate | None = None
        # The cluster of the graph and its id there, once it is found.
        self.cluster_graph: tuple[str, str] | None = None

    @cached_property
    def config(self) -> OperatorConfig:
        """What the operator has configured; what is odd about it is printed once."""
        from omnigraph.operator_config import read_config

        found = read_config(os.environ)
        for warning in found.warnings:
            print_warning(warning)
        return found

    @cached_property
    def actor(self) -> str | None:
        """Who makes the commits."""
        return self.options.actor or self.config.actor

    @property
    def is_addressed(self) -> bool:
        """Whether an option of this run gives the address of a graph."""
        given = self.options.iter_flags()
        return any(flag is not Flag.AS for flag in given)

    @property
    def has_default(self) -> bool:
        """Whether a graph is given by an option, by the environment or by the config."""
        from omnigraph.operator_config.address_resolver import find_default

        return self.is_addressed or (
            find_default(self.build_flags(), os.environ, self.config) is not None
        )

    def resolve_address(self, uri: str | None = None, *, otherwise: str = "") -> str:
        """The one graph that is addressed: its storage, or its URL on a server.

        `otherwise` is what the verb takes in place of a graph. A graph of a cluster is found by the
        ledger of the cluster.
        """
        from omnigraph.operator_config import ClusterAddress, resolve

        address = resolve(self.build_flags(uri, otherwise), os.environ, self.config)
        self._require_plane(address)
        if isinstance(address, ClusterAddress):
            from omnigraph.connection import locate_graph

            found = locate_graph(address)
            self.gate = found.gate
            if found.graph_id is not None:
                self.cluster_graph = address.root, found.graph_id
            return found.uri
        return str(address)

    def build_flags(self, uri: str | None = None, otherwise: str = "") -> AddressFlags:
        """What this run says about its graph."""
        from omnigraph.operator_config import AddressFlags

        given = self.options
        if uri is not None and given.graph_uri is not None:
            fail(f"{uri} and --uri {given.graph_uri} are mutually exclusive: give one of them")
        flags = AddressFlags(
            uri=given.graph_uri if uri is None else uri,
            store=given.store,
            server=given.server,
            cluster=given.cluster,
            graph=given.graph_id,
            profile=given.profile,
            otherwise=otherwise,
        )
        if not flags.list_given() and Path(_FOLDER_CONFIG).exists():
            print_warning(
                f"./{_FOLDER_CONFIG} is not read: servers, profiles, defaults and aliases belong to"
                " config.yaml of $OMNIGRAPH_HOME, graphs, queries and policies to cluster.yaml"
            )
        return flags

    def _require_plane(self, address: Address) -> None:
        """Refuse an address of a kind that the verb cannot work with."""
        from omnigraph.operator_config import ClusterAddress, ServerAddress, StoreAddress

        named = f"'{self.verb}' is a {self._capability} verb"
        match address:
            case ServerAddress():
                if self._capability is Capability.DIRECT:
                    fail(
                        f"{named}: it needs direct access to storage, and {address}"
                        f" is a server ({address.origin})",
                        hint="give the graph's storage with --store URI, or --cluster ROOT",
                    )
                if self.options.actor is not None:
                    fail(
                        f"{address} is a server, which takes the actor of a write from the token",
                        hint="leave out --as",
                    )
            case ClusterAddress():
                if Flag.CLUSTER not in self._takes:
                    fail(
                        f"{named}: it does not work on a cluster, and {address}"
                        f" is one ({address.origin})",
                        hint="run a stored query with `omnigraph queries run`, address a server"
                        " with --server NAME --graph ID, or the graph's storage with --store URI",
                    )
            case StoreAddress():
                if self._capability in (Capability.SERVED, Capability.CONTROL):
                    needed = "a server" if self._capability is Capability.SERVED else "a cluster"
                    fail(
                        f"{named}: it needs {needed}, and {address} is the storage of one graph"
                        f" ({address.origin})"
                    )


def is_local(uri: str) -> bool:
    """Whether an address is on this machine's disk."""
    return "://" not in uri or uri.startswith("file://")


def _suggest_remedy(flag: Flag, capability: Capability, takes: frozenset[Flag]) -> str:
    if flag is Flag.AS:
        return f"leave out {flag.spelling}: nothing is written"
    if capability is Capability.LOCAL:
        return f"leave out {flag.spelling}: no graph is needed"
    ways = [each for each in (Flag.STORE, Flag.SERVER, Flag.CLUSTER) if each in takes]
    if capability is Capability.CONTROL and Flag.CLUSTER not in takes:
        also = ", and a server with --server" if Flag.SERVER in takes else ""
        return f"name the folder of cluster.yaml with --config{also}"
    if capability is Capability.CONTROL and flag is Flag.GRAPH:
        return f"leave out {flag.spelling}, and address the cluster with --cluster"
    if not ways or flag is Flag.GRAPH:
        return "give the address as the argument"
    return f"address it with {' or '.join(each.spelling for each in ways)}"
