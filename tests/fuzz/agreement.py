"""A life on the engine and on the model: every answer must be the same."""

from __future__ import annotations

import json
import re
from collections import Counter
from contextlib import nullcontext
from typing import Final, assert_never

from fuzz.guards import write_limits
from fuzz.lives import Delete, Life, Load, Maintain, Step
from fuzz.reads import Ask
from fuzz.small_bounds import small_bounds
from fuzz.world import SCHEMA
from logic.answers import RowsAnswer
from logic.arms import MAIN, Request, Session
from logic.case import Dialect, LoadMode
from logic.compare import canonical_row, rows_problem
from logic.embedded_arm import EmbeddedArm, EmbeddedSession
from logic.guarded_arm import is_comparable, open_limited, without_rows
from logic.model_arms import ARMS as MODEL_ARMS
from logic.model_arms import ModelSession
from model.expressions import is_seen
from omnigraph.errors import CompileError, OmnigraphError
from omnigraph.lang.lexer import Mode
from omnigraph.query.row_limits import compile_guards
from omnigraph.schema import load_catalog

Counts = Counter[str]

CATALOG: Final = load_catalog(SCHEMA)
# The pages of a query that are compared: rows with ties are on the first of them.
PAGES_MAX: Final = 6

# What a random text may have; a run that never had one of them proves nothing about it.
FEATURES: Final = {
    "binding": r"\$\w+: \w+ \{",
    "bounds": r"\w\{\d,\d\}",
    "type set": r"^\$\w+: [(*]",
    "lacking property": r"\$\w+\.\w+\?",
    "type test": r"\$\w+ is (not )?[(A-Z]",
    "undirected": r" <|:<",
    "union": r" \| ",
    "wildcard": r"\*",
    "edge binding": r"\$w\d+:",
    "anonymous": r"\$_",
    "not block": r"^not \{",
    "exists block": r"^exists \{",
    "optional": r"^optional \{",
    "each": r"^each \{",
    "tail of a block": r"^\}( having \{.*\})?( order \{.*\})? limit",
    "null node": r"\$[a-h]\d+ is (not )?null",
    "let": r"^let ",
    "for": r"^for .* in [^(]*$",
    "table": r"^for .*\(edges: ",
    "path": r"^path \$r\d+ = [^*]+$",
    "all paths": r"^path \$r\d+ = all ",
    "block value": r"^let \$\w+ = .*\{$",
    "count block": r"^count \{",
    "aggregate block": r"^\w+\(\S+\) \{",
    "three-valued": r"not \(| or | is null",
    "membership": r" in ",
    "arithmetic": r"\(.* [-+*/] ",
    "function": r"\b(round|coalesce|least|nullif|div|slice|lower|replace|join)\(|case \{",
    "count(*)": r"count\(\*\)",
    "parameter": r"\$p\d",
    "text": r"^(search|match_text|fuzzy)\(",
    "phrase": r"(all_words|phrase|prefix)\(",
    "score value": r"^let \$\w+ = (bm25|nearest)",
    "best of each": r"^\}( having \{.*\})? order \{ (bm25|nearest)",
    "tested tail": r"^\} having \{",
    "metric": r"metric: ",
    "nearest": r"order \{ nearest",
    "bm25": r"order \{ bm25",
    "rrf": r"order \{ rrf",
    "score": r" as s$",
    "group": r" as k\d",
    "aggregate": r" as n\d",
    "bare node": r"^\$\w+ as c",
    "stage": r"^with \{",
    "distinct stage": r"^with distinct",
    "cut stage": r"^with \{[^}]*\}\norder [^\n]*\nlimit",
    "combined": r"^(union|intersect|except)",
    "term in braces": r"^\{$",
    "order": r"^order",
    "limit": r"^limit",
}


class Difference(Exception):
    """The engine does something else than the model."""


class Refused(Exception):
    """A random text that is no query: the generator wrote something the language has not."""


def check(life: Life) -> Counts:
    """Live a life twice; raises the first difference, and counts what was asked."""
    model = MODEL_ARMS[0].open(SCHEMA, mode=Mode.LENIENT)
    engine = EmbeddedArm().open(SCHEMA, mode=Mode.LENIENT)
    counted: Counts = Counter()
    try:
        with small_bounds() if life.is_small else nullcontext():
            for step in life.steps:
                counted[type(step).__name__] += 1
                _check_step(step, model, engine, counted)
    finally:
        engine.close()
    return counted


def _check_step(step: Step, model: ModelSession, engine: EmbeddedSession, counted: Counts) -> None:
    match step:
        case Load(lines):
            for session in (model, engine):
                session.load(lines, mode=LoadMode.MERGE, dialect=Dialect.STRICT, branch=MAIN)
        case Delete(text):
            answers = [session.mutate(text, Request()) for session in (model, engine)]
            if answers[0] != answers[1]:
                raise Difference(f"{text}: {answers}")
        case Maintain(verb):
            _maintain(engine, verb)
        case Ask():
            _ask(step, model, engine, counted)
        case _:
            assert_never(step)


def _maintain(engine: EmbeddedSession, verb: str) -> None:
    match verb:
        case "restart":
            engine.restart()
        case "index":
            engine.graph.branch().ensure_indices()
        case _:
            engine.graph.branch().optimize()


def _ask(ask: Ask, model: ModelSession, engine: EmbeddedSession, counted: Counts) -> None:
    request = Request(params=ask.params)
    expected = _answer(model, ask.text, request)
    if isinstance(expected, CompileError):
        raise Refused(f"{ask.text}\n{expected}")
    try:
        found = _answer(engine, ask.text, request)
    except Exception as failure:
        raise Difference(f"the engine fails: {failure!r}") from failure
    if isinstance(expected, OmnigraphError) or isinstance(found, OmnigraphError):
        if type(expected) is not type(found):
            raise Difference(f"the model: {expected!r}, the engine: {found!r}")
        counted["errors"] += 1
        return
    counted.update(name for name, part in FEATURES.items() if re.search(part, ask.text, re.M))
    counted["rows"] += len(expected.rows)
    counted["empty"] += not expected.rows
    if problem := _problem(ask, model, expected, found):
        raise Difference(problem)
    if is_comparable(ask.text, request):
        _compare_guarded(ask, model, engine, counted)
    if ask.paged is not None:
        _compare_pages(ask.paged, ask, model, engine, counted)


def _compare_guarded(
    ask: Ask, model: ModelSession, engine: EmbeddedSession, counted: Counts
) -> None:
    """The same query of a reader who does not see some nodes: they are not there for him."""
    limits, request = write_limits(ask.text), Request(params=ask.params)
    guards = compile_guards(limits, CATALOG)
    found = engine.answer(open_limited(engine.graph, limits), ask.text, request)
    with without_rows(model, MAIN, lambda node: is_seen(node, guards, {})):
        expected = _answer(model, ask.text, request)
        if isinstance(expected, OmnigraphError) or isinstance(found, OmnigraphError):
            if type(expected) is not type(found):
                raise Difference(f"under {limits}: {expected!r}, the engine: {found!r}")
            return
        counted["guarded"] += 1
        if problem := _problem(ask, model, expected, found.rows):
            raise Difference(f"under {limits}: {problem}")


def _compare_pages(text: str, ask: Ask, model: Session, engine: Session, counted: Counts) -> None:
    """All pages of a query, of which each session follows its own cursors."""
    cursors: list[str | None] = [None, None]
    for _ in range(PAGES_MAX):
        counted["pages"] += 1
        expected, found = (
            session.query(text, Request(params={**ask.params, "page": cursor}))
            for session, cursor in zip((model, engine), cursors, strict=True)
        )
        if problem := _problem(ask, model, expected, found):
            raise Difference(f"{problem}\nof the pages of {text}")
        cursors = [expected.cursor, found.cursor]
        if expected.total != found.total or cursors.count(None) == 1:
            raise Difference(f"{expected}\nbut {found}\nof the pages of {text}")
        if None in cursors:
            return


def _answer(session: Session, text: str, request: Request) -> RowsAnswer | OmnigraphError:
    try:
        return session.query(text, request)
    except OmnigraphError as error:
        return error


def _problem(ask: Ask, model: Session, expected: RowsAnswer, found: RowsAnswer) -> str | None:
    if expected.columns != found.columns:
        return f"columns {found.columns}, not {expected.columns}"
    if ask.unlimited is not None:
        return _subset_problem(ask, model, found)
    lines = [json.dumps(row) for row in expected.rows]
    return rows_problem(lines, found, is_ordered=expected.is_ordered, shape=())


def _subset_problem(ask: Ask, model: Session, found: RowsAnswer) -> str | None:
    """What is wrong with rows of which any so many would do."""
    assert ask.unlimited is not None
    assert ask.limit is not None
    every = model.query(ask.unlimited, Request(params=ask.params)).rows
    if len(found.rows) != min(ask.limit, len(every)):
        return f"{len(found.rows)} rows, not {ask.limit} of {len(every)}"
    allowed, shown = (
        Counter(canonical_row(json.dumps(row)) for row in rows) for rows in (every, found.rows)
    )
    return f"not among the rows: {shown - allowed}" if shown - allowed else None
