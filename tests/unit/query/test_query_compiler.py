from __future__ import annotations

import pytest

from omnigraph.errors import CompileError, QueryNotFoundError
from omnigraph.lang.lexer import Mode
from omnigraph.query.ast import Explain
from omnigraph.query.logical_plan import ReadPlan
from omnigraph.query.query_compiler import compile_declaration, compile_query, parse_file
from omnigraph.query.query_lowering import lower_query
from omnigraph.query.rewrites import rewrite
from omnigraph.query.typed_tree import Mutation
from omnigraph.schema import load_catalog

CATALOG = load_catalog("node Person { name: String @key  age: I64? }")
PEOPLE = "query people() { match { $p: Person } return { $p.name } }"
BIRTHDAY = 'query birthday() { update Person set { age: 3 } where name = "a" }'


def test_the_only_declaration_needs_no_name() -> None:
    compiled = compile_query(PEOPLE, CATALOG)
    assert compiled.query.name.text == "people"
    assert isinstance(compiled.plan, ReadPlan)
    assert compiled.plan == rewrite(lower_query(compiled.checked), CATALOG)
    assert compiled.diagnostics == ()


def test_bytes_are_read_as_utf8() -> None:
    text = 'query q() { match { $p: Person { name: "Zoë" } } return { $p.name } }'
    assert compile_query(text.encode(), CATALOG).plan == compile_query(text, CATALOG).plan
    with pytest.raises(CompileError, match="UTF-8"):
        compile_query(b"query \xff", CATALOG)


def test_a_query_is_found_by_name_and_others_are_not_checked() -> None:
    broken = "query broken() { match { $p: Nobody } return { $p } }"
    compiled = compile_query(f"{PEOPLE}\n{broken}\n{BIRTHDAY}", CATALOG, name="birthday")
    assert lower_query(compiled.checked) is compiled.checked
    assert isinstance(compiled.plan, Mutation)


@pytest.mark.parametrize("name", ["people", "birthday"])
def test_a_file_with_two_queries_of_a_name_is_refused(name: str) -> None:
    other = "query people() { match { $p: Person } return { $p.age } }"
    with pytest.raises(CompileError, match="query 'people' is declared twice") as refused:
        compile_query(f"{PEOPLE}\n{BIRTHDAY}\n{other}", CATALOG, name=name)
    assert [each.code for each in refused.value.diagnostics] == ["T106"]


def test_an_unknown_name_is_refused_with_the_closest_one() -> None:
    with pytest.raises(QueryNotFoundError) as caught:
        compile_query(f"{PEOPLE}\n{BIRTHDAY}", CATALOG, name="peple")
    assert caught.value.message == "query 'peple' not found"
    assert caught.value.hint == "did you mean 'people'?"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (f"{PEOPLE}\n{BIRTHDAY}", "the text declares people, birthday"),
        ("", "the text declares no query"),
        ("branch list", "the text is a statement, not a query"),
    ],
)
def test_a_text_without_one_query_needs_a_name(text: str, hint: str) -> None:
    with pytest.raises(QueryNotFoundError) as caught:
        compile_query(text, CATALOG)
    assert caught.value.hint == hint


def test_every_error_of_the_query_is_raised_at_once() -> None:
    with pytest.raises(CompileError) as caught:
        compile_query("query q() { match { $p: Persn  $q: Prson } return { $z.name } }", CATALOG)
    assert [found.code for found in caught.value.diagnostics] == ["T1", "T1", "T6"]


def test_grammar_errors_anywhere_in_the_file_are_raised() -> None:
    with pytest.raises(CompileError) as caught:
        compile_query(f"{PEOPLE}\nquery other {{ }}", CATALOG, name="people")
    assert "Q002" in [found.code for found in caught.value.diagnostics]


def test_a_wrong_settings_line_is_raised() -> None:
    with pytest.raises(CompileError, match="Q003"):
        compile_query(f"set engine = v1;\n{PEOPLE}", CATALOG)


def test_a_shown_setting_must_exist() -> None:
    with pytest.raises(CompileError, match="Q003"):
        parse_file("show enigne;")
    assert parse_file("show engine;").file.statement is not None


def test_settings_lines_come_with_the_query() -> None:
    compiled = compile_query(f"set ann_nprobes = 5;\n{PEOPLE}", CATALOG)
    assert [line.name.text for line in compiled.settings if line.name] == ["ann_nprobes"]


def test_warnings_come_with_the_query_and_strict_raises_them() -> None:
    text = "query q() { match { $p: Person } return { $p.name as null } }"
    assert [found.code for found in compile_query(text, CATALOG).diagnostics] == ["L311"]
    with pytest.raises(CompileError):
        compile_query(text, CATALOG, mode=Mode.STRICT)


def test_an_explained_query_is_compiled_like_any_other() -> None:
    parsed = parse_file(f"explain {PEOPLE}")
    assert isinstance(parsed.file.statement, Explain)
    compiled = compile_declaration(parsed.file.statement.query, parsed, CATALOG)
    assert compiled.plan == compile_query(PEOPLE, CATALOG).plan
    unchanged = compile_declaration(
        parsed.file.statement.query, parsed, CATALOG, rewriting=lambda plan, *_: plan
    )
    assert unchanged.plan == lower_query(compiled.checked)
