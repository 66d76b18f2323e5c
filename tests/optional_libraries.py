"""Calls of what needs libraries that are too large to be installed for tests."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from omnigraph.errors import LibraryMissingError

# Converters whose libraries the tests have.
LIBRARIES = ("to_igraph", "to_networkx", "to_rustworkx")


def call_to_pyg(owner: Any) -> Any:
    """Convert to PyTorch Geometric, as far as it goes."""
    with suppress(LibraryMissingError):
        return owner.to_pyg()
    return None
