"""The commands below the root: which module has each, and the line that help shows of it.

Help and completion read this table, so that they load no command; a guard compares it with the
commands themselves.
"""

from __future__ import annotations

import importlib
from typing import Any, Final, NamedTuple

import typer

from omnigraph.cli.command_classes import PlainCommand, make_app


class Entry(NamedTuple):
    """One command, or one group of commands."""

    name: str
    module: str
    summary: str


COMMANDS: Final = (
    Entry("init", "graph_commands", "Create a graph."),
    Entry("snapshot", "graph_commands", "List the tables of a branch: types, entities, versions."),
    Entry(
        "export",
        "graph_commands",
        "Print every entity of a branch or a commit as JSON lines, ready for `load`.",
    ),
    Entry(
        "pins",
        "graph_commands",
        "List the address and version of every table, for other tools that read Lance.",
    ),
    Entry(
        "check",
        "graph_commands",
        "Verify every structural rule of a graph; exit with 1 if there is a problem.",
    ),
    Entry(
        "load", "load_command", "Load entities into a branch: all of them in one commit, or none."
    ),
    Entry("query", "query_commands", "Run a query that reads, and print its rows."),
    Entry(
        "explain",
        "query_commands",
        "Say how a query is answered: its steps, where they read, their rows and times.",
    ),
    Entry(
        "mutate", "query_commands", "Run a query that inserts, updates or deletes, as one commit."
    ),
    Entry(
        "shell",
        "shell_command",
        "Ask a graph one query after another, at a prompt or from standard input.",
    ),
    Entry("branch", "branch_commands", "Work with branches."),
    Entry("commit", "commit_commands", "Look at the history."),
    Entry("changes", "changes_commands", "Follow what is committed to a branch."),
    Entry(
        "history",
        "entity_commands",
        "Show who changed an entity, when and in which commits, the newest first.",
    ),
    Entry(
        "blame", "entity_commands", "Show which commit gave each property of an entity its value."
    ),
    Entry("revert", "merge_commands", "Undo what a commit changed, in a new commit."),
    Entry(
        "cherry-pick",
        "merge_commands",
        "Change on a branch what a commit of another one changed there, in a new commit.",
    ),
    Entry(
        "proposal",
        "proposal_commands",
        "Propose to merge a branch; review, check and merge that.",
    ),
    Entry(
        "diff",
        "diff_command",
        "Show what changed between two states: `diff OLD NEW`, or `diff BRANCH` to review it.",
    ),
    Entry(
        "mcp",
        "mcp_command",
        "Serve a graph to an agent, by the Model Context Protocol over standard input and output.",
    ),
    Entry("schema", "schema_commands", "Work with schema files and the schema of a graph."),
    Entry("blob", "blob_commands", "Read blobs: bytes of any length that a property holds."),
    Entry(
        "optimize",
        "index_commands",
        "Join small fragments and extend the declared indexes to all rows; no entity changes.",
    ),
    Entry("index", "index_commands", "Work with the indexes that the schema declares."),
    Entry(
        "embed",
        "embed_command",
        "Make the vectors of texts that wait for one, in a graph or in files of records.",
    ),
    Entry(
        "cleanup",
        "retention_commands",
        "Remove old commits of every branch, and what nothing refers to any more.",
    ),
    Entry(
        "repair",
        "retention_commands",
        "Look for foreign writes, stale derived objects, and damage; exit with 1 if any is left.",
    ),
    Entry(
        "upgrade",
        "retention_commands",
        "Bring a stored graph to the format of this program, in place; history and names stay.",
    ),
    Entry("tag", "retention_commands", "Work with tags, which keep commits from being cleaned up."),
    Entry("pipeline", "pipeline_commands", "Load graphs from sources by definitions, on Spark."),
    Entry(
        "worker",
        "worker_command",
        "Run the pipelines of a cluster whose schedule says that they are due.",
    ),
    Entry("policy", "policy_commands", "Check a policy bundle, and ask it who may do what."),
    Entry("cluster", "cluster_commands", "Manage graphs, queries, policies and pipelines as one."),
    Entry("graphs", "queries_commands", "List the graphs of a cluster or a server."),
    Entry("queries", "queries_commands", "Work with stored queries."),
    Entry("dashboards", "queries_commands", "List the dashboards of a cluster."),
    Entry(
        "serve",
        "serve_command",
        "Serve one graph over HTTP, without a cluster, until it is interrupted.",
    ),
    Entry("spark", "spark_commands", "Look at what Spark runs on."),
    Entry(
        "lint",
        "lint_command",
        "Check the queries of a file against a schema or a graph; exit with 1 if one has an error.",
    ),
    Entry(
        "login",
        "operator_commands",
        "Store the token of a server, in a file that only you can read.",
    ),
    Entry(
        "logout",
        "operator_commands",
        "Remove the token of a server; without one, nothing happens.",
    ),
    Entry("profile", "operator_commands", "Look at the profiles of the operator config."),
    Entry("config", "operator_commands", "Look at the operator config."),
    Entry(
        "alias",
        "operator_commands",
        "Run the stored query that an alias of the operator config stands for.",
    ),
    Entry("fmt", "fmt_command", "Format `.pg` and `.gq` files in place; comments are kept."),
)


class DeferredCommand(PlainCommand):
    """What help and completion know of a command before its module is loaded."""

    def __init__(self, entry: Entry) -> None:
        super().__init__(entry.name, help=entry.summary)
        self.entry = entry

    def load(self) -> Any:  # Any: a command of the library
        """The command itself, or the group of commands."""
        module = importlib.import_module(f"omnigraph.cli.commands.{self.entry.module}")
        part = make_app()
        module.register(part)
        return typer.main.get_group(part).commands[self.entry.name]
