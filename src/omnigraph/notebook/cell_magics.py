"""`%%gq` runs queries, and `%%pg` checks, plans or applies a schema.

A cell names its graph by a variable that holds a graph, a branch or a snapshot, or by an address,
which stays open; without one, it is that of the cell before.
"""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from typing import Any, NoReturn

from IPython.core.error import UsageError

from omnigraph.connection import connect
from omnigraph.engine import Branch, Graph, Snapshot
from omnigraph.errors import OmnigraphError
from omnigraph.notebook.cell_programs import Target, Values, check_schema, run_queries


class GraphMagics:
    """The magics of cells, and the graphs that they opened."""

    def __init__(self, shell: Any) -> None:  # Any: the shell of IPython
        self._shell = shell
        self._opened: dict[str, Graph] = {}
        self._newest: Target | None = None

    def run_query_cell(self, line: str, cell: str) -> Any:  # Any: an outcome
        """Run the queries, the mutation or the statement of a cell."""
        given = _parse_line(_QUERY_LINE, line)
        with _ReportedFailures():
            target = self._choose_state(given)
            # Any variable of the notebook may have the name of one that a bare body binds.
            named = self._find_values(given.params)
            values = self._shell.user_ns if given.params is None else named
            *before, last = run_queries(cell, target, name=given.name, values=values, given=named)
            for each in before:
                self._shell.displayhook(each)
            return self._keep(given.into, last)

    def run_schema_cell(self, line: str, cell: str) -> Any:  # Any: a plan or a result
        """Check the schema of a cell, and plan or apply it."""
        given = _parse_line(_SCHEMA_LINE, line)
        with _ReportedFailures():
            checked = check_schema(cell)
            self._keep(given.into, cell)
            if not (given.plan or given.apply):
                return checked
            found = self._find_target(given.graph)
            branch = found.branch() if isinstance(found, Graph) else found
            if not isinstance(branch, Branch):
                raise UsageError("a schema is that of a graph or a branch")
            return branch.apply_schema(cell) if given.apply else branch.plan_schema(cell)

    def _choose_state(self, given: Namespace) -> Target:
        target = self._find_target(given.graph)
        if given.branch is None and given.at is None:
            return target
        if not isinstance(target, Graph) or (given.branch is not None and given.at is not None):
            raise UsageError("--branch or --at chooses a state of a graph")
        return target.branch(given.branch) if given.at is None else target.snapshot(given.at)

    def _find_target(self, named: str | None) -> Target:
        if named is None:
            if self._newest is None:
                raise UsageError("say which graph: a variable, or an address")
            return self._newest
        found = self._shell.user_ns.get(named)
        if found is None:
            found = self._opened.get(named) or connect(named)
            self._opened[named] = found
        if not isinstance(found, Graph | Branch | Snapshot):
            raise UsageError(f"{named} is a {type(found).__name__}, not a graph")
        self._newest = found
        return found

    def _find_values(self, name: str | None) -> Values:
        """The parameters in a dict of the notebook; none without its name."""
        if name is None:
            return {}
        found = self._shell.user_ns.get(name)
        if not isinstance(found, dict):
            raise UsageError(f"{name} is not a dict of parameters")
        return found

    def _keep(self, name: str | None, value: Any) -> Any:
        if name is not None:
            self._shell.user_ns[name] = value
            return None
        return value


class _LineParser(ArgumentParser):
    """Parses the line of a cell; a mistake is a message."""

    def error(self, message: str) -> NoReturn:
        """Report what is wrong with a line."""
        raise UsageError(f"{self.prog}: {message}")


def _parse_line(parser: ArgumentParser, line: str) -> Namespace:
    try:
        return parser.parse_args(shlex.split(line))
    except (SystemExit, ValueError) as failure:
        # Only help ends a parser by itself.
        raise UsageError(parser.format_usage().strip()) from failure


_QUERY_LINE = _LineParser("%%gq")
_QUERY_LINE.add_argument("graph", nargs="?", help="A variable, or the address of a graph.")
_QUERY_LINE.add_argument("--branch", help="Run on this branch.")
_QUERY_LINE.add_argument("--at", help="Read a state: a commit, a tag, a version or a time.")
_QUERY_LINE.add_argument("--name", help="Run one query of the cell; otherwise all, in order.")
_QUERY_LINE.add_argument("--params", metavar="NAME", help="A variable with a dict of parameters.")
_QUERY_LINE.add_argument("--into", metavar="NAME", help="Keep the last outcome in this variable.")
_SCHEMA_LINE = _LineParser("%%pg")
_SCHEMA_LINE.add_argument("graph", nargs="?", help="A variable, or the address of a graph.")
_SCHEMA_LINE.add_argument("--plan", action="store_true", help="Plan a change to this schema.")
_SCHEMA_LINE.add_argument("--apply", action="store_true", help="Change to this schema.")
_SCHEMA_LINE.add_argument("--into", metavar="NAME", help="Keep the text in this variable.")


class _ReportedFailures:
    """Around a cell: a failure of the library is a message, without the stack of this module."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, failure: BaseException | None, trace: object) -> None:
        if isinstance(failure, OmnigraphError):
            hint = "" if failure.hint is None else f"\nhint: {failure.hint}"
            raise UsageError(f"{failure}{hint}") from None
