from __future__ import annotations

from random import Random
from typing import Any

import pytest

from omnigraph.lang.lexer import Mode
from omnigraph.query.query_lint import LintReport, SchemaSource, lint_file
from omnigraph.schema import load_catalog
from omnigraph.schema.catalog import Catalog

CATALOG = load_catalog("""
node Person {
  name: String @key
  email: String?
  age: I64?
  city: String
  bio: String?
  vec: Vector(3)? @embed(bio)
}
edge Knows: Person -> Person { since: Date? }
""")
PEOPLE = "query people() { match { $p: Person } return { $p.name } }"
MOVE = "query move($n: String) { update Person set { city: $n } where name = $n }"
GROW = "query grow($n: String, $a: I64) { update Person set { age: $a } where name = $n }"


def lint(text: str, *, mode: Mode = Mode.LENIENT) -> LintReport:
    return lint_file(text, CATALOG, mode=mode)


def document(text: str, *, mode: Mode = Mode.LENIENT) -> dict[str, Any]:
    return lint(text, mode=mode).to_json()


def test_a_clean_file_gives_the_whole_document() -> None:
    report = lint_file(
        PEOPLE, CATALOG, name="people.gq", schema_source=SchemaSource(path="people.pg")
    )
    assert report.to_json() == {
        "status": "ok",
        "schema_source": {"kind": "file", "path": "people.pg"},
        "query_path": "people.gq",
        "queries_processed": 1,
        "errors": 0,
        "warnings": 0,
        "infos": 0,
        "results": [
            {
                "name": "people",
                "kind": "read",
                "status": "ok",
                "operation": {
                    "result": [{"name": "name", "kind": "string", "nullable": False}],
                    "reads": [{"kind": "node", "type_name": "Person"}],
                    "writes": [],
                },
            }
        ],
        "findings": [],
    }
    assert not report.has_errors
    assert SchemaSource(uri="s3://g").to_json() == {"kind": "graph", "uri": "s3://g"}


def test_an_unreadable_file_gives_one_q000_and_no_results() -> None:
    found = document(f"{PEOPLE}\nquery broken( {{\nquery other {{ }}")
    assert (found["status"], found["errors"], found["queries_processed"]) == ("error", 1, 0)
    assert found["results"] == []
    (finding,) = found["findings"]
    assert finding["code"] == "Q000"
    assert finding["message"].startswith("line 2, column 15: ")
    assert finding["position"]["line"] == 2


def test_the_diagnostics_of_an_unreadable_file_are_those_of_the_parser() -> None:
    report = lint("query a {\nquery b {")
    assert {found.code for found in report.diagnostics} >= {"Q002"}
    assert "Q000" not in {found.code for found in report.diagnostics}


def test_files_of_statements_or_settings_are_refused() -> None:
    for text in ("branch list", f"explain {PEOPLE}", "show all;", "set ann_nprobes = 3;"):
        report = lint(text)
        assert [found.code for found in report.diagnostics] == ["Q000"], text
        assert report.to_json()["errors"] == 1


def test_a_bad_settings_line_does_not_hide_the_queries() -> None:
    found = document(f"set engine = v1;\n{PEOPLE}")
    assert [finding["code"] for finding in found["findings"]] == ["Q003"]
    assert found["queries_processed"] == 1
    assert found["status"] == "error"


def test_each_query_has_its_own_status() -> None:
    found = document(
        f"{PEOPLE}\nquery bad() {{ match {{ $p: Persn $q: Prson }} return {{ $p }} }}\n{MOVE}"
    )
    assert [(each["name"], each["kind"], each["status"]) for each in found["results"]] == [
        ("people", "read", "ok"),
        ("bad", "read", "error"),
        ("move", "mutation", "ok"),
    ]
    bad = found["results"][1]
    assert bad["error"].splitlines() == [
        "T1: unknown node type 'Persn'",
        "T1: unknown node type 'Prson'",
    ]
    assert "operation" not in bad
    assert found["errors"] == 2
    assert found["status"] == "error"


def test_properties_that_no_update_sets_are_named_once_with_all_queries() -> None:
    found = document(f"{MOVE}\n{GROW}")
    assert [
        (each["type_name"], each["property"], each["query_names"]) for each in found["findings"]
    ] == [("Person", "bio", ["grow", "move"]), ("Person", "email", ["grow", "move"])]
    assert found["findings"][1]["message"] == (
        "Person.email exists in schema but no update query sets it"
    )
    assert (found["status"], found["warnings"]) == ("ok", 2)


def test_an_update_with_errors_counts_for_nothing() -> None:
    broken = "query b($n: String) { update Person set { email: 3 } where name = $n }"
    codes = {each["code"] for each in document(broken)["findings"]}
    assert "L201" not in codes
    names = [each["property"] for each in document(f"{MOVE}\n{broken}")["findings"][1:]]
    assert names == ["age", "bio", "email"]


def test_a_mutation_without_parameters_is_warned_about_and_a_read_is_not() -> None:
    found = document('query wipe() { delete Person where name = "x" }\n' + PEOPLE)
    assert [each["code"] for each in found["findings"]] == ["L202"]
    assert found["results"][0]["warnings"] == [
        "L202: mutation 'wipe' declares no parameters, so every run does the same"
    ]
    assert "warnings" not in found["results"][1]


@pytest.mark.parametrize("mode", Mode)
def test_a_name_declared_twice_is_refused(mode: Mode) -> None:
    found = document(f"{PEOPLE}\n{PEOPLE}", mode=mode)
    (finding,) = found["findings"]
    assert (finding["severity"], finding["code"]) == ("error", "T106")
    assert finding["position"]["line"] == 2
    assert [each["status"] for each in found["results"]] == ["ok", "error"]


def test_warnings_of_the_compiler_are_findings_of_their_query() -> None:
    found = document("query q() { match { $p: Person } return { $p.name as null } }")
    assert [(each["code"], each["query_names"]) for each in found["findings"]] == [("L311", ["q"])]
    assert found["status"] == "ok"
    assert len(found["results"][0]["warnings"]) == 1


def test_findings_are_sorted_by_severity_type_property_and_message() -> None:
    found = document(
        'query z() { update Person set { city: "x" } where name = "a" }\n'
        "query b() { match { $p: Zzz } return { $p } }\n"
        "query a() { match { $p: Aaa } return { $p } }"
    )
    assert [each["code"] for each in found["findings"]] == [
        "T1",
        "T1",
        "L202",
        "L201",
        "L201",
        "L201",
    ]
    assert [each["message"][-5:] for each in found["findings"][:2]] == ["'Aaa'", "'Zzz'"]
    assert [each.get("property") for each in found["findings"][3:]] == ["age", "bio", "email"]


# ---- a large file ----


def large_schema(random: Random) -> str:
    nodes = [
        f"node N{number} {{ name: String @key  size: I64?  note: String?  day: Date? }}"
        for number in range(17)
    ]
    edges = [
        f"edge E{number}: N{random.randrange(17)} -> N{random.randrange(17)} {{ w: F64? }}"
        for number in range(67)
    ]
    return "\n".join([*nodes, *edges])


def large_file(random: Random, catalog: Catalog, *, queries: int) -> str:
    return "\n\n".join(
        _read(random, catalog, f"q{number}")
        if random.random() < 0.8
        else _mutation(random, f"q{number}")
        for number in range(queries)
    )


def _read(random: Random, catalog: Catalog, name: str) -> str:
    start = random.randrange(17)
    clauses = [f"$v0: N{start} {{ note: $n }}"]
    type_name, last = f"N{start}", 0
    for _ in range(random.randrange(6)):
        leaving = [edge for edge in catalog.edges.values() if edge.source == type_name]
        if not leaving:
            break
        edge = random.choice(leaving)
        spelled = edge.name[0].lower() + edge.name[1:]
        clauses.append(f"$v{last} $w{last}:{spelled} $v{last + 1}  $w{last}.w > 0.5")
        clauses.append(f"$v{last + 1}.size > {random.randrange(9)} or $v{last + 1}.day is null")
        clauses.append(f"not {{ $v{last} {spelled} $x  $x.note contains $n }}")
        type_name, last = edge.target, last + 1
    body = "\n    ".join(clauses)
    return (
        f"query {name}($n: String) {{\n  match {{\n    {body}\n  }}\n"
        f"  return {{ $v0.name, count($v{last}) as n, max($v{last}.day) as latest }}\n"
        f"  order {{ n desc }}\n  limit {random.randrange(1, 99)}\n}}"
    )


def _mutation(random: Random, name: str) -> str:
    node = f"N{random.randrange(17)}"
    written = random.choice(
        [
            f"create {node} {{ name: $n, size: 3, note: $n }}",
            f"update {node} set {{ size: 3, note: $n, day: $d }} where name = $n",
            f"delete {node} where name = $n or size is null",
        ]
    )
    return f"query {name}($n: String, $d: Date?) {{\n  {written}\n}}"


@pytest.mark.slow
def test_a_thousand_queries_over_a_large_schema_are_linted() -> None:
    random = Random(7)
    catalog = load_catalog(large_schema(random))
    report = lint_file(large_file(random, catalog, queries=1000), catalog)
    assert [str(found) for found in report.diagnostics] == []
    assert report.to_json()["queries_processed"] == 1000


def test_the_findings_of_a_file_are_bounded_and_all_of_them_are_counted() -> None:
    warnings = [
        f'query w{at}() {{ create Person {{ name: "n", city: "c" }} }}' for at in range(150)
    ]
    errors = [f"query e{at}() {{ match {{ $p: Nobody }} return {{ $p }} }}" for at in range(150)]
    report = lint("\n".join([*warnings, *errors]))
    assert len(report.diagnostics) == len(report.findings) == 200
    assert [found.code for found in report.diagnostics] == ["L202"] * 50 + ["T1"] * 150
    assert report.diagnostics[0].position.line == 1
    assert report.dropped_count == 100
    written = report.to_json()
    assert (written["errors"], written["warnings"], written["findings_dropped"]) == (150, 150, 100)
    assert len(written["findings"]) == 200
    assert len(written["results"]) == 300


def test_a_small_report_drops_nothing() -> None:
    report = lint("query q() { match { $p: Nobody } return { $p } }")
    assert report.dropped_count == 0
    assert "findings_dropped" not in report.to_json()
