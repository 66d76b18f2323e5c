"""YAML without surprises: no duplicate keys, anchors, aliases, tags, merge keys or odd keys."""

from __future__ import annotations

from collections.abc import Hashable

import yaml

Document = None | bool | int | float | str | list["Document"] | dict[str, "Document"]


class YamlError(ValueError):
    """A document that is not plain."""


class _Loader(yaml.SafeLoader):
    """Builds mappings whose keys are distinct strings."""

    def construct_mapping(
        self, node: yaml.MappingNode, deep: bool = False
    ) -> dict[Hashable, object]:
        """The mapping of a node, refusing keys that are repeated or no plain strings."""
        built: dict[Hashable, object] = {}
        for key_node, value_node in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                raise YamlError("merge keys are not allowed")
            key = self.construct_object(key_node, deep=deep)
            if not isinstance(key, str):
                raise YamlError(f"key {key!r} is not a string")
            if key in built:
                raise YamlError(f"key '{key}' is repeated")
            built[key] = self.construct_object(value_node, deep=True)
        return built


def load_yaml(text: str) -> Document:
    """The document a text holds."""
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            _refuse_indirection(event)
        document: Document = yaml.load(text, Loader=_Loader)  # noqa: S506 - built on SafeLoader
    except yaml.YAMLError as failure:
        raise YamlError(f"not YAML: {failure}") from failure
    return document


def _refuse_indirection(event: yaml.Event) -> None:
    if isinstance(event, yaml.AliasEvent):
        raise YamlError("aliases are not allowed")
    if isinstance(event, yaml.NodeEvent) and event.anchor is not None:
        raise YamlError("anchors are not allowed")
    if getattr(event, "tag", None) is not None:
        raise YamlError("tags are not allowed")
