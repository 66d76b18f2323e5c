"""Trees of YAML as text: the same for every spelling of one document, whatever its order."""

from __future__ import annotations

from typing import Any, Final

import yaml

from omnigraph.config.yaml_reader import SCALAR_RESOLVERS

# A line is never broken: where it would be depends on the version of the library.
_WIDTH: Final = 2**31


class _Dumper(yaml.SafeDumper):
    """A printer that quotes what the reader would take for something other than a text."""

    yaml_implicit_resolvers: dict[str, Any] = SCALAR_RESOLVERS  # Any: as the library declares


def format_node(node: yaml.Node) -> str:
    """A tree as text, sorted by name; comments, aliases and styles are gone."""
    text: str = yaml.serialize(_normalize(node), Dumper=_Dumper, allow_unicode=True, width=_WIDTH)
    return text


def _normalize(node: yaml.Node) -> yaml.Node:
    match node:
        case yaml.ScalarNode():
            return yaml.ScalarNode(node.tag, node.value)
        case yaml.SequenceNode():
            items = [_normalize(each) for each in node.value]
            return yaml.SequenceNode(node.tag, items, flow_style=False)
        case yaml.MappingNode():
            named = sorted(node.value, key=lambda pair: str(pair[0].value))
            pairs = [(_normalize(key), _normalize(value)) for key, value in named]
            return yaml.MappingNode(node.tag, pairs, flow_style=False)
        case _:
            raise ValueError("it is not a value")
