"""Every path that a cluster writes, relative to its root.

__cluster/format.json                        the format and the id of the cluster, created first
__cluster/state/{revision:020}.json          revisions: what is applied, and how it came to be
__cluster/state/latest.json                  a hint where the revisions end (derived)
__cluster/state.json                         a copy of the newest revision (derived)
__cluster/resources/{kind}/{name}/{digest}.* payloads by the digest of their content
__cluster/approvals/{id}.json                who allowed which change
__cluster/lock.json                          who is at work, for people; nothing depends on it
__pipelines/{name}/                          what the runs of a pipeline did (`pipelines.ledger`)
graphs/{id}.omni                             graphs; later lives of an id are {id}.{life}.omni
"""

from __future__ import annotations

import re
from typing import Final

from omnigraph.clusters.addresses import Kind, graph_of, name_of

CLUSTER: Final = "__cluster"
FORMAT: Final = f"{CLUSTER}/format.json"
STATE: Final = f"{CLUSTER}/state"
HINT: Final = f"{STATE}/latest.json"
STATE_COPY: Final = f"{CLUSTER}/state.json"
LOCK: Final = f"{CLUSTER}/lock.json"
APPROVALS: Final = f"{CLUSTER}/approvals"
RESOURCES: Final = f"{CLUSTER}/resources"
GRAPHS: Final = "graphs"
_SUFFIXES: Final = {
    Kind.QUERY: "gq",
    Kind.POLICY: "yaml",
    Kind.SCHEMA: "pg",
    Kind.PIPELINE: "pipeline.yaml",
    Kind.DASHBOARD: "yaml",
}
_REVISION: Final = re.compile(rf"{STATE}/(\d{{20}})\.json")
_GRAPH_URI: Final = re.compile(rf"(.+)/{GRAPHS}/[^/]+\.omni")
_GRAPH_FOLDER: Final = re.compile(rf"{GRAPHS}/[A-Za-z][A-Za-z0-9-]*(\.[0-9]+)?\.omni", re.ASCII)
_APPROVAL: Final = re.compile(rf"{APPROVALS}/([^/]+)\.json")


def build_revision_path(number: int) -> str:
    """The place of a revision."""
    return f"{STATE}/{number:020}.json"


def parse_revision_path(path: str) -> int | None:
    """The number of a revision's path, or None for any other path."""
    found = _REVISION.fullmatch(path)
    return int(found[1]) if found else None


def build_approval_path(approval_id: str) -> str:
    """The place of an approval."""
    return f"{APPROVALS}/{approval_id}.json"


def parse_approval_path(path: str) -> str | None:
    """The id of an approval's path, or None for any other path."""
    found = _APPROVAL.fullmatch(path)
    return found[1] if found else None


def build_payload_path(address: str, kind: Kind, digest: str) -> str | None:
    """The place of the content of a resource; None if the revision itself holds it.

    Queries of one graph that share a file share its payload.
    """
    if kind not in _SUFFIXES:
        return None
    owner = graph_of(address) or name_of(address)
    return f"{RESOURCES}/{kind}/{owner}/{digest}.{_SUFFIXES[kind]}"


def build_graph_folder(graph_id: str, life: int = 1) -> str:
    """The folder of a graph; an id that is used again after a deletion gets another one."""
    middle = "" if life == 1 else f".{life}"
    return f"{GRAPHS}/{graph_id}{middle}.omni"


def is_graph_folder(path: str) -> bool:
    """Whether a path is one that a graph of a cluster may have."""
    return _GRAPH_FOLDER.fullmatch(path) is not None


def parse_graph_uri(uri: str) -> str | None:
    """The root that a graph's address would belong to; None for an address of another form."""
    found = _GRAPH_URI.fullmatch(uri.rstrip("/"))
    return found[1] if found else None
