"""Creates a graph of a template, and copies the files of one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Final

from omnigraph.engine import Graph, create_graph
from omnigraph.errors import InvalidArgumentError
from omnigraph.lang.spellcheck import suggest_similar
from omnigraph.writers.inputs import Text

TEMPLATES: Final = ("people", "papers", "memory")
_ENDINGS: Final = ("pg", "jsonl", "gq")
_MESSAGE: Final = "sample data of the template"


def create_from_template(
    uri: str | os.PathLike[str],
    template: str,
    *,
    actor: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Graph:
    """Create a graph with the schema of a template, and load its sample data as a commit.

    Templates are `people`, `papers` and `memory`.
    """
    schema = _read_file(require_template(template), "pg").decode()
    data = Text(_read_file(template, "jsonl"), f"{template}.jsonl")
    graph = create_graph(uri, schema=schema, actor=actor, storage_options=storage_options)
    try:
        graph.branch().load(data, mode="append", message=f"{_MESSAGE} {template}")
    except BaseException:
        graph.close()
        raise
    return graph


def copy_template_files(template: str, folder: str | os.PathLike[str]) -> list[Path]:
    """Write the schema, the data and the queries of a template to a folder, as new files."""
    require_template(template)
    target = Path(folder)
    paths = [target / f"{template}.{ending}" for ending in _ENDINGS]
    for path in paths:
        if path.exists():
            raise InvalidArgumentError("folder", f"{path} is there", hint="choose another folder")
    target.mkdir(parents=True, exist_ok=True)
    for path, ending in zip(paths, _ENDINGS, strict=True):
        path.write_bytes(_read_file(template, ending))
    return paths


def require_template(name: str) -> str:
    """The name of a template; another one is refused."""
    if name in TEMPLATES:
        return name
    hint = suggest_similar(name, TEMPLATES) or f"one of {', '.join(TEMPLATES)}"
    raise InvalidArgumentError("template", f"there is no template '{name}'", hint=hint)


def _read_file(template: str, ending: str) -> bytes:
    return (files("omnigraph.templates") / template / f"{template}.{ending}").read_bytes()
