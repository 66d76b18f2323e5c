"""That a program which serves graphs is alive, and which versions it has."""

from __future__ import annotations

from typing import Any

from omnigraph import __version__
from omnigraph.format_version import IR_VERSION
from omnigraph.wire.protocol_names import REFERENCE_VERSION


def describe_health() -> dict[str, Any]:  # Any: a JSON document
    """The document of a program that is alive: HealthOutput.

    `version` is that of the contract, which clients compare with their own; `source_version` is
    that of the product.
    """
    return {
        "status": "ok",
        "version": REFERENCE_VERSION,
        "internal_schema_version": IR_VERSION,
        "source_version": __version__,
    }
