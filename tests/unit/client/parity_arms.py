"""Two copies of one graph: one opened as storage, the other asked over HTTP."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

import omnigraph
from omnigraph.cli.app import app
from omnigraph.server.server_boot import boot_graph
from served import PEOPLE, SCHEMA, make_tokens, serve

POLICY = """\
version: 1
groups: {all: [ada]}
rules:
  - id: everything
    allow: {actors: {group: all}, actions: [read, change, export, invoke_query, schema_apply,
      branch_create, branch_delete, branch_merge, propose, review, admin]}
"""
# Of two graphs these differ, and nothing else may. They are compared only as null or not.
VOLATILE = {"created_at", "authored_at", "uri", "graph_commit_id", "parent_commit_id"} | {
    *("merged_parent_commit_id", "dataset_path", "published_dataset_version", "snapshot_commit_id"),
    *("resume_cursor", "cursor", "next_page_token", "resolved_snapshot", "etag", "commit"),
    *("time_ms", "updated_at", "ended_at", "head_commit_id", "merge_commit_id"),
}
_DRAWN = re.compile(r"\b01[0-9A-HJKMNP-TV-Z]{24}\b")
# What a read of one state says in both arms, to the last byte.
EXACT: frozenset[str] = frozenset({"uri"})


@dataclass(frozen=True)
class Arms:
    """How the same command line is given for each copy."""

    store: Path
    url: str
    folder: Path

    @property
    def graph_url(self) -> str:
        """The address of the copy that is served."""
        return f"{self.url}/graphs/people"

    def run(self, *line: object) -> tuple[Result, Result]:
        """The same command on both: embedded, and remote."""
        given = [str(each) for each in line]
        local = ["--store", str(self.store), *self.list_as(line)]
        served = ["--server", self.url, "--graph", "people", "--yes"]
        runner = CliRunner()
        return runner.invoke(app, [*given, *local]), runner.invoke(app, [*given, *served])

    def list_as(self, line: tuple[object, ...]) -> list[str]:
        """The actor, for verbs that take one."""
        is_read = line[0] == "proposal" and line[1] in ("list", "show", "diff")
        is_write = line[0] in WRITERS or line[:2] in WRITERS
        return ["--as", "ada"] if is_write and not is_read else []


WRITERS: Any = {
    "mutate",
    "load",
    "branch",
    "proposal",
    "snapshot",
    "export",
    "revert",
    "cherry-pick",
} | {
    *(("schema", "show"), ("schema", "apply"), ("tag", "create"), ("tag", "delete")),
}


def scrub(value: Any, names: set[str] | frozenset[str] = frozenset(VOLATILE)) -> Any:
    """A document without what differs from graph to graph."""
    match value:
        case dict():
            return {
                name: "…"
                if name in names and isinstance(found, str | int | float)
                else scrub(found, names)
                for name, found in value.items()
            }
        case list():
            return [scrub(each, names) for each in value]
        case str() if names is not EXACT:
            return _DRAWN.sub("…", value)
        case _:
            return value


def drop_ids(text: str) -> list[str]:
    """The lines of a text in order, without ids that are drawn."""
    return sorted(_DRAWN.sub("…", text).splitlines())


def read(result: Result) -> Any:
    """The document that a command printed."""
    return json.loads(result.stdout)


@contextmanager
def open_arms(folder: Path) -> Iterator[Arms]:
    """Two byte-identical copies of a graph with two commits, one of them served."""
    store, copy, policy = folder / "people.omni", folder / "served/people.omni", folder / "all.yaml"
    with omnigraph.create(store, schema=SCHEMA, durable=False, actor="ada") as graph:
        graph.branch().load(PEOPLE, mode="append")
        fork = graph.create_branch("review")
        fork.mutate('query age() { update Person set { age: 50 } where name = "bob" }')
        # Or else each copy would do it in the background, in commits of their own.
        for branch in (graph.branch(), fork):
            branch.ensure_indices()
    shutil.copytree(store, copy)
    policy.write_text(POLICY)
    state = boot_graph(
        str(copy), graph_id="people", policy=str(policy), tokens=make_tokens("ada"), is_open=False
    )
    with serve(state) as running:
        yield Arms(store, running.url, folder)
