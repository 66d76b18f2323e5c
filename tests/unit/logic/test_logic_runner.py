"""The runner and the rewriting of expectations, on a session that only takes notes."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from logic.answers import (
    AffectedAnswer,
    AnswerColumn,
    DoneAnswer,
    LinesAnswer,
    LoadedAnswer,
    OutcomeAnswer,
    RowsAnswer,
)
from logic.arms import Request
from logic.bless import Blessing
from logic.case import CaseError, Dialect, LoadMode
from logic.parse import parse_case
from logic.runner import CaseFailure, run_case
from omnigraph.errors import ExecutionError
from omnigraph.lang.lexer import Mode

SETUP = (
    "# issue: none\n--- schema\nnode P { name: String @key }\n"
    '--- seed\n{"type": "P", "data": {"name": "a"}}\n'
)
READ = "--- query\nquery q() { match { $p: P } return { $p.name } }\n"
WRITE = '--- mutate\nquery m() { delete P where name = "a" }\n'
ROWS = '--- expect unordered\n{"p.name": "a"}\n--- expect shape\np.name: String\n'


@dataclass
class NotingArm:
    """An arm whose sessions answer every read with one row and note what they were asked."""

    name: str = "notes"
    notes: list[tuple[object, ...]] = field(default_factory=list)

    def open(self, schema: str, *, mode: Mode) -> NotingArm:
        self.notes.append(("open", schema, mode))
        return self

    def query(self, text: str, request: Request) -> RowsAnswer:
        self.notes.append(("query", request))
        if "refuse" in text:
            raise ExecutionError("refused as asked")
        return RowsAnswer((AnswerColumn("p.name", "String"),), ({"p.name": "a"},))

    def mutate(self, text: str, request: Request) -> AffectedAnswer:
        self.notes.append(("mutate", text, request))
        return AffectedAnswer(1, 0)

    def statement(self, text: str, request: Request) -> RowsAnswer | OutcomeAnswer | DoneAnswer:
        self.notes.append(("statement", text, request))
        return OutcomeAnswer("merged") if "merge" in text else DoneAnswer()

    def load(self, text: str, *, mode: LoadMode, dialect: Dialect, branch: str) -> LoadedAnswer:
        self.notes.append(("load", text, mode, dialect, branch))
        return LoadedAnswer((("P", text.count("\n")),))

    def export(self, *, type_name: str | None, branch: str) -> LinesAnswer:
        self.notes.append(("export", type_name, branch))
        return LinesAnswer(('{"type":"P"}',))

    def restart(self) -> None:
        self.notes.append(("restart",))

    def close(self) -> None:
        self.notes.append(("close",))


def run(text: str) -> list[tuple[object, ...]]:
    arm = NotingArm()
    run_case(parse_case((SETUP + text).encode(), name="case.gqt"), arm, mode=Mode.STRICT)
    return arm.notes[2:-1]


def test_a_case_opens_seeds_and_closes_a_graph() -> None:
    arm = NotingArm()
    run_case(parse_case(SETUP.encode(), name="case.gqt"), arm, mode=Mode.LENIENT)
    assert arm.notes == [
        ("open", "node P { name: String @key }", Mode.LENIENT),
        (
            "load",
            '{"type": "P", "data": {"name": "a"}}\n',
            LoadMode.OVERWRITE,
            Dialect.COMPATIBLE,
            "main",
        ),
        ("close",),
    ]


def test_a_wrong_answer_stops_the_case_and_closes_the_graph() -> None:
    arm = NotingArm()
    text = SETUP + READ + ROWS.replace('"a"', '"b"') + WRITE + "--- expect ok\n"
    with pytest.raises(CaseFailure, match="line 6: rows differ"):
        run_case(parse_case(text.encode(), name="case.gqt"), arm, mode=Mode.STRICT)
    assert [note[0] for note in arm.notes] == ["open", "load", "query", "close"]


def test_steps_carry_their_branch_and_parameters() -> None:
    text = READ.replace("query\n", "query branch: review\n", 1) + '--- params\n{"x": 1}\n' + ROWS
    assert run(text) == [("query", Request("review", {"x": 1}, {}))]


def test_loads_exports_and_restarts_reach_the_session() -> None:
    notes = run(
        "--- load jsonl mode: merge branch: b\n{}\n{}\n--- expect loaded: P=2\n"
        "--- restart\n"
        '--- export type: P\n--- expect ordered\n{"type":"P"}\n'
    )
    assert notes == [
        ("load", "{}\n{}\n", LoadMode.MERGE, Dialect.STRICT, "b"),
        ("restart",),
        ("export", "P", "main"),
    ]


def test_a_generated_load_is_one_load_per_batch() -> None:
    notes = run(
        "--- load generate: v1 seed: 1 mode: append\n"
        "tables: [{kind: node, name: P, rows: 3, commits: 2, "
        "columns: {name: {kind: key, prefix: p, width: 1}}}]\n--- expect ok\n"
    )
    assert [note[1] for note in notes] == [
        '{"type": "P", "data": {"name": "p0"}}\n{"type": "P", "data": {"name": "p1"}}\n',
        '{"type": "P", "data": {"name": "p2"}}\n',
    ]


def test_a_loop_replaces_its_variable_in_parameters_and_expectations() -> None:
    body = READ + '--- params\n{"x": "${v}"}\n' + ROWS.replace('"a"', '"${v}"')
    with pytest.raises(CaseFailure, match="with v = b"):
        run("--- foreach $v a b\n" + body + "--- endloop\n")
    notes = run("--- foreach $v a a\n" + body + "--- endloop\n")
    assert notes == [("query", Request("main", {"x": "a"}, {}))] * 2


def test_a_step_of_settings_holds_from_then_on() -> None:
    notes = run(
        "--- mutate\nset ann_nprobes = 3;\nset traversal_work_limit = 9;\n--- expect ok\n"
        + READ
        + ROWS
        + "--- mutate\nreset ann_nprobes;\n--- expect ok\n"
        + READ
        + ROWS
        + "--- mutate\nreset all;\n--- expect ok\n"
        + READ
        + ROWS
    )
    assert [note[1] for note in notes] == [
        Request(settings={"ann_nprobes": 3, "traversal_work_limit": 9}),
        Request(settings={"traversal_work_limit": 9}),
        Request(),
    ]


def test_a_wrong_settings_line_changes_nothing() -> None:
    notes = run(
        "--- mutate\nset ann_nprobes = 3;\nset nope = 1;\n--- expect error: Q003\n" + READ + ROWS
    )
    assert notes == [("query", Request())]


def test_settings_before_a_declaration_stay_with_their_text() -> None:
    notes = run(
        WRITE.replace("query m", "set engine = v2;\nquery m") + "--- expect ok\n" + READ + ROWS
    )
    assert [note[-1] for note in notes] == [Request(), Request()]


def test_branch_statements_go_to_the_session_as_they_are() -> None:
    notes = run(
        "--- mutate\nbranch create x;\n--- expect ok\n"
        "--- mutate\nbranch merge x\n--- expect outcome: merged\n"
    )
    assert [note[:2] for note in notes] == [
        ("statement", "branch create x;"),
        ("statement", "branch merge x"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        WRITE.replace("--- mutate", "--- query") + ROWS,
        READ.replace("--- query", "--- mutate") + "--- expect ok\n",
        "--- query\nbranch create x\n" + ROWS,
        "--- mutate\nbranch list\n--- expect ok\n",
        "--- mutate branch: x\nbranch create y\n--- expect ok\n",
        "--- mutate\nbranch create y\n--- params\n{}\n--- expect ok\n",
        "--- mutate branch: x\nset engine = v2;\n--- expect ok\n",
        READ + "query r() { match { $p: P } return { $p.name } }\n" + ROWS,
        "--- query\nset engine = v2;\n" + ROWS,
    ],
)
def test_a_text_in_the_wrong_kind_of_step_is_an_error_of_the_file(text: str) -> None:
    with pytest.raises(CaseError):
        run(text)


def test_a_text_with_errors_is_left_to_the_session_to_refuse() -> None:
    notes = run("--- query\nquery refuse( {\n--- expect error: refused as asked\n")
    assert [note[0] for note in notes] == ["query"]


def test_ordered_rows_need_an_order_clause() -> None:
    with pytest.raises(CaseFailure, match="order clause"):
        run(READ + ROWS.replace("unordered", "ordered"))


def test_an_error_is_expected_or_a_failure() -> None:
    refused = READ.replace("query q", "query refuse")
    assert run(refused + "--- expect error: refused as asked\n")
    with pytest.raises(CaseFailure, match="expected success"):
        run(refused + ROWS)
    with pytest.raises(CaseFailure, match="expected an error"):
        run(READ + "--- expect error: refused\n")
    with pytest.raises(CaseFailure, match="other words"):
        run(refused + "--- expect error: other words\n")


def bless(text: str) -> tuple[str, list[str]]:
    blessing = Blessing(SETUP + text)
    case = parse_case((SETUP + text).encode(), name="case.gqt")
    run_case(case, NotingArm(), mode=Mode.STRICT, observe=blessing.observe)
    return blessing.text().removeprefix(SETUP), blessing.problems


def test_blessing_keeps_right_expectations_untouched() -> None:
    text = READ + "\n" + ROWS + "\n" + WRITE + "--- expect affected: nodes=1 edges=0\n"
    assert bless(text) == (text, [])


def test_blessing_rewrites_rows_shapes_lines_and_counts() -> None:
    text = (
        READ
        + '--- expect unordered\n{"old": 1}\n{"old": 2}\n\n--- expect shape\n\n'
        + WRITE
        + "--- expect affected: nodes=9 edges=9\n\n"
        + "--- load jsonl mode: append\n{}\n--- expect loaded:\n\n"
        + "--- export\n--- expect ordered\n"
    )
    blessed, problems = bless(text)
    assert problems == []
    assert blessed == (
        READ
        + '--- expect unordered\n{"p.name": "a"}\n\n--- expect shape\np.name: String\n\n'
        + WRITE
        + "--- expect affected: nodes=1 edges=0\n\n"
        + "--- load jsonl mode: append\n{}\n--- expect loaded: P=1\n\n"
        + '--- export\n--- expect ordered\n{"type":"P"}\n'
    )
    assert bless(blessed) == (blessed, [])


def test_blessing_leaves_errors_to_people() -> None:
    text = READ + "--- expect error: nothing like it\n"
    blessed, problems = bless(text)
    assert blessed == text
    assert len(problems) == 1
