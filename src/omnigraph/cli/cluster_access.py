"""Opens the cluster that a command addresses, and keeps commands off what a cluster manages."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from omnigraph.cli.command_errors import fail
from omnigraph.cli.global_options import Scope

if TYPE_CHECKING:
    from omnigraph.clusters.applied_cluster import Cluster
    from omnigraph.operator_config import Address, ClusterAddress


def open_cluster(scope: Scope) -> Cluster:
    """The applied cluster of a command."""
    from omnigraph.clusters import applied_cluster

    return applied_cluster.open_cluster(resolve_cluster(scope).root)


def find_graphs(scope: Scope) -> Mapping[str, str]:
    """The address of each graph of a cluster or of a server, by id."""
    from omnigraph.operator_config import ServerAddress

    address = _find_address(scope)
    if isinstance(address, ServerAddress):
        from omnigraph.connection import list_served_graphs

        return list_served_graphs(address)
    return open_cluster(scope).graphs()


def resolve_cluster(scope: Scope) -> ClusterAddress:
    """Where the cluster of a command is, and the graph of it that is chosen."""
    from omnigraph.operator_config import ClusterAddress

    address = _find_address(scope)
    if not isinstance(address, ClusterAddress):
        fail(
            "no cluster is addressed",
            hint="give its storage root with --cluster ROOT, or a profile that is bound to it",
        )
    return address


def _find_address(scope: Scope) -> Address | None:
    from omnigraph.operator_config.address_resolver import find_default, resolve

    flags = scope.build_flags()
    find = resolve if flags.list_given() else find_default
    return find(flags, os.environ, scope.config)


def refuse_managed(address: str, verb: str) -> None:
    """Refuse a verb at a graph whose schema only its cluster changes."""
    from omnigraph.clusters.cluster_ledger import find_managing_root

    root = find_managing_root(address)
    if root is not None:
        fail(
            f"{address} belongs to the cluster at {root}, which manages it: {verb} is refused",
            hint="change cluster.yaml or the schema it names, then run `omnigraph cluster apply`",
        )
