"""Reads the expectation of a step, and the cursor over sections it is read from."""

from __future__ import annotations

import json
import re

from logic.case import (
    CaseError,
    ExpectAffected,
    Expectation,
    ExpectError,
    ExpectLines,
    ExpectLoaded,
    ExpectOk,
    ExpectOutcome,
    ExpectPage,
    ExpectRows,
    ShapeColumn,
)
from logic.generate import Json
from logic.loops import Substitution
from logic.sections import Section

QUERY_KINDS = frozenset({"rows", "error"})
MUTATE_KINDS = frozenset({"ok", "affected", "outcome", "error"})
LOAD_KINDS = frozenset({"ok", "loaded", "error"})
EXPORT_KINDS = frozenset({"lines", "error"})

_AFFECTED = re.compile(r"expect affected: nodes=([0-9]+) edges=([0-9]+)")
_OUTCOME = re.compile(r"expect outcome: (already_up_to_date|fast_forward|merged)")
_LOADED = re.compile(r"expect loaded:((?: [A-Za-z0-9_]+=[0-9]+)*)")
_ERROR = re.compile(r"expect error: (\S.*)")
_PAGE = re.compile(r"expect page:(?: cursor=(next|none))?(?: total=([0-9]+))?")
_SHAPE_LINE = re.compile(r"(\S+): (\S.*?)(\?)?")
_SHOW = re.compile(r"(?:^|;)\s*show\b")


class SectionReader:
    """The sections of a file, taken one after the other."""

    def __init__(self, sections: list[Section]) -> None:
        self._sections = sections
        self._next = 0
        # Set when the file needs something that is not run here.
        self.skip_reason: str | None = None

    def peek(self) -> Section | None:
        """The next section."""
        return self._sections[self._next] if self._next < len(self._sections) else None

    def take(self) -> Section:
        """The next section, consumed."""
        section = self._sections[self._next]
        self._next += 1
        return section

    def take_if(self, kind: str) -> Section | None:
        """The next section if it is of a kind, consumed."""
        section = self.peek()
        return self.take() if section is not None and section.kind == kind else None


def parse_json_object(text: str, *, line: int) -> dict[str, Json]:
    """The JSON object in a text."""
    try:
        value = json.loads(text)
    except ValueError as failure:
        raise CaseError(f"not JSON: {failure}", line=line) from failure
    if not isinstance(value, dict):
        raise CaseError("expected a JSON object", line=line)
    return value


def read_expectation(
    reader: SectionReader, step: Section, *, kinds: frozenset[str], loop: Substitution | None
) -> Expectation:
    """The expectation of a step that may expect the given kinds."""
    section = reader.take_if("expect")
    if section is None:
        raise CaseError(f"'{step.kind}' needs an expectation", line=step.line)
    if "${" in section.title:
        raise CaseError("'${' is not allowed here", line=section.line)
    expect: Expectation
    if section.title in ("expect ordered", "expect unordered"):
        expect = _rows_or_lines(reader, section, step=step, kinds=kinds, loop=loop)
    else:
        expect = _answer(section)
    kind = _kind(expect)
    if kind not in kinds:
        raise CaseError(f"'{step.kind}' cannot expect '{section.title}'", line=section.line)
    return expect


def _kind(expect: Expectation) -> str:
    return type(expect).__name__.removeprefix("Expect").lower()


def _answer(section: Section) -> Expectation:
    if section.body.strip():
        raise CaseError(f"'{section.title}' takes no body", line=section.line)
    title, place = section.title, section.place
    if title == "expect ok":
        return ExpectOk(place)
    if found := _ERROR.fullmatch(title):
        return ExpectError(found.group(1), place)
    if found := _AFFECTED.fullmatch(title):
        return ExpectAffected(int(found.group(1)), int(found.group(2)), place)
    if found := _OUTCOME.fullmatch(title):
        return ExpectOutcome(found.group(1), place)
    if found := _LOADED.fullmatch(title):
        pairs = (word.split("=") for word in found.group(1).split())
        return ExpectLoaded(tuple(sorted((name, int(count)) for name, count in pairs)), place)
    raise CaseError(f"unknown expectation '{title}'", line=section.line)


def _rows_or_lines(
    reader: SectionReader,
    section: Section,
    *,
    step: Section,
    kinds: frozenset[str],
    loop: Substitution | None,
) -> ExpectRows | ExpectLines:
    _check_rows(section, loop)
    is_ordered = section.title == "expect ordered"
    if "lines" in kinds:
        if not is_ordered:
            raise CaseError("an export is ordered", line=section.line)
        return ExpectLines(section.rows, section.place)
    shape = _shape(reader, section, is_show=bool(_SHOW.search(step.body)))
    plan = reader.take_if("expect") if _next_title(reader) == "expect plan" else None
    if _next_title(reader) == "expect same as v1":
        _refuse_body(reader.take())
    return ExpectRows(
        section.rows,
        is_ordered=is_ordered,
        place=section.place,
        shape=None if shape is None else tuple(_shape_columns(shape, loop)),
        shape_place=None if shape is None else shape.place,
        plan=plan.rows if plan else (),
        page=_page(reader),
    )


def _page(reader: SectionReader) -> ExpectPage:
    if not (_next_title(reader) or "").startswith("expect page"):
        return ExpectPage(None, None)
    section = reader.take()
    _refuse_body(section)
    found = _PAGE.fullmatch(section.title)
    if found is None or section.title == "expect page:":
        raise CaseError(f"malformed section '{section.title}'", line=section.line)
    has_next = None if found[1] is None else found[1] == "next"
    return ExpectPage(has_next, None if found[2] is None else int(found[2]))


def _check_rows(section: Section, loop: Substitution | None) -> None:
    for offset, row in enumerate(section.lines, start=1):
        if not row.strip():
            continue
        line = section.line + offset
        if loop is not None:
            row = loop.apply(row, line=line)  # noqa: PLW2901 - the row as the loop sees it
        elif "${" in row:
            raise CaseError("'${' is not allowed here", line=line)
        parse_json_object(row, line=line)


def _shape(reader: SectionReader, rows: Section, *, is_show: bool) -> Section | None:
    if _next_title(reader) == "expect shape":
        return reader.take()
    if is_show:
        return None
    raise CaseError("a rows expectation needs 'expect shape' after it", line=rows.line)


def _shape_columns(shape: Section, loop: Substitution | None) -> list[ShapeColumn]:
    columns = []
    for row in shape.rows:
        seen = loop.apply(row, line=shape.line) if loop else row
        found = _SHAPE_LINE.fullmatch(row.strip())
        if found is None or "${" in seen:
            raise CaseError(f"expected 'name: Type', found {row!r}", line=shape.line)
        columns.append(ShapeColumn(found.group(1), found.group(2), found.group(3) is not None))
    return columns


def _next_title(reader: SectionReader) -> str | None:
    section = reader.peek()
    return None if section is None else section.title


def _refuse_body(section: Section) -> None:
    if section.body.strip():
        raise CaseError(f"'{section.title}' takes no body", line=section.line)
