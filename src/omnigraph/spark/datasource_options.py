"""The options of `format("omnigraph")`: which graph, which state, and what is read or written."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import Final, ParamSpec, TypeVar

from omnigraph.engine.graph import Graph, open_graph
from omnigraph.engine.snapshot import Snapshot
from omnigraph.errors import InvalidArgumentError, OmnigraphError
from omnigraph.lang.spellcheck import suggest_similar
from omnigraph.versioning.record import MAIN_BRANCH
from omnigraph.versioning.ref_events import parse_time

_STORAGE_PREFIX: Final = "storage."
_COMMON: Final = ("path", "uri", "type", "branch")
READ_OPTIONS: Final = (*_COMMON, "kind", "snapshot", "timestamp", "columns", "filter")
FEED_OPTIONS: Final = (*_COMMON, "start", "types", "kinds", "ops", "maxrowspertrigger")
WRITE_OPTIONS: Final = (*_COMMON, "mode", "key", "message", "actor", "on_error", "rejects")
# Spark's own options of a stream come with those of the source.
STREAM_WRITE_OPTIONS: Final = (*WRITE_OPTIONS, "checkpointlocation", "queryname")
# Where it is set, a Python process of Spark reports an exception without its traceback.
_HIDE_TRACEBACK: Final = "SPARK_HIDE_TRACEBACK"
P = ParamSpec("P")
R = TypeVar("R")


class DataSourceError(Exception):
    """An error of ours in a process of Spark, which passes on no more of it than this text."""

    @classmethod
    def from_error(cls, error: OmnigraphError) -> DataSourceError:
        """The code, the message and the hint of an error."""
        hint = f" (hint: {error.hint})" if error.hint else ""
        return cls(f"[{error.code}] {error.message}{hint}")


def report_errors(call: Callable[P, R]) -> Callable[P, R]:
    """Let a method that Spark calls raise errors of ours as one line with their code.

    The process of Spark that called it ends with the exception, and takes the setting with it.
    """

    @wraps(call)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        with _report_errors():
            return call(*args, **kwargs)

    return run


def iter_reporting(rows: Iterator[R]) -> Iterator[R]:
    """Rows, with errors of ours while they are read as one line."""
    with _report_errors():
        yield from rows


@contextmanager
def _report_errors() -> Iterator[None]:
    try:
        yield
    except OmnigraphError as error:
        os.environ[_HIDE_TRACEBACK] = "1"
        raise DataSourceError.from_error(error) from None


class SourceOptions:
    """The options that a caller has set, in lower case."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._given = {name.lower(): value for name, value in options.items() if value}

    def __contains__(self, name: str) -> bool:
        """Whether an option is set."""
        return name in self._given

    def get(self, name: str) -> str | None:
        """The value of an option."""
        return self._given.get(name)

    def list_names(self, name: str) -> list[str] | None:
        """The value of an option that has commas between names."""
        value = self._given.get(name)
        return None if value is None else [each.strip() for each in value.split(",")]

    def require(self, name: str) -> str:
        """The value of an option that must be set."""
        if name not in self._given:
            raise InvalidArgumentError(name, "the option is missing")
        return self._given[name]

    def require_known(self, known: Collection[str]) -> None:
        """Refuse an option that has no meaning here."""
        for name in self._given:
            if name not in known and not name.startswith(_STORAGE_PREFIX):
                raise InvalidArgumentError(
                    name, "there is no such option", hint=suggest_similar(name, known)
                )

    @property
    def branch(self) -> str:
        """The branch that is read or written."""
        return self._given.get("branch", MAIN_BRANCH)

    def open_graph(self) -> Graph:
        """Open the graph at the `path` of `load` and `save`, or at the `uri`."""
        uri = self._given.get("path") or self.require("uri")
        if self._given.get("uri", uri) != uri:
            raise InvalidArgumentError("uri", f"'{self.require('uri')}' is not the path '{uri}'")
        storage = {
            name.removeprefix(_STORAGE_PREFIX): value
            for name, value in self._given.items()
            if name.startswith(_STORAGE_PREFIX)
        }
        return open_graph(uri, actor=self.get("actor"), storage_options=storage or None)

    def resolve_snapshot(self, graph: Graph) -> Snapshot:
        """The state of a graph that is read."""
        places = [name for name in ("branch", "snapshot", "timestamp") if name in self]
        if len(places) > 1 and set(places) != {"branch", "timestamp"}:
            raise InvalidArgumentError(places[1], f"it excludes '{places[0]}'")
        if "snapshot" in self:
            return graph.snapshot(self.require("snapshot"))
        if "timestamp" not in self:
            return graph.branch(self.branch).snapshot()
        text = self.require("timestamp")
        moment = parse_time(text)
        if moment is None:
            hint = "write it like 2026-01-31T12:00:00Z"
            raise InvalidArgumentError("timestamp", f"'{text}' is not a time", hint=hint)
        return graph.snapshot(moment, branch=self.branch)
