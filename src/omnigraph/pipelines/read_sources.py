"""Sources from YAML: a section with a `kind`, or a reference to a provider."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import yaml

from omnigraph.diagnostics.shown import shown
from omnigraph.diagnostics.suggest import did_you_mean
from omnigraph.pipelines import shapes
from omnigraph.pipelines.definition import (
    FeedSource,
    FileSource,
    HttpSource,
    KafkaSource,
    Paging,
    PostgresSource,
    Source,
)
from omnigraph.pipelines.fields import Findings, Section, named_nodes, place_of, plain, read_section
from omnigraph.pipelines.places import Place
from omnigraph.pipelines.secrets import holds_password, is_reference, names_in

_PROVIDER: Final = "provider.source."
_SECRET_WORDS: Final = ("authorization", "token", "secret", "password", "key", "cookie")
_BY_NAME: Final = "write ${NAME}, and set NAME in the environment"
_DEFAULT: Final = "source"


@dataclass(frozen=True, slots=True)
class SourceReader:
    """Reads the sources of one file; `folder` is where relative paths start."""

    folder: Path
    findings: Findings
    providers: Mapping[str, yaml.Node]
    # Where the columns of a source are declared, by its name.
    columns: dict[str, Place] = field(default_factory=dict)

    def all(self, section: Section) -> dict[str, Source | None]:
        """The one source of a definition, or all that have names; None for what is none."""
        one: yaml.Node | None = section.values["source"]
        several: yaml.MappingNode | None = section.values["sources"]
        if (one is None) == (several is None):
            self.findings.add(section.place, "a pipeline has either 'source' or 'sources'")
            return {}
        if several is None:
            assert one is not None
            nodes = {_DEFAULT: one}
        else:
            found = named_nodes(several, "sources", self.findings)
            nodes = {name: node for name, _, node in found}
        return {name: self._source(name, node) for name, node in nodes.items()}

    def _source(self, own: str, node: yaml.Node, *, is_provider: bool = False) -> Source | None:
        if isinstance(node, yaml.ScalarNode):
            return None if is_provider else self._referred(own, node)
        kind = self._kind(node)
        if kind is None:
            return None
        section = read_section(node, shapes.SOURCES[kind], self.findings)
        if section.has("columns"):
            self.columns[own] = section.place_of("columns")
        return _BUILDERS[kind](self, section)

    def _referred(self, own: str, node: yaml.ScalarNode) -> Source | None:
        text, place = str(node.value), place_of(node)
        name = text.removeprefix(_PROVIDER)
        if text.startswith(_PROVIDER) and name in self.providers:
            return self._source(own, self.providers[name], is_provider=True)
        if text.startswith(_PROVIDER):
            hint = did_you_mean(name, self.providers)
            self.findings.add(place, f"no provider of sources is called '{shown(name)}'", hint=hint)
        elif text.startswith("provider."):
            self.findings.add(place, f"'{shown(text)}' is no provider of sources")
        else:
            self.findings.add(
                place,
                f"'{shown(text)}' does not say what it is",
                hint=f"write a section with a kind, or {_PROVIDER}NAME",
            )
        return None

    def _kind(self, node: yaml.Node) -> str | None:
        known = ", ".join(shapes.SOURCES)
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if key.value != "kind" or not isinstance(value, yaml.ScalarNode):
                    continue
                if value.value in shapes.SOURCES:
                    return str(value.value)
                hint = did_you_mean(value.value, shapes.SOURCES) or f"known are {known}"
                message = f"source: '{shown(value.value)}' is no kind of source"
                self.findings.add(place_of(value), message, hint=hint)
                return None
        self.findings.add(place_of(node), "source: 'kind' is missing", hint=f"known are {known}")
        return None

    def files(self, section: Section) -> Source:
        """Files; paths start at the folder of the definition."""
        return FileSource(
            paths=tuple(self.path(each) for each in section.values["paths"] or ()),
            format=section.text_or_none("format"),
            columns=section.text_or_none("columns"),
            is_multiline=bool(section.values["multiline"]),
            encoding=section.text("encoding"),
            options=self._texts("options", section),
        )

    def postgres(self, section: Section) -> Source:
        """A table or a query."""
        self._no_password("url", section)
        if section.has("table") == section.has("query"):
            self.findings.add(section.place, "postgres: give either 'table' or 'query'")
        return PostgresSource(
            url=section.text("url"),
            table=section.text_or_none("table"),
            query=section.text_or_none("query"),
            key=section.text_or_none("key"),
            ranges=section.values["ranges"],
        )

    def http(self, section: Section) -> Source:
        """Pages of JSON."""
        self._no_password("url", section)
        self._only_reference("token", section)
        paging = section.values["paging"]
        return HttpSource(
            url=section.text("url"),
            headers=self._texts("headers", section),
            params=self._texts("params", section),
            token=section.text_or_none("token"),
            records=section.text_or_none("records"),
            paging=Paging() if paging is None else self._paging(paging),
            timeout_s=section.values["timeout"],
            columns=section.text_or_none("columns"),
        )

    def _paging(self, node: yaml.Node) -> Paging:
        section = read_section(node, shapes.PAGING, self.findings)
        ways = [name for name in ("link", "cursor", "page", "offset") if section.has(name)]
        if len(ways) != 1:
            self.findings.add(section.place, "paging: give one of link, cursor, page, offset")
        return Paging(
            link=section.text_or_none("link"),
            cursor=section.text_or_none("cursor"),
            page=section.text_or_none("page"),
            offset=section.text_or_none("offset"),
            param=section.text("param"),
            first=section.values["first"],
            pages_max=section.values["pages_max"],
        )

    def feed(self, section: Section) -> Source:
        """The change feed of a graph."""
        self._no_password("uri", section)
        return FeedSource(
            uri=self.path(section.text("uri")),
            branch=section.text("branch"),
            types=tuple(section.values["types"] or ()),
            ops=tuple(section.values["ops"]),
            start=section.text("start"),
            changes_max=section.values["changes_max"],
            per=section.text("per"),
            columns=section.text_or_none("columns"),
        )

    def kafka(self, section: Section) -> Source:
        """Messages of topics."""
        return KafkaSource(
            servers=section.text("servers"),
            topics=tuple(section.values["topics"] or ()),
            start=section.text("start"),
            options=self._texts("options", section),
            messages_max=section.values["messages_max"],
            columns=section.text_or_none("columns"),
        )

    def path(self, text: str) -> str:
        """A path from the folder of the definition; addresses and names of secrets stay."""
        if "://" in text or text.startswith("${"):
            return text
        return os.path.normpath(self.folder / text)

    def _texts(self, name: str, section: Section) -> dict[str, str]:
        node: yaml.MappingNode | None = section.values[name]
        if node is None:
            return {}
        texts: dict[str, str] = {}
        for key, place, value in named_nodes(node, name, self.findings):
            if not isinstance(value, yaml.ScalarNode):
                self.findings.add(place, f"{name}: '{shown(key)}' expects: text")
                continue
            plain_value = plain(value)
            texts[key] = str(value.value) if plain_value is not None else ""
            is_secret = any(word in key.lower() for word in _SECRET_WORDS)
            if is_secret and not names_in(texts[key]):
                message = f"{name}: '{shown(key)}' holds a secret"
                self.findings.add(place, message, hint=_BY_NAME)
        return texts

    def _only_reference(self, name: str, section: Section) -> None:
        text = section.text_or_none(name)
        if text is not None and not is_reference(text):
            message = f"'{name}' holds a secret"
            self.findings.add(section.place_of(name), message, hint=_BY_NAME)

    def _no_password(self, name: str, section: Section) -> None:
        self.require_no_password(section.text(name), name, section.place_of(name))

    def require_no_password(self, address: str, name: str, place: Place) -> None:
        """Report an address that spells out a secret."""
        if holds_password(address):
            self.findings.add(place, f"'{name}' holds a password", hint=_BY_NAME)


_BUILDERS: Final[Mapping[str, Callable[[SourceReader, Section], Source]]] = {
    "files": SourceReader.files,
    "s3-files": SourceReader.files,
    "postgres": SourceReader.postgres,
    "http": SourceReader.http,
    "graph": SourceReader.feed,
    "kafka": SourceReader.kafka,
}
