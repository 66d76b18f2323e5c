"""The global flags, which verbs take them, and the graph they address."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from enum import Enum, StrEnum
from typing import Annotated

import typer

from omnigraph.cli.command_errors import fail

GLOBAL_PANEL = "Global options (before or after the command)"
_SERVED_SCHEMES = ("http://", "https://")
_PROFILE_VARIABLE = "OMNIGRAPH_PROFILE"
# The graph of commands that are not given any.
GRAPH_VARIABLE = "OMNIGRAPH_GRAPH"


class Capability(StrEnum):
    """What a verb needs to do its work."""

    DATA = "data"
    DIRECT = "direct (storage-native)"
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


_UNSUPPORTED = (Flag.SERVER, Flag.CLUSTER, Flag.GRAPH, Flag.PROFILE)


@dataclass(frozen=True, slots=True)
class Scope:
    """The global flags of one run."""

    store: Annotated[
        str | None,
        typer.Option(
            Flag.STORE.spelling,
            metavar="URI",
            help="The graph's storage: a path, file:// or s3://; $OMNIGRAPH_GRAPH if not given.",
            rich_help_panel=GLOBAL_PANEL,
        ),
    ] = None
    graph_uri: Annotated[
        str | None,
        typer.Option(
            "--uri", metavar="URI", help="The same as --store.", rich_help_panel=GLOBAL_PANEL
        ),
    ] = None
    actor: Annotated[
        str | None,
        typer.Option(
            Flag.AS.spelling,
            metavar="ACTOR",
            help="Who makes the commits.",
            rich_help_panel=GLOBAL_PANEL,
        ),
    ] = None
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
    server: Annotated[str | None, typer.Option(Flag.SERVER.spelling, hidden=True)] = None
    cluster: Annotated[str | None, typer.Option(Flag.CLUSTER.spelling, hidden=True)] = None
    graph_id: Annotated[str | None, typer.Option(Flag.GRAPH.spelling, hidden=True)] = None
    profile: Annotated[str | None, typer.Option(Flag.PROFILE.spelling, hidden=True)] = None

    def merge(self, outer: Scope) -> Scope:
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
            if flag in takes:
                continue
            named = f"'{verb}' is a {capability} verb and does not take {flag.spelling}"
            if flag in _UNSUPPORTED:
                fail(
                    f"{flag.spelling} ({flag.meaning}) is not supported in this version",
                    hint="address the graph's storage directly, with --store URI",
                )
            fail(f"{named} ({flag.meaning})", hint=_suggest_remedy(flag, capability))

    @property
    def is_addressed(self) -> bool:
        """Whether an option of this run gives the address of a graph."""
        return self.store is not None or self.graph_uri is not None

    @property
    def has_default(self) -> bool:
        """Whether a graph is given by an option or by the environment."""
        return self.is_addressed or bool(os.environ.get(GRAPH_VARIABLE))

    def resolve_address(self, uri: str | None = None, *, ways: str = "--store URI") -> str:
        """The one graph that is addressed: by an argument of the verb, or by an option.

        Without either, it is the one that the environment names.
        """
        options = (("--uri ", self.graph_uri), ("--store ", self.store))
        shown = [] if uri is None else [uri]
        shown += [f"{option}{value}" for option, value in options if value is not None]
        if len(shown) > 1:
            fail(f"{shown[0]} and {shown[1]} are mutually exclusive: give one of them")
        given = next((each for each in (uri, self.graph_uri, self.store) if each is not None), None)
        found = os.environ.get(GRAPH_VARIABLE) if given is None else given
        if not found:
            fail("no graph is addressed", hint=_format_ways_hint(ways))
        return _require_direct(found)


def is_local(uri: str) -> bool:
    """Whether an address is on this machine's disk."""
    return "://" not in uri or uri.startswith("file://")


def _require_direct(uri: str) -> str:
    if uri.lower().startswith(_SERVED_SCHEMES):
        fail(
            f"{uri} is the address of a server; a server is addressed with --server, which is not"
            " supported in this version",
            hint="this version is storage-native: give the graph's storage, a path or s3://…",
        )
    return uri


def _suggest_remedy(flag: Flag, capability: Capability) -> str:
    if flag is Flag.AS:
        return f"leave out {flag.spelling}: nothing is written"
    if capability is Capability.LOCAL:
        return f"leave out {flag.spelling}: no graph is needed"
    return "give the address as the argument"


def _format_ways_hint(ways: str) -> str:
    hint = f"give {ways}, or set ${GRAPH_VARIABLE}"
    if os.environ.get(_PROFILE_VARIABLE):
        hint += f"; ${_PROFILE_VARIABLE} is set, but profiles are not supported in this version"
    return hint
