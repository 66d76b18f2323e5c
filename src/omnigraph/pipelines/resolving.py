"""Definitions with the values of their secrets, for the time of a run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from omnigraph.errors import OmnigraphError, SecretMissing
from omnigraph.pipelines.definition import FeedSource, FileSource, Pipeline, Source, Target
from omnigraph.pipelines.secrets import environment_with, hidden, missing_in, names_in, resolved


@dataclass(frozen=True, slots=True)
class Resolver:
    """A definition and the environment that its secrets are taken from."""

    pipeline: Pipeline
    environment: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, pipeline: Pipeline, environment: Mapping[str, str] | None = None) -> Resolver:
        """The definition in an environment, by default that of the process."""
        own = os.environ if environment is None else environment
        return cls(pipeline, environment_with(own, pipeline.env_file))

    def require_all(self) -> None:
        """Refuse a definition whose secrets are not all set."""
        missing = missing_in(texts_of(self.pipeline), self.environment)
        if missing:
            raise SecretMissing(missing)

    def hidden(self, value: Any) -> Any:  # Any: a text or JSON
        """A text, or JSON with texts in it, that tells no value of the environment."""
        match value:
            case str():
                return hidden(value, self._values())
            case list() | tuple():
                return [self.hidden(each) for each in value]
            case Mapping():
                return {name: self.hidden(each) for name, each in value.items()}
            case _:
                return value

    @contextmanager
    def hiding(self) -> Iterator[None]:
        """Errors that leave tell no value of the environment."""
        try:
            yield
        except OmnigraphError as failure:
            failure.message = self.hidden(failure.message)
            failure.hint = self.hidden(failure.hint)
            failure.args = (failure.message, *failure.args[1:])
            raise

    def source(self, name: str) -> Source:
        """A source that can be read."""
        found: Source = self._value(self.pipeline.sources[name])
        match found:
            case FileSource():
                return replace(found, paths=tuple(map(self._path, found.paths)))
            case FeedSource():
                return replace(found, uri=self._path(found.uri))
            case _:
                return found

    def graph(self, graph: str) -> str:
        """The address of a graph."""
        return self._path(resolved(self.pipeline.graphs[graph].uri, self.environment))

    def can_address(self, graph: str) -> bool:
        """Whether the address of a graph is known in this environment."""
        return not missing_in([self.pipeline.graphs[graph].uri], self.environment)

    def ledger(self) -> str:
        """Where runs are recorded: the graph of the first target, unless the definition says."""
        if self.pipeline.ledger is None:
            return self.graph(self.pipeline.targets[0].graph)
        return self._path(resolved(self.pipeline.ledger, self.environment))

    def rejects(self, target: Target) -> str | None:
        """The folder that quarantined rows go to."""
        if target.rejects is None:
            return None
        return self._path(resolved(target.rejects, self.environment))

    def _path(self, text: str) -> str:
        # A name of a secret may stand for a path beside the definition.
        return text if "://" in text else os.path.normpath(Path(self.pipeline.folder, text))

    def _value(self, value: Any) -> Any:  # Any: a field of a source
        match value:
            case str():
                return resolved(value, self.environment)
            case tuple():
                return tuple(self._value(each) for each in value)
            case Mapping():
                return {name: self._value(each) for name, each in value.items()}
            case _ if is_dataclass(value) and not isinstance(value, type):
                given = {
                    each.name: self._value(getattr(value, each.name)) for each in fields(value)
                }
                return replace(value, **given)
            case _:
                return value

    def _values(self) -> dict[str, str]:
        texts = texts_of(self.pipeline)
        names = dict.fromkeys(name for text in texts for name in names_in(text))
        return {name: self.environment[name] for name in names if self.environment.get(name)}


def texts_of(pipeline: Pipeline) -> Iterator[str]:
    """Every text of a definition that may name a value of the environment."""
    yield from (place.uri for place in pipeline.graphs.values())
    yield from (target.rejects for target in pipeline.targets if target.rejects is not None)
    if pipeline.ledger is not None:
        yield pipeline.ledger
    for source in pipeline.sources.values():
        yield from _texts(source)


def _texts(value: Any) -> Iterator[str]:  # Any: a field of a source
    match value:
        case str():
            yield value
        case tuple():
            for each in value:
                yield from _texts(each)
        case Mapping():
            for each in value.values():
                yield from _texts(each)
        case _ if is_dataclass(value) and not isinstance(value, type):
            for each in fields(value):
                yield from _texts(getattr(value, each.name))
        case _:
            pass
