"""A slow, obvious model of the language: entities are dicts, rows are dicts, nothing is clever."""

from dialects import to_json
from model.graph import Affected, Loaded, ModelGraph

__all__ = ["Affected", "Loaded", "ModelGraph", "to_json"]
