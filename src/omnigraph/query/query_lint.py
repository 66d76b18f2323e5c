"""The lint report of a query file and a schema.

A file that cannot be read gives one `Q000` and no results. Otherwise each query is checked on its
own, and the file as a whole for names declared twice and for properties that no update sets.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeGuard

from omnigraph.lang.diagnostic_views import describe_diagnostic
from omnigraph.lang.diagnostics import DIAGNOSTICS_MAX, Collector, Diagnostic, Poll, Severity
from omnigraph.lang.lexer import Mode
from omnigraph.lang.source_text import Source, Span
from omnigraph.query.ast import File, Insert, MutationBody, Query, RowsWrite, Update, WriteVerb
from omnigraph.query.check import check_query
from omnigraph.query.parser import parse_query_file
from omnigraph.query.query_compiler import check_query_names
from omnigraph.query.query_descriptor import Descriptor, describe_query
from omnigraph.query.query_settings import check_settings
from omnigraph.query.typed_reads import CheckedQuery
from omnigraph.query.typed_tree import (
    InsertNode,
    Mutation,
    RecordAction,
    Statement,
    UpdateEach,
    UpdateNodes,
    WriteEach,
)
from omnigraph.query.typed_tree import RowsWrite as RecordsWrite
from omnigraph.schema.catalog import Catalog, NodeType

# Of the properties that an insert may clear.
_NAMES_SHOWN_MAX = 3
_SEVERITIES = (Severity.ERROR, Severity.WARNING, Severity.INFO)


@dataclass(frozen=True, slots=True)
class SchemaSource:
    """Where the schema of a lint run came from: a file by path, or a graph by URI."""

    path: str | None = None
    uri: str | None = None

    def to_json(self) -> dict[str, str]:
        """The source as a document."""
        if self.uri is not None:
            return {"kind": "graph", "uri": self.uri}
        return {"kind": "file"} if self.path is None else {"kind": "file", "path": self.path}


@dataclass(frozen=True, slots=True)
class LintFinding:
    """A diagnostic, and the property and queries it is about, if it is about some."""

    diagnostic: Diagnostic
    type_name: str | None = None
    property: str | None = None
    query_names: tuple[str, ...] = ()
    # The code of the diagnostic itself, where the finding carries the one for the whole file.
    cause: str | None = None

    def to_json(self) -> dict[str, Any]:  # Any: a JSON document
        """The finding as a document."""
        full = describe_diagnostic(self.diagnostic)
        document: dict[str, Any] = {  # Any: a JSON document
            "severity": str(self.diagnostic.severity),
            "code": self.diagnostic.code,
            "message": self.diagnostic.message,
        }
        if self.type_name is not None:
            document["type_name"] = self.type_name
        if self.property is not None:
            document["property"] = self.property
        if self.query_names:
            document["query_names"] = list(self.query_names)
        if self.cause is not None:
            document["cause"] = self.cause
        return document | {
            name: full[name] for name in ("position", "fix", "suggestion") if name in full
        }


@dataclass(frozen=True, slots=True)
class QueryResult:
    """What lint says about one query; `checked` and `operation` are None if it has errors."""

    query: Query
    diagnostics: tuple[Diagnostic, ...]
    checked: CheckedQuery | None
    operation: Descriptor | None

    def to_json(self) -> dict[str, Any]:  # Any: a JSON document
        """The result as a document."""
        is_mutation = isinstance(self.query.body, MutationBody)
        document: dict[str, Any] = {  # Any: a JSON document
            "name": self.query.name.text,
            "kind": "mutation" if is_mutation else "read",
            "status": "error" if self.operation is None else "ok",
        }
        if warnings := self._list_messages(Severity.WARNING):
            document["warnings"] = warnings
        if errors := self._list_messages(Severity.ERROR):
            document["error"] = "\n".join(errors)
        if self.operation is not None:
            document["operation"] = self.operation.to_json()
        return document

    def _list_messages(self, severity: Severity) -> list[str]:
        return [
            f"{found.code}: {found.message}"
            for found in self.diagnostics
            if found.severity is severity
        ]


@dataclass(frozen=True, slots=True)
class LintReport:
    """The report on one file; `diagnostics` has every finding with its place, in source order.

    Of very many findings the first are kept, errors before all others; `dropped` counts the rest.
    """

    source: Source
    schema_source: SchemaSource
    diagnostics: tuple[Diagnostic, ...]
    results: tuple[QueryResult, ...] = ()
    findings: tuple[LintFinding, ...] = ()
    dropped: Mapping[Severity, int] = field(default_factory=dict)

    @property
    def has_errors(self) -> bool:
        """Whether any finding is an error."""
        return self.count(Severity.ERROR) > 0

    @property
    def dropped_count(self) -> int:
        """How many findings are not in the report."""
        return sum(self.dropped.values())

    def count(self, severity: Severity) -> int:
        """How many findings there are of a severity, with those that are not in the report."""
        kept = sum(finding.diagnostic.severity is severity for finding in self.findings)
        return kept + self.dropped.get(severity, 0)

    def to_json(self) -> dict[str, Any]:  # Any: a JSON document
        """The report as a document."""
        document: dict[str, Any] = {  # Any: a JSON document
            "status": "error" if self.has_errors else "ok",
            "schema_source": self.schema_source.to_json(),
            "query_path": self.source.name,
            "queries_processed": len(self.results),
            "errors": self.count(Severity.ERROR),
            "warnings": self.count(Severity.WARNING),
            "infos": self.count(Severity.INFO),
            "results": [result.to_json() for result in self.results],
            "findings": [finding.to_json() for finding in self.findings],
        }
        if self.dropped:
            document["findings_dropped"] = self.dropped_count
        return document


def lint_file(
    text: str | bytes,
    catalog: Catalog,
    *,
    name: str = "query.gq",
    mode: Mode = Mode.LENIENT,
    schema_source: SchemaSource | None = None,
    poll: Poll = lambda: None,
) -> LintReport:
    """Check a query file against a schema; every stage calls `poll` often."""
    parsed = parse_query_file(text, name=name, mode=mode, poll=poll)
    schema_source = schema_source or SchemaSource()
    collector = Collector(parsed.source, parsed.diagnostics)
    _refuse_other_files(parsed.file, collector)
    if collector.has_errors:
        return _report_unreadable(parsed.source, schema_source, collector.list_diagnostics())
    check_settings(parsed.file.settings, collector)
    check_query_names(parsed.file, collector)
    of_query, of_file = _group_by_query(parsed.file.queries, collector.list_diagnostics())
    linted = [
        _lint_query(query, catalog, Collector(parsed.source, of_query[at], poll=poll), mode)
        for at, query in enumerate(parsed.file.queries)
    ]
    findings = [*map(LintFinding, of_file), *_find_unset_properties(linted, parsed.source, catalog)]
    for each in linted:
        names = (each.query.name.text,)
        findings += (LintFinding(found, query_names=names) for found in each.diagnostics)
    kept, dropped = _limit_findings(findings)
    return LintReport(
        parsed.source,
        schema_source,
        diagnostics=_sort_diagnostics(finding.diagnostic for finding in kept),
        results=tuple(linted),
        findings=tuple(sorted(kept, key=_sort_key_of)),
        dropped=dropped,
    )


# ---- the file ----


def _refuse_other_files(file: File, collector: Collector) -> None:
    if file.statement is not None:
        message = "the file holds a statement; only query declarations can be linted"
        collector.report_error("Q000", file.statement.span, message)
    elif file.settings and not file.queries and not collector.has_errors:
        message = "the file holds settings only; query declarations must follow them"
        collector.report_error("Q000", file.settings[0].span, message)


def _report_unreadable(
    source: Source, schema_source: SchemaSource, diagnostics: tuple[Diagnostic, ...]
) -> LintReport:
    first = next(found for found in diagnostics if found.severity is Severity.ERROR)
    place = first.position
    message = f"line {place.line}, column {place.column}: {first.message}"
    finding = LintFinding(replace(first, code="Q000", message=message), cause=first.code)
    return LintReport(source, schema_source, diagnostics, findings=(finding,))


def _group_by_query(
    queries: Sequence[Query], diagnostics: Iterable[Diagnostic]
) -> tuple[dict[int, list[Diagnostic]], list[Diagnostic]]:
    """The diagnostics inside each query, by its index, and those outside all of them."""
    starts = [query.span.start for query in queries]
    of_query: dict[int, list[Diagnostic]] = defaultdict(list)
    of_file: list[Diagnostic] = []
    for found in diagnostics:
        at = bisect_right(starts, found.span.start) - 1
        is_inside = at >= 0 and found.span.start < queries[at].span.end
        (of_query[at] if is_inside else of_file).append(found)
    return of_query, of_file


def _limit_findings(
    findings: Sequence[LintFinding],
) -> tuple[Sequence[LintFinding], Mapping[Severity, int]]:
    """The first findings of a file, errors before all others, and how many more there are."""
    if len(findings) <= DIAGNOSTICS_MAX:
        return findings, {}
    ranked = sorted(
        findings,
        key=lambda each: (
            _SEVERITIES.index(each.diagnostic.severity),
            each.diagnostic.span.start,
        ),
    )
    rest = ranked[DIAGNOSTICS_MAX:]
    return ranked[:DIAGNOSTICS_MAX], Counter(each.diagnostic.severity for each in rest)


def _sort_diagnostics(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    return tuple(
        sorted(set(diagnostics), key=lambda each: (each.span.start, each.code, each.message))
    )


def _sort_key_of(finding: LintFinding) -> tuple[int, str, str, str, int]:
    found = finding.diagnostic
    return (
        _SEVERITIES.index(found.severity),
        finding.type_name or "",
        finding.property or "",
        found.message,
        found.span.start,
    )


# ---- one query ----


def _lint_query(query: Query, catalog: Catalog, collector: Collector, mode: Mode) -> QueryResult:
    checked = check_query(query, catalog, collector, mode=mode)
    if isinstance(query.body, MutationBody):
        _lint_mutation(query, collector)
        if mode is Mode.LENIENT and not collector.has_errors:
            _lint_inserts(query.body, catalog, collector)
    if collector.has_errors:
        checked = None
    operation = None if checked is None else describe_query(checked, catalog)
    return QueryResult(query, collector.list_diagnostics(), checked, operation)


def _lint_mutation(query: Query, collector: Collector) -> None:
    if not query.parameters:
        collector.report_warning(
            "L202",
            query.name.span,
            f"mutation '{query.name.text}' declares no parameters, so every run does the same",
        )


def _lint_inserts(body: MutationBody, catalog: Catalog, collector: Collector) -> None:
    """Inserts that clear properties of an entity that has the same key already."""
    for each in _iter_inserts(body):
        if each.verb is not WriteVerb.INSERT:
            continue
        name = each.type_name.text
        type_ = catalog.nodes.get(name) or catalog.edges.get(name)
        if type_ is None or type_.key is None:
            continue
        given = {assignment.property.text for assignment in each.assignments}
        if cleared := [f"'{name}'" for name in type_.properties if name not in given]:
            more = ", …" if len(cleared) > _NAMES_SHOWN_MAX else ""
            shown = ", ".join(cleared[:_NAMES_SHOWN_MAX]) + more
            collector.report_warning(
                "L320",
                each.type_name.span,
                f"if the {name} exists, this replaces it whole, without {shown}",
                hint="write 'upsert' to keep them, 'create' to refuse, or 'replace' to mean it",
            )


def _iter_inserts(body: MutationBody) -> Iterator[Insert]:
    for each in body.mutations:
        for statement in each.statements if isinstance(each, RowsWrite) else (each,):
            if isinstance(statement, Insert):
                yield statement


# ---- properties that no update sets ----


def _find_unset_properties(
    linted: Iterable[QueryResult], source: Source, catalog: Catalog
) -> Iterator[LintFinding]:
    updates: dict[str, list[tuple[Query, UpdateNodes]]] = defaultdict(list)
    patched: dict[str, set[str]] = defaultdict(set)
    for result in linted:
        if isinstance(result.checked, Mutation):
            for statement in result.checked.statements:
                if isinstance(statement, UpdateNodes):
                    updates[statement.type_name].append((result.query, statement))
                for name, each in _iter_patched(statement):
                    patched[name].add(each)
    for type_name, found in updates.items():
        names = tuple(sorted({query.name.text for query, _ in found}))
        assigned = {each.property for _, update in found for each in update.assignments}
        assigned |= patched[type_name]
        span = _find_update_span(found[0][0], type_name)
        for name in _iter_updatable(catalog.nodes[type_name]):
            if name not in assigned:
                message = f"{type_name}.{name} exists in schema but no update query sets it"
                diagnostic = Diagnostic("L201", Severity.WARNING, message, span, source)
                yield LintFinding(diagnostic, type_name, name, names)


def _iter_patched(statement: Statement) -> Iterator[tuple[str, str]]:
    """The properties, by type, that verbs and records assign to entities which keep others."""
    match statement:
        case InsertNode(name, values, WriteVerb.UPSERT):
            yield from ((name, each.property) for each in values)
        case RecordsWrite(actions=actions):
            for action in actions:
                if isinstance(action, UpdateEach) or _is_upsert(action):
                    yield from ((action.type_name, each.property) for each in action.assignments)


def _is_upsert(action: RecordAction) -> TypeGuard[WriteEach]:
    return isinstance(action, WriteEach) and action.verb is WriteVerb.UPSERT


def _iter_updatable(node: NodeType) -> Iterator[str]:
    key = node.key or ()
    for name, each in node.properties.items():
        if each.type.is_nullable and each.embed is None and name not in key:
            yield name


def _find_update_span(query: Query, type_name: str) -> Span:
    assert isinstance(query.body, MutationBody)
    return next(
        each.type_name.span
        for each in query.body.mutations
        if isinstance(each, Update) and each.type_name.text == type_name
    )
