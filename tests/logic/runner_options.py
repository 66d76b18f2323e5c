"""Reads the `runner` section."""

from __future__ import annotations

from logic.case import Environment, RunnerOptions
from logic.strict_yaml import Document, YamlError, load_yaml

_TARGETS = ("omnigraph-engine", "omnigraph-engine-dst", "omnigraph-server")
_STORAGES = ("local-filesystem", "in-memory-object-store")
_TIMEOUT_MS_MAX = 600_000
_ENVIRONMENTS_MAX = 16
_SEEDS_MAX = 64
_U64_MAX = 2**64 - 1


def read_runner_options(text: str) -> RunnerOptions:
    """The options in the text of the section."""
    document = _mapping(load_yaml(text), {"timeout_ms", "environments"})
    timeout_ms = document["timeout_ms"]
    if not _is_integer(timeout_ms, 1, _TIMEOUT_MS_MAX):
        raise YamlError(f"'timeout_ms' must be between 1 and {_TIMEOUT_MS_MAX}")
    listed = document["environments"]
    if not isinstance(listed, list) or not 1 <= len(listed) <= _ENVIRONMENTS_MAX:
        raise YamlError(f"'environments' must list 1 to {_ENVIRONMENTS_MAX} environments")
    environments = tuple(_environment(each) for each in listed)
    if len(set(environments)) != len(environments):
        raise YamlError("an environment is repeated")
    assert isinstance(timeout_ms, int)
    return RunnerOptions(timeout_ms, environments)


def _environment(document: Document) -> Environment:
    is_simulated = isinstance(document, dict) and str(document.get("target")).endswith("-dst")
    keys = {"target", "storage", "seeds"} if is_simulated else {"target", "storage"}
    fields = _mapping(document, keys)
    target, storage = fields["target"], fields["storage"]
    if not isinstance(target, str) or target not in _TARGETS:
        raise YamlError(f"'{target}' is no target: use {', '.join(_TARGETS)}")
    if not isinstance(storage, str) or storage not in _STORAGES:
        raise YamlError(f"'{storage}' is no storage: use {', '.join(_STORAGES)}")
    return Environment(target, storage, _seeds(fields["seeds"]) if is_simulated else ())


def _seeds(document: Document) -> tuple[int, ...]:
    if not isinstance(document, list) or not 1 <= len(document) <= _SEEDS_MAX:
        raise YamlError(f"'seeds' must list 1 to {_SEEDS_MAX} numbers")
    seeds = tuple(seed for seed in document if isinstance(seed, int))
    if len(seeds) != len(document) or not all(_is_integer(seed, 0, _U64_MAX) for seed in seeds):
        raise YamlError("a seed is an unsigned 64-bit number")
    return seeds


def _mapping(document: Document, keys: set[str]) -> dict[str, Document]:
    if not isinstance(document, dict) or set(document) != keys:
        raise YamlError(f"expected exactly the members {', '.join(sorted(keys))}")
    return document


def _is_integer(value: Document, minimum: int, maximum: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and minimum <= value <= maximum
