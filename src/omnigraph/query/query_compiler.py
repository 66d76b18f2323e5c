"""From the text of a query file to a plan, in one call."""

from __future__ import annotations

from dataclasses import dataclass, replace

from omnigraph.errors import CompileError, QueryNotFoundError
from omnigraph.lang.diagnostics import Collector, Diagnostic, Poll
from omnigraph.lang.lexer import Mode
from omnigraph.lang.spellcheck import suggest_similar
from omnigraph.query.ast import File, Query, Setting, Show
from omnigraph.query.check import check_query
from omnigraph.query.logical_plan import Plan, ReadPlan
from omnigraph.query.parser import ParsedFile, parse_query_file
from omnigraph.query.query_lowering import lower_query
from omnigraph.query.query_settings import check_settings
from omnigraph.query.rewrites import Rewriting, rewrite
from omnigraph.query.rewrites.guard_types import guard_statements
from omnigraph.query.typed_reads import CheckedQuery
from omnigraph.query.typed_tree import Mutation, PatternWrite, TypeGuard
from omnigraph.schema.catalog import Catalog

# A hint that lists more names than this is not read.
_NAMES_SHOWN_MAX = 10


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """A query, ready to run; `diagnostics` are warnings, `settings` the lines of its file.

    `pattern_plans` are the reads of the patterns of a mutation, in the order of its statements.
    """

    query: Query
    checked: CheckedQuery
    plan: Plan
    diagnostics: tuple[Diagnostic, ...]
    settings: tuple[Setting, ...] = ()
    pattern_plans: tuple[ReadPlan, ...] = ()


def compile_query(  # noqa: PLR0913 — one keyword for each decision of the caller
    text: str | bytes,
    catalog: Catalog,
    *,
    name: str | None = None,
    mode: Mode = Mode.LENIENT,
    file_name: str = "query.gq",
    guards: tuple[TypeGuard, ...] = (),
    poll: Poll = lambda: None,
) -> CompiledQuery:
    """Compile one query of a text; a text with one declaration needs no name.

    It reads what `guards` leave of the graph. Raises `CompileError` with every diagnostic of the
    file's grammar and of this query, and `QueryNotFoundError` if the text does not declare it.
    Every stage calls `poll` often: what it raises ends the compilation.
    """
    parsed = parse_file(text, name=file_name, mode=mode, poll=poll)
    query = select_query(parsed.file, name)
    return compile_declaration(query, parsed, catalog, mode=mode, guards=guards, poll=poll)


def parse_file(
    text: str | bytes,
    *,
    name: str = "query.gq",
    mode: Mode = Mode.LENIENT,
    poll: Poll = lambda: None,
) -> ParsedFile:
    """The tree of a text whose grammar, settings and names are right; `CompileError` if not."""
    parsed = parse_query_file(text, name=name, mode=mode, poll=poll)
    collector = Collector(parsed.source, parsed.diagnostics)
    check_settings(parsed.file.settings, collector)
    check_query_names(parsed.file, collector)
    if isinstance(parsed.file.statement, Show):
        check_settings([parsed.file.statement], collector)
    if collector.has_errors:
        raise CompileError(collector.list_diagnostics())
    return replace(parsed, diagnostics=collector.list_diagnostics())


def check_query_names(file: File, collector: Collector) -> None:
    """Report each query whose name an earlier one of the file has."""
    seen: set[str] = set()
    for name in (query.name for query in file.queries):
        if name.text in seen:
            message = f"query '{name.text}' is declared twice"
            collector.report_error("T106", name.span, message, hint="rename or remove one of them")
        seen.add(name.text)


def compile_declaration(  # noqa: PLR0913 — one keyword for each decision of the caller
    query: Query,
    parsed: ParsedFile,
    catalog: Catalog,
    *,
    mode: Mode = Mode.LENIENT,
    rewriting: Rewriting = rewrite,
    guards: tuple[TypeGuard, ...] = (),
    poll: Poll = lambda: None,
) -> CompiledQuery:
    """Compile one declaration of a parsed file, also the one that `explain` is about."""
    own = [
        found
        for found in parsed.diagnostics
        if query.span.start <= found.span.start < query.span.end
    ]
    collector = Collector(parsed.source, own, poll=poll)
    checked = check_query(query, catalog, collector, mode=mode)
    if checked is None:
        raise CompileError(collector.list_diagnostics())

    def plan_query(found: CheckedQuery) -> Plan:
        return rewriting(_guard_plan(lower_query(found, poll), guards), catalog, poll)

    plan = plan_query(checked)
    patterns = [
        plan_query(each.source)
        for each in (plan.statements if isinstance(plan, Mutation) else ())
        if isinstance(each, PatternWrite)
    ]
    return CompiledQuery(
        query,
        checked,
        plan,
        collector.list_diagnostics(),
        parsed.file.settings,
        tuple(each for each in patterns if isinstance(each, ReadPlan)),
    )


def _guard_plan(plan: Plan, guards: tuple[TypeGuard, ...]) -> Plan:
    if not guards:
        return plan
    if isinstance(plan, ReadPlan):
        return replace(plan, guards=guards)
    return guard_statements(plan, guards)


def select_query(file: File, name: str | None) -> Query:
    """The declaration of a name, the first if there are several; or the only one."""
    names = [query.name.text for query in file.queries]
    if name is None and len(names) == 1:
        return file.queries[0]
    if name is None or name not in names:
        close = suggest_similar(name, names) if name else None
        raise QueryNotFoundError(name, hint=close or _suggest_query_name(file, names))
    return file.queries[names.index(name)]


def _suggest_query_name(file: File, names: list[str]) -> str:
    if file.statement is not None:
        return "the text is a statement, not a query"
    if not names:
        return "the text declares no query"
    more = ", …" if len(names) > _NAMES_SHOWN_MAX else ""
    return "the text declares " + ", ".join(names[:_NAMES_SHOWN_MAX]) + more
