from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from omnigraph.cli.views.pipeline_views import PipelinePlan
from omnigraph.pipelines.mapping.mapping_checks import check_mapping
from omnigraph.pipelines.mapping.mapping_sql import build_steps, quote_literal
from omnigraph.pipelines.run.pipeline_inspection import plan_pipeline
from unit.pipelines.definitions import PEOPLE, SCHEMA, catalog, read, with_map, written

PERSON = "handle: login, name: n, level: l"


def _problems(folder: Path, rules: str, *, mode: str = "append") -> list[str]:
    mapped = read(folder, with_map(rules)).targets[0].mapping
    found = check_mapping(mapped, catalog(), mode=mode).problems
    return [f"{each.line}: {each.message}" for each in found]


def test_a_mapping_that_fits_the_schema_has_no_problems(tmp_path: Path) -> None:
    rules = f"""
    nodes:
      - {{type: Person, set: {{{PERSON}, age: {{value: 3}}, embedding: {{embed: n}}}}}}
      - {{type: Note, id: key, set: {{text: {{template: "a {{b}}"}}}}}}
    edges:
      - {{type: knows, from: a, to: b, set: {{since: {{value: 2024-01-02}}}}}}
      - {{type: Serves, from: a, to: {{region: r, account: c}}}}
    """
    assert _problems(tmp_path, rules) == []


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("{type: Persn, set: {a: b}}", "the schema has no node type 'Persn'"),
        ("{type: Knows, set: {a: b}}", "the schema has no node type 'Knows'"),
        (f"{{type: Person, set: {{{PERSON}, agge: x}}}}", "Person has no property 'agge'"),
        ("{type: Person, set: {handle: x}}", "Person: no value is set for name, level"),
        (
            "{type: Person, set: {handle: x, name: n, level: {value: boss}}}",
            "Person.level: 'boss' is not one of junior, senior",
        ),
        (f"{{type: Person, set: {{{PERSON}, age: {{value: x}}}}}}", "Person.age: "),
        (f"{{type: Person, set: {{{PERSON}, age: {{value: 3000000000}}}}}}", "Person.age: "),
        (
            f"{{type: Person, set: {{{PERSON}, age: {{template: '{{a}}'}}}}}}",
            "Person.age: a template gives a text, this is I32?",
        ),
        (
            f"{{type: Person, set: {{{PERSON}, age: {{embed: a}}}}}}",
            "Person.age: an embedding needs a Vector, this is I32?",
        ),
        (
            "{type: Person, set: {handle: x, level: l, name: {value: null}}}",
            "Person.name: it may not be null",
        ),
        (f"{{type: Person, id: x, set: {{{PERSON}}}}}", "Person has a key, which makes its ids"),
    ],
)
def test_what_the_schema_does_not_have_is_told(tmp_path: Path, rule: str, message: str) -> None:
    (told,) = _problems(tmp_path, f"nodes:\n  - {rule}\n")
    assert told.startswith(f"8: {message}")


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("{type: Serves, from: a, to: b}", "the key of Customer has several members"),
        ("{type: Serves, from: a, to: {region: r}}", "the key of Customer needs account too"),
        (
            "{type: Serves, from: a, to: {region: r, account: a, x: y}}",
            "the key of Customer has no member 'x'",
        ),
        ("{type: Knows, from: {embed: a}, to: b}", "the end of an edge is not a vector"),
        ("{type: Nose, from: a, to: b}", "the schema has no edge type 'Nose'"),
    ],
)
def test_the_ends_of_an_edge_must_be_keys(tmp_path: Path, rule: str, message: str) -> None:
    (told,) = _problems(tmp_path, f"edges:\n  - {rule}\n")
    assert message in told


def test_a_rule_becomes_selects_of_spark(tmp_path: Path) -> None:
    rules = """
    nodes:
      - type: Person
        explode: items as item
        chunk: {text: body, words: 4, overlap: 1}
        set:
          handle: lower(item.login)
          name: {template: "Dr. {item.name}"}
          level: {value: senior}
          age: {value: null}
          embedding: {embed: body}
    edges:
      - {type: Serves, from: a, to: {region: r, account: c}}
    """
    mapped = read(tmp_path, with_map(rules)).targets[0].mapping
    person, serves = (build_steps(rule, catalog()) for rule in mapped.rules)
    assert next(step.items[-1] for step in person.expansions) == "explode(items) AS `item`"
    assert {column.name: column.sql for column in person.columns} == {
        "handle": "(lower(item.login))",
        "name": "concat('Dr. ', cast((item.name) AS string))",
        "level": "'senior'",
        "embedding": "(body)",
    }
    assert person.embedded == {"embedding": 4}
    assert [column.item for column in serves.columns] == [
        "cast((a) AS string) AS `from`",
        # Members of a key are in the order of their names.
        (
            "CASE WHEN cast((c) AS string) IS NULL OR cast((r) AS string) IS NULL THEN NULL ELSE "
            "to_json(array(cast((c) AS string), cast((r) AS string))) END AS `to`"
        ),
    ]


@pytest.mark.parametrize(
    ("value", "sql"),
    [
        (None, "NULL"),
        (True, "true"),
        (5, "5L"),
        (2**64 - 1, "18446744073709551615BD"),
        (1.5, "1.5D"),
        (["a", 1], "array('a', 1L)"),
        ("it's \\ a\nline", "'it\\'s \\\\ a\\nline'"),
    ],
)
def test_constants_are_literals_of_sql(value: object, sql: str) -> None:
    assert quote_literal(value) == sql


@pytest.mark.parametrize(
    ("rule", "missing"),
    [
        ("{type: Person, set: {handle: x}}", None),
        ("{type: Note, id: x, set: {}}", None),
        ("{type: Person, set: {name: x}}", "Person: no value is set for handle"),
        # Without an id, every record is a new entity.
        ("{type: Note, set: {}}", "Note: no value is set for text"),
    ],
)
def test_a_merge_needs_what_identifies_an_entity_and_no_more(
    tmp_path: Path, rule: str, missing: str | None
) -> None:
    told = _problems(tmp_path, f"nodes:\n  - {rule}\n", mode="merge")
    assert [each.partition(": ")[2] for each in told] == ([] if missing is None else [missing])


@pytest.mark.parametrize(
    ("mode", "kept", "nulled", "line"),
    [
        ("merge", ["level", "age", "embedding"], [], "      keeps level, age, embedding"),
        ("append", [], ["age", "embedding"], "      null: age, embedding"),
        ("overwrite", [], ["age", "embedding"], "      null: age, embedding"),
    ],
)
def test_a_plan_names_what_becomes_of_properties_that_are_not_mapped(
    tmp_path: Path, mode: str, kept: list[str], nulled: list[str], line: str
) -> None:
    (tmp_path / "company.pg").write_text(SCHEMA)
    text = PEOPLE.replace("company.omni", "{uri: company.omni, schema: company.pg}")
    text = text.replace("    map:", f"    mode: {mode}\n    map:")
    if mode == "merge":
        text = text.replace(", level: {value: senior}", "")
    plan = plan_pipeline(written(tmp_path, text), datetime(2026, 11, 16, tzinfo=UTC))
    (rule,) = plan.to_json()["targets"][0]["types"]
    assert (rule["kept"], rule["nulled"]) == (kept, nulled)
    assert rule["required"] == (["level"] if mode == "merge" else [])
    assert line in list(PipelinePlan(plan).to_lines())
