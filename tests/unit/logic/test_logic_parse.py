"""The parser of `.gqt` files."""

from __future__ import annotations

from typing import Any

import pytest

from logic.case import (
    CaseError,
    Dialect,
    ExpectAffected,
    ExpectError,
    ExpectLines,
    ExpectLoaded,
    ExpectOk,
    ExpectOutcome,
    ExpectRows,
    ExportStep,
    GeneratedLoadStep,
    GeneratedParams,
    GivenParams,
    LoadMode,
    LoadStep,
    Loop,
    MutateStep,
    QueryStep,
    RestartStep,
    ShapeColumn,
)
from logic.generate import Key, Literal, Recipe
from logic.parse import parse_case

HEADER = "# issue: none\n"
SETUP = HEADER + "--- schema\nnode P { name: String @key }\n--- seed\n"
READ = "--- query\nquery q() { match { $p: P } return { $p.name } }\n"
ROWS = '--- expect unordered\n{"p.name": "a"}\n--- expect shape\np.name: String\n'


def parse(text: str, name: str = "case.gqt") -> Any:  # Any: tests look into every kind of step
    return parse_case(text.encode(), name=name)


def refused(text: str, name: str = "case.gqt") -> str:
    with pytest.raises(CaseError) as caught:
        parse(text, name)
    return str(caught.value)


# ---- headers and setup ----


def test_headers_are_keys_and_values() -> None:
    case = parse("# issue: none\n# notes: one\n# notes: two\n# traversal: csr\n")
    assert case.header.issue is None
    assert case.header.notes == ("one", "two")
    assert case.header.traversal == "csr"
    assert case.steps == ()


def test_a_numbered_issue_needs_red_on_and_a_matching_file_name() -> None:
    text = "# issue: 12\n# red_on: main\n"
    assert parse(text, "issue_12_short.gqt").header.issue == 12
    assert "red_on" in refused("# issue: 12\n", "issue_12_short.gqt")
    assert "issue 12" in refused(text, "issue_13_short.gqt")
    assert "issue 12" in refused(text, "short.gqt")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("#issue: none\n", 1),
        ("# issue:none\n", 1),
        ("# issue: none\n# issue: none\n", 2),
        ("# issue: none\n# nope: 1\n", 2),
        ("# issue: none\nwords\n", 2),
        ("# notes: no issue\n", 1),
        ("# issue: none\n# traversal: fast\n", 1),
    ],
)
def test_a_malformed_header_is_refused_with_its_line(text: str, line: int) -> None:
    assert refused(text).startswith(f"line {line}:")


def test_file_names_are_small_letters_digits_and_underscores() -> None:
    assert "file name" in refused(HEADER, "Case.gqt")
    assert "file name" in refused(HEADER, "a-b.gqt")


def test_bytes_must_be_utf8_with_plain_line_ends() -> None:
    with pytest.raises(CaseError, match="not UTF-8"):
        parse_case(b"# issue: none\n\xff", name="case.gqt")
    with pytest.raises(CaseError, match="line 2: carriage return"):
        parse_case(b"# issue: none\n\r\n", name="case.gqt")


def test_schema_and_seed_come_together() -> None:
    case = parse(SETUP + '{"type": "P", "data": {"name": "a"}}\n\n')
    assert case.schema == "node P { name: String @key }"
    assert case.seed == '{"type": "P", "data": {"name": "a"}}\n'
    assert "needs a seed" in refused(HEADER + "--- schema\nnode P { }\n")
    assert "needs a schema" in refused(HEADER + "--- seed\n")


def test_comments_are_refused_inside_json_lines() -> None:
    assert refused(SETUP + "# comment\n").startswith("line 5:")


def test_embeddings_are_refused() -> None:
    schema = HEADER + "--- schema\nnode P { v: Vector(2) @embed(t) }\n--- seed\n"
    assert "@embed" in refused(schema)
    query = "query q($t: String) { match { $p: P } return { $p.name } order { nearest($p.v, %s) } }"
    text = SETUP + "--- query\n" + query
    assert "provider" in refused(text % '"sea"')
    assert "provider" in refused(text % "$t")


def test_a_generated_seed_is_a_recipe() -> None:
    case = parse(
        HEADER
        + "--- schema\nnode P { name: String @key }\n--- seed generate: v1 seed: 7\n"
        + "tables:\n  - kind: node\n    name: P\n    rows: 3\n    commits: 2\n"
        + "    columns: {name: {kind: key, prefix: p-, width: 3}}\n"
    )
    assert isinstance(case.seed, Recipe)
    assert case.seed.seed == 7
    assert case.seed.tables[0].batch_sizes == (2, 1)
    assert case.seed.tables[0].columns == (("name", Key("p-", 3)),)


# ---- steps ----


def test_a_query_step_has_params_rows_and_shape() -> None:
    case = parse(SETUP + READ + '--- params\n{"x": 1}\n' + ROWS)
    (step,) = case.steps
    assert isinstance(step, QueryStep)
    assert step.text == "query q() { match { $p: P } return { $p.name } }"
    assert step.params == GivenParams('{"x": 1}')
    assert step.branch is None
    assert isinstance(step.expect, ExpectRows)
    assert step.expect.lines == ('{"p.name": "a"}',)
    assert step.expect.is_ordered is False
    assert step.expect.shape == (ShapeColumn("p.name", "String", is_nullable=False),)


def test_shapes_take_lists_vectors_and_question_marks() -> None:
    shape = "--- expect shape\na.b: [String]?\nv: Vector(2)\np.@id: String\n"
    case = parse(SETUP + READ + "--- expect ordered\n" + shape)
    expect = case.steps[0].expect
    assert [(each.name, each.type_name, each.is_nullable) for each in expect.shape] == [
        ("a.b", "[String]", True),
        ("v", "Vector(2)", False),
        ("p.@id", "String", False),
    ]


def test_a_shape_is_mandatory_except_for_show() -> None:
    assert "shape" in refused(SETUP + READ + "--- expect unordered\n")
    case = parse(SETUP + "--- query\nset engine = v2;\nshow engine;\n--- expect unordered\n")
    assert case.steps[0].expect.shape is None


def test_plan_lines_and_a_comparison_with_an_older_engine_may_follow() -> None:
    text = SETUP + READ + ROWS + "--- expect plan\nresult columns [p.name]\n"
    case = parse(text + "--- expect same as v1\n")
    assert case.steps[0].expect.plan == ("result columns [p.name]",)


def test_a_mutate_step_expects_counts_an_outcome_success_or_an_error() -> None:
    mutate = '--- mutate branch: review/x\nquery m() { delete P where name = "a" }\n'
    answers = {
        "affected: nodes=1 edges=2": ExpectAffected,
        "outcome: fast_forward": ExpectOutcome,
        "ok": ExpectOk,
        "error: some text": ExpectError,
    }
    for title, kind in answers.items():
        (step,) = parse(SETUP + mutate + f"--- expect {title}\n").steps
        assert isinstance(step, MutateStep)
        assert step.branch == "review/x"
        assert isinstance(step.expect, kind)


def test_a_load_step_has_a_mode_and_a_dialect() -> None:
    load = "--- load jsonl mode: merge dialect: compatible branch: b\n{}\n\n{}\n"
    (step,) = parse(SETUP + load + "--- expect loaded: P=2 E=1\n").steps
    assert isinstance(step, LoadStep)
    assert (step.mode, step.dialect, step.branch) == (LoadMode.MERGE, Dialect.COMPATIBLE, "b")
    assert step.text == "{}\n{}\n"
    assert isinstance(step.expect, ExpectLoaded)
    assert step.expect.counts == (("E", 1), ("P", 2))


def test_a_load_is_strict_unless_told_otherwise() -> None:
    (step,) = parse(SETUP + "--- load jsonl mode: append\n--- expect ok\n").steps
    assert isinstance(step, LoadStep)
    assert step.dialect is Dialect.STRICT


def test_a_generated_load_step_has_a_recipe() -> None:
    load = (
        "--- load generate: v1 seed: 1 mode: append\n"
        "tables: [{kind: node, name: P, rows: 1, commits: 1, "
        "columns: {name: {kind: literal, value: a}}}]\n--- expect ok\n"
    )
    (step,) = parse(SETUP + load).steps
    assert isinstance(step, GeneratedLoadStep)
    assert step.recipe.tables[0].columns == (("name", Literal("a")),)


def test_an_export_step_expects_lines() -> None:
    export = '--- export type: P branch: b\n--- expect ordered\n{"type": "P"}\n'
    (step,) = parse(SETUP + export).steps
    assert isinstance(step, ExportStep)
    assert (step.type_name, step.branch) == ("P", "b")
    assert isinstance(step.expect, ExpectLines)
    assert step.expect.lines == ('{"type": "P"}',)


def test_a_restart_takes_nothing() -> None:
    (step,) = parse(SETUP + "--- restart\n").steps
    assert isinstance(step, RestartStep)
    assert "no body" in refused(SETUP + "--- restart\nnow\n")


def test_params_may_be_generated() -> None:
    params = "--- params generate: v1 seed: 9\nparams: {x: {kind: literal, value: 1}}\n"
    (step,) = parse(SETUP + READ + params + ROWS).steps
    assert isinstance(step, QueryStep)
    assert step.params == GeneratedParams(9, (("x", Literal(1)),))


@pytest.mark.parametrize(
    "text",
    [
        "--- nope\n",
        "--- expect ok\n",
        "--- query\n" + ROWS,
        READ,
        READ + "--- expect ok\n",
        READ + "--- expect affected: nodes=1 edges=0\n",
        READ + "--- expect error:\n",
        READ + "--- expect error: x\nbody\n",
        READ + "--- expect sorted\n",
        READ + ROWS + ROWS,
        READ + ROWS + "--- params\n{}\n",
        READ + "--- params\n[]\n" + ROWS,
        READ + "--- params\n{}\n--- params\n{}\n" + ROWS,
        READ + "--- expect unordered\nnot json\n--- expect shape\na: String\n",
        READ + "--- expect unordered\n[1]\n--- expect shape\na: String\n",
        READ + "--- expect unordered\n--- expect shape\nno type\n",
        "--- mutate\nquery m() { }\n--- expect unordered\n",
        "--- mutate\nquery m() { }\n--- expect outcome: done\n",
        "--- load jsonl\n--- expect ok\n",
        "--- load jsonl mode: replace\n--- expect ok\n",
        "--- load jsonl mode: append\n--- expect unordered\n",
        "--- load generate: v1 seed: 1 mode: overwrite\n--- expect ok\n",
        f"--- load generate: v1 seed: {2**64} mode: append\ntables: []\n--- expect ok\n",
        "--- export\nbody\n--- expect ordered\n",
        "--- export\n--- expect unordered\n",
        "--- query  branch: x\n",
        "--- schema\nnode Q { }\n",
        "--- seed\n",
        "--- runner\ntimeout_ms: 1\n",
    ],
)
def test_unknown_misplaced_and_malformed_sections_are_refused(text: str) -> None:
    refused(SETUP + text)


# ---- loops ----


def loop(title: str, body: str) -> str:
    return SETUP + f"--- {title}\n{body}--- endloop\n"


LOOPED = (
    READ + '--- params\n{"x": ${i}}\n--- expect unordered\n{"p": ${i}}\n--- expect shape\np: I64\n'
)


def test_a_loop_counts_and_a_foreach_lists() -> None:
    (counted,) = parse(loop("loop $i 0 4", LOOPED)).steps
    assert isinstance(counted, Loop)
    assert counted.values == ("0", "1", "2", "3")
    (listed,) = parse(loop("foreach $i 1 2.5 -3", LOOPED)).steps
    assert isinstance(listed, Loop)
    assert listed.values == ("1", "2.5", "-3")
    assert len(listed.steps) == 1


@pytest.mark.parametrize(
    "text",
    [
        loop("loop $i 3 3", LOOPED),
        loop("loop $i 0 10001", LOOPED),
        loop("loop $i 0 -1", LOOPED),
        loop("foreach $i", LOOPED),
        loop("foreach $i a,b", LOOPED),
        loop("loop $j 0 2", LOOPED),
        loop("loop $i 0 2", "--- loop $j 0 2\n" + LOOPED + "--- endloop\n"),
        loop("loop $i 0 2", "--- seam\nat: x\n" + LOOPED),
        loop("loop $i 0 2", "--- query\nquery ${i}() { }\n" + ROWS),
        loop("loop $i 0 2", READ + "--- expect error: ${i}\n"),
        SETUP + "--- loop $i 0 2\n" + LOOPED,
        SETUP + LOOPED,
        SETUP + "--- endloop\n",
    ],
)
def test_loops_are_bounded_flat_and_replace_only_what_they_may(text: str) -> None:
    refused(text)


# ---- files that are read but not run ----


def test_files_with_seams_or_concurrent_clients_are_skipped() -> None:
    seam = '--- seam\nat: x\n--- mutate\nquery m() { delete P where name = "a" }\n--- expect ok\n'
    assert "seam" in parse(SETUP + seam).skip_reason
    concurrent = "--- concurrent\na: query m() { }\norder: a run x\n--- expect\na: ok\n"
    assert "concurrent" in parse(SETUP + concurrent).skip_reason
    assert "seam" in refused(SETUP + "--- seam\nat: x\n" + READ + ROWS)
    assert "expect" in refused(SETUP + "--- concurrent\na: x\n")


def test_a_runner_section_lists_environments() -> None:
    runner = (
        "--- runner\ntimeout_ms: 5000\nenvironments:\n"
        "  - target: omnigraph-engine\n    storage: local-filesystem\n"
        "  - target: omnigraph-engine-dst\n    storage: in-memory-object-store\n"
        "    seeds: [7, 19]\n"
    )
    case = parse(HEADER + runner)
    assert case.runner.timeout_ms == 5000
    assert case.runner.environments[1].seeds == (7, 19)


@pytest.mark.parametrize(
    "body",
    [
        "timeout_ms: 0\nenvironments: [{target: omnigraph-engine, storage: local-filesystem}]",
        "timeout_ms: 1\nenvironments: []",
        "timeout_ms: 1\nenvironments: [{target: nope, storage: local-filesystem}]",
        "timeout_ms: 1\nenvironments: [{target: omnigraph-engine, storage: nope}]",
        "environments: [{target: omnigraph-engine, storage: local-filesystem, seeds: [1]}]",
        "timeout_ms: 1\nenvironments: [{target: omnigraph-engine-dst, storage: local-filesystem}]",
        "timeout_ms: 1\ntimeout_ms: 1\nenvironments: []",
        "timeout_ms: &a 1\nenvironments: *a",
        "timeout_ms: !!int 1\nenvironments: []",
        "1: 1",
        "[",
    ],
)
def test_a_malformed_runner_section_is_refused(body: str) -> None:
    refused(HEADER + "--- runner\n" + body + "\n")
