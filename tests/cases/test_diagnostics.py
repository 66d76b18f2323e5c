"""Runs the `.diag` cases: a text, and the diagnostics it must raise, with their places.

Sections start with `--- `: `schema`, `query`, `from` (an older schema: the case is about the
migration plan; `from reference` plans in that dialect) and `expect`. `schema strict` and
`query strict` compile in strict mode. Each line
of `expect` is code, severity, line:column, the text the diagnostic points at, and the message.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from omnigraph.lang.diagnostic_codes import CODES
from omnigraph.lang.diagnostics import Diagnostic
from omnigraph.lang.lexer import Mode
from omnigraph.query import lint_file
from omnigraph.query.entity_conditions import compile_whole_schema
from omnigraph.schema import CompiledSchema
from omnigraph.schema.migration import PlanDialect, plan_migration
from omnigraph.schema.schema_identity import accept_schema

FOLDER = Path(__file__).parent / "diagnostics"
CASES = sorted(FOLDER.rglob("*.diag"))
_SHOWN_MAX = 40
# Codes that name a change which is planned as a soft drop, or one that other codes report.
RESERVED = {code for code in CODES if "(reserved" in CODES[code].title}
# Ranking a reached variable always works here, so nothing raises the refusal of it.
NEVER_RAISED = RESERVED | {"P001"}


@pytest.mark.parametrize("path", CASES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_a_text_raises_exactly_these_diagnostics(path: Path, bless: bool) -> None:
    text = path.read_text()
    expected = text.partition("--- expect\n")[2].strip().splitlines()
    actual = list(_diagnose(_sections(text)))
    if bless and actual != expected:
        path.write_text(text.partition("--- expect\n")[0] + "\n".join(["--- expect", *actual, ""]))
    else:
        assert actual == expected


def test_every_code_has_a_case_that_raises_it() -> None:
    raised = {
        line.split(" ", 1)[0]
        for path in CASES
        for line in path.read_text().partition("--- expect\n")[2].splitlines()
    }
    assert sorted(set(CODES) - raised - NEVER_RAISED) == []


def _sections(text: str) -> dict[str, str]:
    sections: dict[str, str] = {}
    for part in ("\n" + text).split("\n--- ")[1:]:
        header, _, body = part.partition("\n")
        sections[header.strip()] = body + "\n"
    return sections


def _diagnose(sections: dict[str, str]) -> Iterable[str]:
    schema_mode = Mode.STRICT if "schema strict" in sections else Mode.LENIENT
    schema_text = sections.get("schema strict", sections.get("schema", ""))
    schema = compile_whole_schema(schema_text, mode=schema_mode)
    if "from" in sections:
        yield from _plan_lines(sections["from"], schema, "omnigraph")
    elif "from reference" in sections:
        yield from _plan_lines(sections["from reference"], schema, "reference")
    elif "query" in sections or "query strict" in sections:
        assert schema.catalog is not None, [str(found) for found in schema.diagnostics]
        mode = Mode.STRICT if "query strict" in sections else Mode.LENIENT
        query_text = sections.get("query strict", sections.get("query", ""))
        report = lint_file(query_text, schema.catalog, mode=mode)
        yield from map(_line, report.diagnostics)
    else:
        yield from map(_line, schema.diagnostics)


def _plan_lines(old_text: str, new: CompiledSchema, dialect: PlanDialect) -> Iterable[str]:
    old = compile_whole_schema(old_text)
    assert old.catalog is not None, [str(found) for found in old.diagnostics]
    assert new.catalog is not None, [str(found) for found in new.diagnostics]
    acceptance = accept_schema(old.catalog)
    plan = plan_migration(acceptance.schema, new.catalog, dialect=dialect)
    for finding in (*acceptance.findings, *plan.findings):
        yield f"{finding.code} {finding.severity} {finding.entity} {finding.message}"
    for step in plan.steps:
        yield f"{getattr(step, 'code', None) or '-'} {step}"


def _line(found: Diagnostic) -> str:
    place = found.position
    spanned = found.source.text[found.span.start : found.span.end].replace("\n", "\\n")
    shown = spanned if len(spanned) <= _SHOWN_MAX else spanned[:_SHOWN_MAX] + "…"
    where = f"{place.line}:{place.column} `{shown}`"
    return f"{found.code} {found.severity} {where} {found.message}"
