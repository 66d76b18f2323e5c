"""Properties whose names a schema cannot know: stored as JSON, and tested as texts.

A facet is `name=value` of one property that is not nested, so equality of a property is membership
in a list, which a query evaluates on columns.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import xxhash

# Texts of documents may be properties: beyond this length a facet holds their hash.
_FACET_LENGTH_MAX: Final = 200
_SCALARS: Final = (str, int, float, bool)


def encode_properties(properties: Mapping[str, Any]) -> str:  # Any: values of another framework
    """Properties as JSON; what JSON does not know is stored as its text."""
    return json.dumps(dict(properties), ensure_ascii=False, sort_keys=True, default=str)


def list_facets(properties: Mapping[str, Any]) -> list[str]:
    """The facets of the properties that are texts, numbers and truth values."""
    return sorted(
        encode_facet(name, value)
        for name, value in properties.items()
        if isinstance(value, _SCALARS)
    )


def encode_facet(name: str, value: object) -> str:
    """One property as a text: equal for equal values only."""
    facet = f"{name}={json.dumps(value, ensure_ascii=False, default=str)}"
    if len(facet) <= _FACET_LENGTH_MAX:
        return facet
    return f"{name}#{xxhash.xxh3_128_hexdigest(facet.encode())}"
