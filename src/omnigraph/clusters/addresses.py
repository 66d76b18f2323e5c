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
    rf"|(?:policy|provider\.embedding)\.{_NAME_PATTERN}",
    re.ASCII,
)
# Words that a server needs below `/graphs` itself.
RESERVED_GRAPH_IDS: Final = frozenset({"policies", "queries", "cluster"})
PROVIDER_PREFIX: Final = "provider.embedding."
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


def build_address(kind: Kind, *names: str) -> str:
    """The address of a resource; a query has the name of its graph before its own."""
    return PROVIDER_PREFIX + names[0] if kind is Kind.PROVIDER else ".".join((kind, *names))


def kind_of(address: str) -> Kind | None:
    """The kind of a resource, or None for an address of another kind."""
    if address.startswith(PROVIDER_PREFIX):
        return Kind.PROVIDER
    head = address.partition(".")[0]
    is_known = head in (Kind.GRAPH, Kind.SCHEMA, Kind.QUERY, Kind.POLICY)
    return Kind(head) if is_known else None


def name_of(address: str) -> str:
    """The last name of an address: of the graph, the query, the policy or the provider."""
    return address.rpartition(".")[2]


def graph_of(address: str) -> str | None:
    """The graph that a graph, schema or query belongs to."""
    kind, _, rest = address.partition(".")
    return rest.partition(".")[0] if kind in (Kind.GRAPH, Kind.SCHEMA, Kind.QUERY) else None


def is_address(address: str) -> bool:
    """Whether a text is the address of a resource, with names that a configuration may give it."""
    return _ADDRESS.fullmatch(address) is not None


def is_resource_name(name: str) -> bool:
    """Whether a text can be the name of a query, a policy or a provider."""
    return _NAME.fullmatch(name) is not None and len(name) <= NAME_CHARS_MAX


def is_graph_id(name: str) -> bool:
    """Whether a text can be the id of a graph that a server may serve."""
    return _GRAPH_ID.fullmatch(name) is not None and name not in RESERVED_GRAPH_IDS
