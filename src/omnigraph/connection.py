"""Opens the graph of an address, wherever it is: for programs and for commands alike."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from omnigraph.engine import Graph, open_graph
from omnigraph.engine.arguments import require_address
from omnigraph.engine.gate import Gate
from omnigraph.errors import AddressError, OmnigraphError, PolicyDeniedError
from omnigraph.operator_config.address_resolver import (
    AddressFlags,
    ClusterAddress,
    ServerAddress,
    is_served,
    resolve,
    split_served,
)
from omnigraph.operator_config.credentials import find_token
from omnigraph.operator_config.operator_settings import OperatorConfig, read_config

if TYPE_CHECKING:
    from omnigraph.aio import AsyncOpening
    from omnigraph.client.remote_graph import RemoteGraph
    from omnigraph.client.served_cluster import ServedCluster


def connect(  # noqa: PLR0913 — one parameter for each way to say which graph
    uri: str | os.PathLike[str] | None = None,
    *,
    store: str | os.PathLike[str] | None = None,
    server: str | None = None,
    cluster: str | None = None,
    graph: str | None = None,
    profile: str | None = None,
    actor: str | None = None,
    durable: bool = True,
    storage_options: Mapping[str, str] | None = None,
) -> Graph:
    """Open a graph wherever it is: by its address, or as the operator config says.

    The arguments are the flags of the command line, and mean the same. Without any, the graph is
    that of `$OMNIGRAPH_GRAPH`, of `$OMNIGRAPH_PROFILE` or of the defaults.
    """
    config = read_config(os.environ)
    for each in config.warnings:
        warnings.warn(each, stacklevel=2)
    flags = AddressFlags(
        uri=None if uri is None else require_address(uri),
        store=None if store is None else require_address(store),
        server=server,
        cluster=cluster,
        graph=graph,
        profile=profile,
        spelling="{}=",
    )
    found = _resolve_call(flags, config)
    return open_address(
        found.uri,
        actor=actor or config.actor,
        durable=durable,
        storage_options=storage_options,
        gate=found.gate,
    )


def connect_async(  # noqa: PLR0913 — the arguments of connect
    uri: str | os.PathLike[str] | None = None,
    *,
    store: str | os.PathLike[str] | None = None,
    server: str | None = None,
    cluster: str | None = None,
    graph: str | None = None,
    profile: str | None = None,
    actor: str | None = None,
    durable: bool = True,
    storage_options: Mapping[str, str] | None = None,
) -> AsyncOpening:
    """Open a graph as `connect` does, for asyncio: `async with connect_async(uri) as graph`.

    Awaited, it is an open `AsyncGraph`, which has to be closed.
    """
    from omnigraph.aio import AsyncOpening  # noqa: PLC0415 — most programs are not asynchronous

    work = partial(
        connect,
        uri,
        store=store,
        server=server,
        cluster=cluster,
        graph=graph,
        profile=profile,
        actor=actor,
        durable=durable,
        storage_options=storage_options,
    )
    address = uri or store or server or cluster or graph or profile or "the default address"
    return AsyncOpening(work, address=os.fspath(address))


def open_address(
    address: str,
    *,
    actor: str | None = None,
    durable: bool = True,
    storage_options: Mapping[str, str] | None = None,
    gate: Gate | None = None,
) -> Graph:
    """The graph at a storage address or at the URL of a server."""
    if is_served(address):
        return open_served(address)
    return open_graph(
        address, actor=actor, durable=durable, storage_options=storage_options, policy=gate
    )


def open_served(url: str) -> RemoteGraph:
    """The graph at the URL of a server, with the token that the operator has for it."""
    opened = _open_url(url)
    if split_served(url, None, "uri").graph is None:
        _refuse_bare_server(opened)
    return opened


def list_served_graphs(address: ServerAddress) -> dict[str, str]:
    """The address of each graph that a server lists to the operator, by id."""
    with _open_url(address.base) as server:
        listed = server.transport.get("graphs")["graphs"]
    return {each["graph_id"]: each["uri"] for each in listed}


def open_served_cluster(url: str) -> ServedCluster:
    """The cluster of a server, to plan and apply a folder of configuration there."""
    from omnigraph.client.served_cluster import ServedCluster  # noqa: PLC0415 — as below

    config = read_config(os.environ)
    token = find_token(url, servers=config.servers, environment=os.environ, home=config.home)
    return ServedCluster(url, None if token is None else token.value)


def _open_url(url: str) -> RemoteGraph:
    # A program that reads storage loads no library for requests.
    from omnigraph.client.remote_graph import open_remote  # noqa: PLC0415

    config = read_config(os.environ)
    token = find_token(url, servers=config.servers, environment=os.environ, home=config.home)
    return open_remote(url, token=None if token is None else token.value)


def _refuse_bare_server(opened: RemoteGraph) -> None:
    """Ask for a graph if the server lists some; one that lists none may serve a graph itself."""
    try:
        listed = opened.transport.get("graphs")["graphs"]
        names = sorted(each["graph_id"] for each in listed)
    except PolicyDeniedError:
        raise _build_bare_error(opened.uri, "give --graph ID") from None
    except (OmnigraphError, LookupError, TypeError, ValueError):
        return
    if names:
        raise _build_bare_error(opened.uri, f"give --graph ID, one of: {', '.join(names)}")


def _build_bare_error(url: str, hint: str) -> AddressError:
    return AddressError(f"{url} is a server, and no graph of it is chosen", hint=hint)


@dataclass(frozen=True, slots=True)
class LocatedGraph:
    """Where a graph is, and the policy that a cluster applies to it."""

    uri: str
    gate: Gate | None = None
    # The id of the graph in its cluster.
    graph_id: str | None = None


def locate_graph(address: ClusterAddress, spelling: str = "--{}") -> LocatedGraph:
    """The storage and the policy of a graph of a cluster, as the ledger of the cluster says."""
    from omnigraph.clusters.applied_cluster import open_cluster  # noqa: PLC0415 — rarely needed

    cluster = open_cluster(address.root)
    known = cluster.graphs()
    wanted = address.graph or (next(iter(known)) if len(known) == 1 else None)
    if wanted is not None and wanted in known:
        return LocatedGraph(known[wanted], cluster.policy(wanted), wanted)
    listed = ", ".join(sorted(known)) or "none"
    if wanted is None:
        problem = "and no graph of it is chosen" if known else "which has no graph"
        hint = f"give {spelling.format('graph')}; applied are: {listed}"
        raise AddressError(f"{address} is a cluster, {problem}", hint=hint)
    raise AddressError(
        f"graph '{wanted}' is not applied in {address.root}", hint=f"applied are: {listed}"
    )


def _resolve_call(flags: AddressFlags, config: OperatorConfig) -> LocatedGraph:
    if flags.uri is not None and is_served(flags.uri) and len(flags.list_given()) == 1:
        return LocatedGraph(split_served(flags.uri, flags.graph, "uri").url)
    address = resolve(flags, os.environ, config)
    if isinstance(address, ClusterAddress):
        return locate_graph(address, flags.spelling)
    return LocatedGraph(str(address))
