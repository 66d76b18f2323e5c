"""Files that people write, with each of their parts replaced by what does not belong there.

Nothing ends a reader, and every problem has its file, line, column and code.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from omnigraph.clusters.cluster_config import read_config
from omnigraph.errors import ConfigInvalidError
from omnigraph.operator_config.operator_settings import OperatorConfig
from omnigraph.operator_config.settings_reader import read_settings
from omnigraph.policy.decisions import load_policy
from omnigraph.policy.policy_cases import load_cases
from unit.clusters.cluster_folder import write_config
from unit.policy.bundles import TEAM

CLUSTER = """\
version: 1
metadata: {name: x}
state: {backend: cluster, lock: true}
providers:
  embedding: {m: {kind: openai, base_url: "https://h/v1", model: z, api_key: "${K}"}}
graphs:
  people:
    schema: people.pg
    queries: queries/people
    embedding_provider: m
    external_blobs: {allow: [{base: "https://h/x", scope: server_safe}]}
  tasks: {schema: tasks.pg, queries: {all_tasks: {file: queries/tasks.gq}}}
policies:
  staff: {file: staff.yaml, applies_to: [people, tasks]}
  front: {file: front.yaml, applies_to: [cluster]}
"""
CASES = """\
version: 1
cases:
  - {id: a, actor: b, action: read, branch: m, target_branch: x, query: q, type: t, expect: allow}
"""
OPERATOR = """\
operator: {actor: ada}
servers: {p: {url: "http://h"}}
clusters: {c: {root: x}}
profiles: {a: {server: p, default_graph: kb}, b: {cluster: c}, d: {store: x}}
defaults:
  {output: kv, server: p, default_graph: kb, table_max_column_width: 9, table_cell_layout: wrap}
aliases: {t: {server: p, graph: g, query: q, args: [a], params: {l: 1}, format: kv}}
"""
VALUES = (
    *("~", "[]", "{}", "5", "-1", "1.5", "true", "''", "' '", "[~]", "[[x]]", "{x: y}"),
    *("[{x: y}]", "{? [a] : b}", '"\\0"', '"\\e[2J"', "!t x", "9" * 5_000, "&q [1]"),
    *("'a/b'", "..", "https://u:p@h", "2026-01-01", "*nope", "'*'"),
)
NAMES = ("''", "? [a] ", "'x y'", "~", "9" * 5_000, '"\\e"', "'" + "k" * 300 + "'")


class Written(str):
    """A piece of YAML that stands in a document as it is."""

    __slots__ = ()


def _write(value: Any) -> str:
    match value:
        case Written():
            return str(value)
        case dict():
            return (
                "{" + ", ".join(f"{_write(n)}: {_write(each)}" for n, each in value.items()) + "}"
            )
        case list():
            return "[" + ", ".join(map(_write, value)) + "]"
        case bool() | int():
            return str(value).lower()
        case _:
            return "'" + str(value) + "'"


def _iter_places(document: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield at
    if isinstance(document, dict | list):
        for name in document if isinstance(document, dict) else range(len(document)):
            yield from _iter_places(document[name], (*at, name))


def _iter_changed(document: Any) -> Iterator[str]:
    for at in _iter_places(document):
        *outer, last = ("", *at)
        names = NAMES if at and isinstance(last, str) else ()
        for written, is_name in (*((each, False) for each in VALUES), *((n, True) for n in names)):
            whole: Any = {"": copy.deepcopy(document)}
            inner = whole
            for name in outer:
                inner = inner[name]
            if is_name:
                inner[Written(written)] = inner.pop(last)
            else:
                inner[last] = Written(written)
            yield _write(whole[""])


def _list_problems(read: Callable[[Path], object], path: Path) -> list[Any]:
    try:
        read(path)
    except ConfigInvalidError as refused:
        return list(refused.problems)
    return []


def _read_cluster(path: Path) -> list[Any]:
    found = read_config(path.parent)
    problems = [each for each in found.findings if each.severity == "error"]
    assert (found.desired is None) == bool(problems)
    return problems


READERS: dict[str, tuple[str, Callable[[Path], list[Any]]]] = {
    "cluster": (CLUSTER, _read_cluster),
    "policy": (TEAM, lambda path: _list_problems(load_policy, path)),
    "cases": (CASES, lambda path: _list_problems(load_cases, path)),
    "operator": (
        OPERATOR,
        lambda path: _list_problems(lambda each: read_settings(each, OperatorConfig()), path),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", READERS)
def test_a_file_with_any_part_replaced_is_read_or_refused_at_its_places(
    tmp_path: Path, kind: str
) -> None:
    path = write_config(tmp_path) / "cluster.yaml"
    text, read = READERS[kind]
    path.write_text(text)
    assert read(path) == []
    tried = refused = 0
    for changed in _iter_changed(yaml.safe_load(text)):
        path.write_text(changed)
        problems = read(path)
        for each in problems:
            assert each.file, each
            assert each.code, each
            assert each.line, each
            assert each.column, each
            str(each).encode()
        tried, refused = tried + 1, refused + bool(problems)
    assert tried > 300
    assert refused > tried // 2
