"""Where the external blobs of a graph may be, read from its section of `cluster.yaml`.

A base that is refused is not repeated: it may hold a password.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import yaml

from omnigraph.clusters.cluster_schema import EXTERNAL_BLOBS
from omnigraph.config.written_addresses import has_user
from omnigraph.config.yaml_reader import Findings, Section, decode_node, position_of, read_section

_SCOPES: Final = ("server_safe", "embedded_only")
# The address of every blob is compared with every base.
_BASE_BYTES_MAX: Final = 64 << 10


def read_blob_bases(graph: Section, findings: Findings) -> list[dict[str, str]]:
    """The bases that a graph allows, each with its scope; none if it allows none."""
    if not graph.has_field("external_blobs"):
        return []
    section = read_section(graph.values["external_blobs"], EXTERNAL_BLOBS, findings)
    found: list[dict[str, str]] = []
    for node in section.values["allow"] or ():
        base, scope = _decode_entry(node)
        if scope not in _SCOPES:
            message = f"an entry has a base and a scope: {' or '.join(_SCOPES)}"
            code = "invalid_external_blob_policy"
            findings.add_problem(position_of(node), message, code=code)
        elif problem := _examine_base(base, scope, [each["uri"] for each in found]):
            findings.add_problem(position_of(node), problem, code="invalid_external_blob_base")
        else:
            found.append({"uri": f"{str(base).rstrip('/')}/", "scope": scope})
    return found


def _decode_entry(node: yaml.Node) -> tuple[object, str | None]:
    """The base and the scope of an entry; no scope for what is not an entry."""
    entry = decode_node(node)
    if not isinstance(entry, dict) or set(entry) - {"base", "scope"}:
        return None, None
    scope = entry.get("scope", _SCOPES[0])
    return entry.get("base"), scope if isinstance(scope, str) else None


def _examine_base(base: object, scope: str, others: list[str]) -> str | None:
    """Why a text cannot be a base of external blobs, or None."""
    if not isinstance(base, str) or not base.isprintable() or len(base.encode()) > _BASE_BYTES_MAX:
        return f"a base is a text of at most {_BASE_BYTES_MAX >> 10} KiB"
    try:
        parts = urlsplit(base)
    except ValueError:
        return "the base is not an address"
    if not parts.scheme or has_user(base) or parts.query or parts.fragment:
        return "the base is not absolute, or has credentials, a query or a fragment"
    if ".." in parts.path.split("/") or "%2e" in base.lower() or "%2f" in base.lower():
        return "the base has segments that lead elsewhere"
    if parts.scheme == "file" and (scope != "embedded_only" or not Path(parts.path).is_dir()):
        return "a base of files needs the scope embedded_only, and must be a folder"
    own = base.rstrip("/") + "/"
    if any(own.startswith(other) or other.startswith(own) for other in others):
        return "the base overlaps another base"
    return None
