"""Values that definitions take from the environment: `${NAME}`, resolved when a run begins.

A definition never holds a secret: it names one. Validation and plans do not need the values.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from omnigraph.config.references import (
    find_missing_names,
    find_names,
    hide_values,
    resolve_text,
    strip_quotes,
)
from omnigraph.errors import OmnigraphError, SecretMissingError, SourceRefusedError
from omnigraph.pipelines.config.definition import FeedSource, FileSource, Pipeline, Source, Target
from omnigraph.pipelines.config.slot_references import strip_slots

_Settings = TypeVar("_Settings")
_LINE: Final = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*")


def merge_environment(environment: Mapping[str, str], env_file: Path | None) -> Mapping[str, str]:
    """The environment of a process, over the `NAME=value` lines of a file beside a definition."""
    if env_file is None:
        return environment
    try:
        lines = env_file.read_text(encoding="utf-8").splitlines()
    except OSError as failure:
        message = f"the env_file {env_file} cannot be read: {failure.strerror}"
        raise SourceRefusedError(message) from failure
    except UnicodeDecodeError:
        # Without its cause, which would show what is in the file.
        message = f"the env_file {env_file} is not UTF-8"
        raise SourceRefusedError(message, hint="save it as UTF-8") from None
    return {**dict(_parse_variables(lines)), **environment}


def _parse_variables(lines: Iterable[str]) -> Iterable[tuple[str, str]]:
    for line in lines:
        found = _LINE.fullmatch(line)
        if found and not line.lstrip().startswith("#"):
            yield found[1], strip_quotes(found[2])


@dataclass(frozen=True, slots=True)
class Resolver:
    """A definition and the environment that its secrets are taken from."""

    pipeline: Pipeline
    environment: Mapping[str, str] = field(repr=False)

    @classmethod
    def from_environment(
        cls, pipeline: Pipeline, environment: Mapping[str, str] | None = None
    ) -> Resolver:
        """The definition in an environment, by default that of the process."""
        own = os.environ if environment is None else environment
        return cls(pipeline, merge_environment(own, pipeline.env_file))

    def require_secrets(self) -> None:
        """Refuse a definition whose secrets are not all set."""
        missing = find_missing_names(iter_texts(self.pipeline), self.environment)
        if missing:
            raise SecretMissingError(missing)

    def hide_secrets(self, value: Any) -> Any:  # Any: a text or JSON
        """A text, or JSON with texts in it, that shows no value of the environment."""
        match value:
            case str():
                return hide_values(value, self._list_secret_values())
            case list() | tuple():
                return [self.hide_secrets(each) for each in value]
            case Mapping():
                return {name: self.hide_secrets(each) for name, each in value.items()}
            case _:
                return value

    @contextmanager
    def hide_secrets_in_errors(self) -> Iterator[None]:
        """Errors that leave show no value of the environment."""
        try:
            yield
        except OmnigraphError as failure:
            failure.message = self.hide_secrets(failure.message)
            failure.hint = self.hide_secrets(failure.hint)
            failure.args = (failure.message, *failure.args[1:])
            raise

    def resolve_source(self, name: str) -> Source:
        """A source that can be read."""
        found: Source = self._resolve_value(self.pipeline.sources[name])
        match found:
            case FileSource():
                return replace(found, paths=tuple(map(self._resolve_path, found.paths)))
            case FeedSource():
                return replace(found, uri=self._resolve_path(found.uri))
            case _:
                return found

    def resolve_settings(self, settings: _Settings) -> _Settings:
        """A part of the definition with the values of its secrets."""
        found: _Settings = self._resolve_value(settings)
        return found

    def resolve_graph(self, graph: str) -> str:
        """The address of a graph."""
        return self._resolve_path(resolve_text(self.pipeline.graphs[graph].uri, self.environment))

    def can_resolve_graph(self, graph: str) -> bool:
        """Whether the address of a graph is known in this environment."""
        return not find_missing_names([self.pipeline.graphs[graph].uri], self.environment)

    def resolve_ledger(self) -> str:
        """Where runs are recorded: the graph of the first target, unless the definition says."""
        if self.pipeline.ledger is None:
            return self.resolve_graph(self.pipeline.targets[0].graph)
        return self._resolve_path(resolve_text(self.pipeline.ledger, self.environment))

    def resolve_rejects(self, target: Target) -> str | None:
        """The folder that quarantined rows go to."""
        if target.rejects is None:
            return None
        return self._resolve_path(resolve_text(target.rejects, self.environment))

    def _resolve_path(self, text: str) -> str:
        # A name of a secret may stand for a path beside the definition.
        return text if "://" in text else os.path.normpath(Path(self.pipeline.folder, text))

    def _resolve_value(self, value: Any) -> Any:  # Any: a field of a source
        match value:
            case str():
                return resolve_text(value, self.environment)
            case tuple():
                return tuple(self._resolve_value(each) for each in value)
            case Mapping():
                return {name: self._resolve_value(each) for name, each in value.items()}
            case _ if is_dataclass(value) and not isinstance(value, type):
                given = {
                    each.name: self._resolve_value(getattr(value, each.name))
                    for each in fields(value)
                }
                return replace(value, **given)
            case _:
                return value

    def _list_secret_values(self) -> dict[str, str]:
        texts = iter_texts(self.pipeline)
        names = dict.fromkeys(name for text in texts for name in find_names(text))
        return {name: self.environment[name] for name in names if self.environment.get(name)}


def iter_texts(pipeline: Pipeline) -> Iterator[str]:
    """Every text of a definition that may name a value of the environment."""
    yield from map(strip_slots, _iter_named_texts(pipeline))


def _iter_named_texts(pipeline: Pipeline) -> Iterator[str]:
    yield from (place.uri for place in pipeline.graphs.values())
    yield from (target.rejects for target in pipeline.targets if target.rejects is not None)
    if pipeline.ledger is not None:
        yield pipeline.ledger
    yield from _iter_value_texts(pipeline.reports)
    for source in pipeline.sources.values():
        yield from _iter_value_texts(source)


def _iter_value_texts(value: Any) -> Iterator[str]:  # Any: a field of a source
    match value:
        case str():
            yield value
        case tuple():
            for each in value:
                yield from _iter_value_texts(each)
        case Mapping():
            for each in value.values():
                yield from _iter_value_texts(each)
        case _ if is_dataclass(value) and not isinstance(value, type):
            for each in fields(value):
                yield from _iter_value_texts(getattr(value, each.name))
        case _:
            pass
