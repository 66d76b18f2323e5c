"""Sources from YAML: a section with a `kind`, or a reference to a provider."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import yaml

from omnigraph.config.references import contains_password, find_names, is_reference
from omnigraph.config.yaml_reader import (
    Findings,
    Position,
    Section,
    decode_node,
    iter_named_nodes,
    position_of,
    read_section,
)
from omnigraph.lang.quoting import sanitize_text
from omnigraph.lang.spellcheck import suggest_similar
from omnigraph.pipelines.config import config_schema
from omnigraph.pipelines.config.csv_dialect import (
    CSV_SECTION,
    STANDARD_CSV,
    CsvDialect,
    read_csv_dialect,
)
from omnigraph.pipelines.config.definition import (
    ColumnDrift,
    DltSource,
    FeedSource,
    FileSource,
    HttpSource,
    Incremental,
    KafkaSource,
    OAuth,
    Paging,
    PostgresSource,
    PythonSource,
    Source,
    SparkSource,
    SqlSource,
)
from omnigraph.pipelines.config.operations_schema import DRIFT

PROVIDER_PREFIX: Final = "provider.source."
_SECRET_WORDS: Final = ("authorization", "token", "secret", "password", "key", "cookie")
# The code of a problem, which names no secret.
_INLINE_SECRET: Final = "inline_secret"  # noqa: S105
_ENVIRONMENT_HINT: Final = "write ${NAME}, and set NAME in the environment"
_DEFAULT_SOURCE: Final = "source"
_FUNCTION: Final = re.compile(r"[^\W\d][\w.]*:[^\W\d]\w*")
# Spark ignores options that it does not know, and so would a spelling mistake be.
_CSV_OPTIONS: Final = (
    *("sep", "delimiter", "encoding", "charset", "quote", "quoteAll", "escape", "escapeQuotes"),
    *(
        "charToEscapeQuoteEscaping",
        "comment",
        "header",
        "inferSchema",
        "preferDate",
        "enforceSchema",
    ),
    *("ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace", "nullValue", "emptyValue", "nanValue"),
    *("positiveInf", "negativeInf", "dateFormat", "timestampFormat", "timestampNTZFormat"),
    *("enableDateTimeParsingFallback", "maxColumns", "maxCharsPerColumn", "mode", "multiLine"),
    *("columnNameOfCorruptRecord", "samplingRatio", "locale", "lineSep", "compression"),
    *("unescapedQuoteHandling", "timeZone", "recursiveFileLookup", "pathGlobFilter", "basePath"),
    *("modifiedBefore", "modifiedAfter", "ignoreCorruptFiles", "ignoreMissingFiles"),
)


@dataclass(frozen=True, slots=True)
class SourceReader:
    """Reads the sources of one file; `folder` is where relative paths start."""

    folder: Path
    findings: Findings
    providers: Mapping[str, yaml.Node]
    # Where the columns of a source are declared, by its name.
    column_positions: dict[str, Position] = field(default_factory=dict)
    # Where problems of providers go that another file declares.
    provider_findings: Findings | None = None

    def read_all(self, section: Section) -> dict[str, Source | None]:
        """The one source of a definition, or all that have names; None for what is none."""
        one: yaml.Node | None = section.values["source"]
        several: yaml.MappingNode | None = section.values["sources"]
        if (one is None) == (several is None):
            self.findings.add_problem(
                section.position, "a pipeline has either 'source' or 'sources'"
            )
            return {}
        if several is None:
            assert one is not None
            nodes = {_DEFAULT_SOURCE: one}
        else:
            found = iter_named_nodes(several)
            nodes = {name: node for name, _, node in found}
        read = {name: self._read_source(name, node) for name, node in nodes.items()}
        if read and all(isinstance(source, SqlSource) for source in read.values()):
            self.findings.add_problem(
                section.position,
                "a query needs a source to read from",
                hint="name one of another kind beside it",
            )
        return read

    def _read_source(self, own: str, node: yaml.Node) -> Source | None:
        if isinstance(node, yaml.ScalarNode):
            return self._read_reference(own, node)
        return self.read_inline(own, node)

    def read_inline(self, own: str, node: yaml.Node) -> Source | None:
        """A source that is a section: of a definition, or of a provider."""
        kind = self._read_kind(node)
        if kind is None:
            return None
        section = read_section(node, config_schema.SOURCES[kind], self.findings)
        if section.has_field("columns"):
            self.column_positions[own] = section.position_of("columns")
        return self.read_dlt(own, section) if kind == "dlt" else _BUILDERS[kind](self, section)

    def _read_reference(self, own: str, node: yaml.ScalarNode) -> Source | None:
        text, place = str(node.value), position_of(node)
        name = text.removeprefix(PROVIDER_PREFIX)
        if text.startswith(PROVIDER_PREFIX) and name in self.providers:
            reader = replace(self, findings=self.provider_findings or self.findings)
            return reader.read_inline(own, self.providers[name])
        if text.startswith(PROVIDER_PREFIX):
            hint = suggest_similar(name, self.providers)
            self.findings.add_problem(
                place,
                f"no provider of sources is called '{sanitize_text(name)}'",
                hint=hint,
                code="dangling_source_reference",
            )
        elif text.startswith("provider."):
            self.findings.add_problem(
                place,
                f"'{sanitize_text(text)}' is not a provider of sources",
                code="wrong_kind_reference",
            )
        else:
            self.findings.add_problem(
                place,
                f"'{sanitize_text(text)}' does not say what it is",
                hint=f"write a section with a kind, or {PROVIDER_PREFIX}NAME",
                code="ambiguous_source",
            )
        return None

    def _read_kind(self, node: yaml.Node) -> str | None:
        known = ", ".join(config_schema.SOURCES)
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if key.value != "kind" or not isinstance(value, yaml.ScalarNode):
                    continue
                if value.value in config_schema.SOURCES:
                    return str(value.value)
                hint = suggest_similar(value.value, config_schema.SOURCES) or f"known are {known}"
                message = f"source: '{sanitize_text(value.value)}' is not a kind of source"
                self.findings.add_problem(position_of(value), message, hint=hint)
                return None
        self.findings.add_problem(
            position_of(node), "source: 'kind' is missing", hint=f"known are {known}"
        )
        return None

    def read_files(self, section: Section) -> Source:
        """Files; paths start at the folder of the definition."""
        return FileSource(
            paths=tuple(self.resolve_path(each) for each in section.values["paths"] or ()),
            format=section.find_text("format"),
            columns=section.find_text("columns"),
            is_multiline=bool(section.values["multiline"]),
            encoding=section.get_text("encoding"),
            options=self.read_texts("options", section),
            csv=self._read_csv(section.values["csv"]),
            is_new_only=bool(section.values["new_files"]),
            drift=self._read_drift(section.values["drift"]),
        )

    def _read_csv(self, node: yaml.MappingNode | None) -> CsvDialect:
        if node is None:
            return STANDARD_CSV
        return read_csv_dialect(read_section(node, CSV_SECTION, self.findings), self.findings)

    def _read_drift(self, node: yaml.Node | None) -> ColumnDrift:
        if node is None:
            return ColumnDrift()
        own = read_section(node, DRIFT, self.findings)
        return ColumnDrift(*(own.get_text(name) for name in ("new", "missing", "changed")))

    def read_postgres(self, section: Section) -> Source:
        """A table or a query."""
        self.check_field_password("url", section)
        if section.has_field("table") == section.has_field("query"):
            self.findings.add_problem(section.position, "postgres: give either 'table' or 'query'")
        return PostgresSource(
            url=section.get_text("url"),
            table=section.find_text("table"),
            query=section.find_text("query"),
            key=section.find_text("key"),
            ranges=section.values["ranges"],
            incremental=self._read_incremental(section),
        )

    def read_http(self, section: Section) -> Source:
        """Pages of JSON."""
        self.check_field_password("url", section)
        self.check_only_reference("token", section)
        paging, oauth = section.values["paging"], section.values["oauth"]
        if oauth is not None and section.has_field("token"):
            self.findings.add_problem(section.position, "http: give either 'token' or 'oauth'")
        return HttpSource(
            url=section.get_text("url"),
            headers=self.read_texts("headers", section),
            params=self.read_texts("params", section),
            token=section.find_text("token"),
            records=section.find_text("records"),
            paging=Paging() if paging is None else self._read_paging(paging),
            body=section.find_text("body"),
            oauth=None if oauth is None else self._read_oauth(oauth),
            rate=section.values["rate"],
            timeout_s=section.values["timeout"],
            columns=section.find_text("columns"),
            incremental=self._read_incremental(section),
        )

    def _read_incremental(self, section: Section) -> Incremental | None:
        node = section.values["incremental"]
        if node is None:
            return None
        own = read_section(node, config_schema.INCREMENTAL, self.findings)
        if own.has_field("param") and "table" in section.values:
            self.findings.add_problem(own.position_of("param"), "'param' is for HTTP services")
        return Incremental(own.get_text("cursor"), own.values["lag"], own.find_text("param"))

    def _read_oauth(self, node: yaml.Node) -> OAuth:
        section = read_section(node, config_schema.OAUTH, self.findings)
        self.check_field_password("token_url", section)
        self.check_only_reference("client_secret", section)
        return OAuth(
            token_url=section.get_text("token_url"),
            client_id=section.get_text("client_id"),
            client_secret=section.get_text("client_secret"),
            scope=section.find_text("scope"),
        )

    def _read_paging(self, node: yaml.Node) -> Paging:
        section = read_section(node, config_schema.PAGING, self.findings)
        ways = [name for name in ("link", "cursor", "page", "offset") if section.has_field(name)]
        if len(ways) != 1:
            self.findings.add_problem(
                section.position, "paging: give one of link, cursor, page, offset"
            )
        return Paging(
            link=section.find_text("link"),
            cursor=section.find_text("cursor"),
            page=section.find_text("page"),
            offset=section.find_text("offset"),
            param=section.get_text("param"),
            first=section.values["first"],
            pages_max=section.values["pages_max"],
        )

    def read_feed(self, section: Section) -> Source:
        """The change feed of a graph."""
        self.check_field_password("uri", section)
        return FeedSource(
            uri=self.resolve_path(section.get_text("uri")),
            branch=section.get_text("branch"),
            types=tuple(section.values["types"] or ()),
            ops=tuple(section.values["ops"]),
            start=section.get_text("start"),
            changes_max=section.values["changes_max"],
            per=section.get_text("per"),
            columns=section.find_text("columns"),
        )

    def read_kafka(self, section: Section) -> Source:
        """Messages of topics."""
        return KafkaSource(
            servers=section.get_text("servers"),
            topics=tuple(section.values["topics"] or ()),
            start=section.get_text("start"),
            options=self.read_texts("options", section),
            messages_max=section.values["messages_max"],
            columns=section.find_text("columns"),
        )

    def read_spark(self, section: Section) -> Source:
        """A data source of Spark."""
        options = self.read_texts("options", section)
        for name, value in options.items():
            self.check_no_password(value, f"options: {name}", section.position_of("options"))
        format_ = section.get_text("format")
        if format_ == "csv":
            self._check_csv_options(options, section)
        return SparkSource(
            format=format_,
            paths=tuple(self.resolve_path(each) for each in section.values["paths"] or ()),
            options=options,
            columns=section.find_text("columns"),
        )

    def _check_csv_options(self, options: Mapping[str, str], section: Section) -> None:
        known = {name.lower(): name for name in _CSV_OPTIONS}
        for name in options:
            if name.lower() not in known:
                self.findings.add_problem(
                    section.position_of("options"),
                    f"options: CSV has no option '{sanitize_text(name)}'",
                    hint=suggest_similar(name, _CSV_OPTIONS),
                )

    def read_sql(self, section: Section) -> Source:
        """A query over the other sources."""
        return SqlSource(section.get_text("query"))

    def read_python(self, section: Section) -> Source:
        """What a function returns."""
        function = self._read_function(section)
        options = self.read_texts("options", section)
        return PythonSource(function, str(self.folder), options)

    def read_dlt(self, own: str, section: Section) -> Source:
        """A table of dlt; it has the name of the source if it is not given."""
        function = self._read_function(section) if section.has_field("function") else None
        options = self.read_texts("options", section)
        if options and function is None:
            self.findings.add_problem(
                section.position_of("options"), "dlt: 'options' are for a 'function'"
            )
        return DltSource(section.find_text("table") or own, str(self.folder), function, options)

    def _read_function(self, section: Section) -> str:
        function = section.get_text("function")
        if _FUNCTION.fullmatch(function) is None:
            message = f"'{sanitize_text(function)}' is not a function"
            hint = "write it as module:name"
            self.findings.add_problem(section.position_of("function"), message, hint=hint)
        return function

    def resolve_path(self, text: str) -> str:
        """A path from the folder of the definition; addresses and names of secrets stay."""
        if "://" in text or text.startswith("${"):
            return text
        return os.path.normpath(self.folder / text)

    def read_texts(self, name: str, section: Section) -> dict[str, str]:
        """Texts by name; those whose name says that they are secrets must be references."""
        node: yaml.MappingNode | None = section.values[name]
        if node is None:
            return {}
        texts: dict[str, str] = {}
        for key, place, value in iter_named_nodes(node):
            if not isinstance(value, yaml.ScalarNode):
                self.findings.add_problem(place, f"{name}: '{sanitize_text(key)}' expects: text")
                continue
            plain_value = decode_node(value)
            texts[key] = str(value.value) if plain_value is not None else ""
            is_secret = any(word in key.lower() for word in _SECRET_WORDS)
            if is_secret and not find_names(texts[key]):
                message = f"{name}: '{sanitize_text(key)}' holds a secret"
                self.findings.add_problem(
                    place, message, hint=_ENVIRONMENT_HINT, code=_INLINE_SECRET
                )
        return texts

    def check_only_reference(self, name: str, section: Section) -> None:
        """Report a field that spells out a secret."""
        text = section.find_text(name)
        if text is not None and not is_reference(text):
            message = f"'{name}' holds a secret"
            self.findings.add_problem(
                section.position_of(name), message, hint=_ENVIRONMENT_HINT, code=_INLINE_SECRET
            )

    def check_field_password(self, name: str, section: Section) -> None:
        """Report an address in a field that spells out a secret."""
        self.check_no_password(section.get_text(name), name, section.position_of(name))

    def check_no_password(self, address: str, name: str, place: Position) -> None:
        """Report an address that spells out a secret."""
        if contains_password(address):
            message = f"'{name}' holds a password"
            self.findings.add_problem(place, message, hint=_ENVIRONMENT_HINT, code=_INLINE_SECRET)


_BUILDERS: Final[Mapping[str, Callable[[SourceReader, Section], Source]]] = {
    "files": SourceReader.read_files,
    "s3-files": SourceReader.read_files,
    "postgres": SourceReader.read_postgres,
    "http": SourceReader.read_http,
    "graph": SourceReader.read_feed,
    "kafka": SourceReader.read_kafka,
    "spark": SourceReader.read_spark,
    "sql": SourceReader.read_sql,
    "python": SourceReader.read_python,
}
