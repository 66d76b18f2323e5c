"""Plays the steps of a case on a session and judges every answer.

The session's settings live here: a step of settings lines changes them for the steps that follow.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import assert_never

from logic.answers import Answer, DoneAnswer, FailedAnswer
from logic.arms import MAIN, Arm, Request, Session
from logic.case import (
    Case,
    CaseError,
    Dialect,
    Expectation,
    ExpectRows,
    ExportStep,
    GeneratedLoadStep,
    GeneratedParams,
    GivenParams,
    LoadMode,
    LoadStep,
    Loop,
    MutateStep,
    Params,
    QueryStep,
    RestartStep,
    Step,
)
from logic.generate import Json, Recipe, batches, generated_params
from logic.loops import Substitution
from logic.verdict import problem
from omnigraph.errors import OmnigraphError
from omnigraph.lang.diagnostics import Severity
from omnigraph.lang.lexer import Mode
from omnigraph.query.ast import (
    BranchList,
    Explain,
    File,
    MutationBody,
    ReadBody,
    ResetSetting,
    SetSetting,
    Setting,
    Show,
)
from omnigraph.query.parser import ParsedFile, parse_query_file
from omnigraph.query.query_compiler import parse_file
from omnigraph.query.query_settings import SettingValue

# A parameter that stands for the cursor of the read before.
_CURSOR = "<cursor>"


class CaseFailure(AssertionError):
    """An answer that is not the expected one."""


# Called with every expectation outside of loops and the answer it got.
Observer = Callable[[Expectation, Answer], None]


def run_case(case: Case, arm: Arm, *, mode: Mode, observe: Observer | None = None) -> None:
    """Run a case; raises `CaseFailure` at the first wrong answer.

    An observer gets the answers instead of a verdict.
    """
    session = arm.open(case.schema, mode=mode)
    try:
        _seed(session, case.seed)
        player = _Player(session, mode, observe)
        for step, loop in _unrolled(case):
            player.play(step, loop)
    finally:
        session.close()


def _seed(session: Session, seed: str | Recipe) -> None:
    if isinstance(seed, Recipe):
        for batch in batches(seed):
            session.load(batch, mode=LoadMode.APPEND, dialect=Dialect.COMPATIBLE, branch=MAIN)
    elif seed:
        session.load(seed, mode=LoadMode.OVERWRITE, dialect=Dialect.COMPATIBLE, branch=MAIN)


def _unrolled(case: Case) -> Iterator[tuple[Step, Substitution | None]]:
    for step in case.steps:
        if isinstance(step, Loop):
            for value in step.values:
                loop = Substitution(step.variable, value)
                yield from ((_substituted(inner, loop), loop) for inner in step.steps)
        else:
            yield step, None


def _substituted(step: Step, loop: Substitution) -> Step:
    if isinstance(step, RestartStep):
        return step
    expect = _substituted_expectation(step.expect, loop, line=step.line)
    if isinstance(step, QueryStep | MutateStep) and isinstance(step.params, GivenParams):
        params = GivenParams(loop.apply(step.params.text, line=step.line))
        return replace(step, params=params, expect=expect)
    return replace(step, expect=expect)


def _substituted_expectation(expect: Expectation, loop: Substitution, *, line: int) -> Expectation:
    if not isinstance(expect, ExpectRows):
        return expect
    columns = tuple(
        replace(column, name=loop.apply(column.name, line=line)) for column in expect.shape or ()
    )
    return replace(
        expect,
        lines=tuple(loop.apply(row, line=line) for row in expect.lines),
        shape=None if expect.shape is None else columns,
    )


@dataclass
class _Player:
    """One run of a case: its session and the settings of that session."""

    session: Session
    mode: Mode
    observe: Observer | None
    settings: dict[str, SettingValue] = field(default_factory=dict)
    # Of the last read that had pages.
    cursor: str | None = None

    def play(self, step: Step, loop: Substitution | None) -> None:
        """Run a step and judge its answer."""
        if isinstance(step, RestartStep):
            self.session.restart()
            return
        try:
            answer = self._answer(step)
        except OmnigraphError as error:
            answer = FailedAnswer(error)
        if self.observe is not None and loop is None:
            self.observe(step.expect, answer)
        elif wrong := problem(step.expect, answer):
            iteration = f" with {loop.variable} = {loop.value}" if loop else ""
            raise CaseFailure(f"line {step.line}{iteration}: {wrong}")

    def _answer(
        self, step: QueryStep | MutateStep | LoadStep | GeneratedLoadStep | ExportStep
    ) -> Answer:
        branch = step.branch or MAIN
        match step:
            case QueryStep():
                return self._query(step)
            case MutateStep():
                return self._mutate(step)
            case LoadStep():
                return self.session.load(
                    step.text, mode=step.mode, dialect=step.dialect, branch=branch
                )
            case GeneratedLoadStep():
                for batch in batches(step.recipe):
                    self.session.load(
                        batch, mode=step.mode, dialect=Dialect.COMPATIBLE, branch=branch
                    )
                return DoneAnswer()
            case ExportStep():
                return self.session.export(type_name=step.type_name, branch=branch)
            case _:
                assert_never(step)

    def _query(self, step: QueryStep) -> Answer:
        parsed = parse_query_file(step.text, mode=self.mode)
        request = self._request(step)
        if _has_errors(parsed):
            return self.session.query(step.text, request)
        file = parsed.file
        match file.statement:
            case None:
                _check_declaration(file, ReadBody, line=step.line)
                answer = self.session.query(step.text, request)
                if answer.has_cursor:
                    self.cursor = answer.cursor
                return answer
            case BranchList() | Show() | Explain():
                _refuse_context(step)
                return self.session.statement(step.text, request)
            case _:
                raise CaseError("this statement belongs to a mutate step", line=step.line)

    def _mutate(self, step: MutateStep) -> Answer:
        parsed = parse_query_file(step.text, mode=self.mode)
        request = self._request(step)
        if _has_errors(parsed):
            return self.session.mutate(step.text, request)
        file = parsed.file
        if file.statement is None and not file.queries and file.settings:
            _refuse_context(step)
            return self._change_settings(step.text)
        match file.statement:
            case None:
                _check_declaration(file, MutationBody, line=step.line)
                return self.session.mutate(step.text, request)
            case BranchList() | Show() | Explain():
                raise CaseError("this statement belongs to a query step", line=step.line)
            case _:
                _refuse_context(step)
                return self.session.statement(step.text, request)

    def _request(self, step: QueryStep | MutateStep) -> Request:
        values = _values(step.params)
        if values is not None:
            values = {
                name: self.cursor if value == _CURSOR else value for name, value in values.items()
            }
        return Request(step.branch or MAIN, values, dict(self.settings))

    def _change_settings(self, text: str) -> DoneAnswer:
        for line in parse_file(text, mode=self.mode).file.settings:
            self._change_setting(line)
        return DoneAnswer()

    def _change_setting(self, line: Setting) -> None:
        match line:
            case SetSetting():
                self.settings[line.name.text] = line.value
            case ResetSetting(name=None):
                self.settings.clear()
            case ResetSetting():
                assert line.name is not None
                self.settings.pop(line.name.text, None)
            case _:
                assert_never(line)


def _has_errors(parsed: ParsedFile) -> bool:
    return any(found.severity is Severity.ERROR for found in parsed.diagnostics)


def _check_declaration(file: File, body: type[ReadBody] | type[MutationBody], *, line: int) -> None:
    if len(file.queries) != 1:
        raise CaseError(f"a step holds one declaration, not {len(file.queries)}", line=line)
    if not isinstance(file.queries[0].body, body):
        kind = "mutate" if body is ReadBody else "query"
        raise CaseError(f"this declaration belongs to a {kind} step", line=line)


def _refuse_context(step: QueryStep | MutateStep) -> None:
    if step.branch is not None or step.params is not None:
        raise CaseError("a statement takes neither branch nor parameters", line=step.line)


def _values(params: Params) -> dict[str, Json] | None:
    match params:
        case None:
            return None
        case GivenParams(text):
            values: dict[str, Json] = json.loads(text)
            return values
        case GeneratedParams(seed, generators):
            return generated_params(seed, generators)
        case _:
            assert_never(params)
