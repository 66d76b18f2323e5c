"""Addresses of resources: `graph.kb`, `schema.kb`, `query.kb.find`, `policy.staff`, and so on."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

# Names of queries and policies; `_` may not start or stand in the id of a graph, because servers
# serve graphs by their ids in addresses of their own.
_NAME_PATTERN: Final = r"[A-Za-z_][A-Za-z0-9_-]*"
_ID_PATTERN: Final = r"[A-Za-z][A-Za-z0-9-]{0,63}"
_NAME: Final = re.compile(_NAME_PATTERN, re.ASCII)
_GRAPH_ID: Final = re.compile(_ID_PATTERN, re.ASCII)
_ADDRESS: Final = re.compile(
    rf"(?:graph|schema)\.{_ID_PATTERN}|query\.{_ID_PATTERN}\.{_NAME_PATTERN}"
    rf"|(?:policy|pipeline|provider\.embedding|provider\.source|ui\.dashboard)\.{_NAME_PATTERN}",
    re.ASCII,
)
# Words that a server needs below `/graphs` itself.
RESERVED_GRAPH_IDS: Final = frozenset({"policies", "queries", "cluster"})
PROVIDER_PREFIX: Final = "provider.embedding."
SOURCE_PREFIX: Final = "provider.source."
DASHBOARD_PREFIX: Final = "ui.dashboard."
# A name is a folder below the root, and file systems bound those.
NAME_CHARS_MAX: Final = 128
CLUSTER: Final = "cluster"


class Kind(StrEnum):
    """What a resource is."""

    GRAPH = "graph"
    SCHEMA = "schema"
    QUERY = "query"
    POLICY = "policy"
    PROVIDER = "embedding_provider"
    SOURCE = "source_provider"
    PIPELINE = "pipeline"
    DASHBOARD = "dashboard"


_PREFIXES: Final = {
    Kind.PROVIDER: PROVIDER_PREFIX,
    Kind.SOURCE: SOURCE_PREFIX,
    Kind.DASHBOARD: DASHBOARD_PREFIX,
}
# The kinds whose addresses begin with their own names.
_PLAIN_KINDS: Final = frozenset(Kind) - frozenset(_PREFIXES)


def build_address(kind: Kind, *names: str) -> str:
    """The address of a resource; a query has the name of its graph before its own."""
    return _PREFIXES[kind] + names[0] if kind in _PREFIXES else ".".join((kind, *names))


def kind_of(address: str) -> Kind | None:
    """The kind of a resource, or None for an address of another kind."""
    for kind, prefix in _PREFIXES.items():
        if address.startswith(prefix):
            return kind
    head = address.partition(".")[0]
    return Kind(head) if head in _PLAIN_KINDS else None


def name_of(address: str) -> str:
    """The last name of an address, which is that of the resource itself."""
    return address.rpartition(".")[2]


def graph_of(address: str) -> str | None:
    """The graph that a graph, schema or query belongs to."""
    kind, _, rest = address.partition(".")
    return rest.partition(".")[0] if kind in (Kind.GRAPH, Kind.SCHEMA, Kind.QUERY) else None


def is_address(address: str) -> bool:
    """Whether a text is the address of a resource, with names that a configuration may give it."""
    return _ADDRESS.fullmatch(address) is not None


def is_resource_name(name: str) -> bool:
    """Whether a text can be the name of anything but a graph."""
    return _NAME.fullmatch(name) is not None and len(name) <= NAME_CHARS_MAX


def is_graph_id(name: str) -> bool:
    """Whether a text can be the id of a graph that a server may serve."""
    return _GRAPH_ID.fullmatch(name) is not None and name not in RESERVED_GRAPH_IDS
