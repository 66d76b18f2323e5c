"""The page of the grammar agrees with the parsers: its words, its examples, and what they build."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from omnigraph.lang.diagnostics import Severity
from omnigraph.query import lint_file
from omnigraph.query.ast import query_declarations, query_expressions
from omnigraph.query.parser import parse_query_file
from omnigraph.query.parser.parse_expressions import _CALLS
from omnigraph.schema import ast as schema_ast
from omnigraph.schema import load_catalog
from omnigraph.schema.schema_parser import parse_schema

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "grammar.md"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_LITERAL = re.compile(r"'([^' ]+)'")
# Rules that are described in words.
_LEXICAL = {"name", "Name", "variable", "integer", "float", "string", "word"}


def test_every_example_of_the_grammar_is_parsed_without_a_diagnostic() -> None:
    for language, text in _examples():
        parsed = parse_schema(text) if language == "pg" else parse_query_file(text)
        assert [str(each) for each in parsed.diagnostics] == [], text


def test_every_query_of_the_grammar_is_valid_for_its_schema() -> None:
    (schema,) = [text for language, text in _examples() if language == "pg"]
    catalog = load_catalog(schema)
    queries = [text for language, text in _examples() if language == "gq" and "query " in text]
    assert len(queries) > 3
    for text in queries:
        found = [] if text.startswith("explain") else lint_file(text, catalog).diagnostics
        assert [str(each) for each in found if each.severity is Severity.ERROR] == []


def test_the_examples_build_every_kind_of_tree_node() -> None:
    built = set(_built_nodes())
    modules = (query_declarations, query_expressions, schema_ast)
    assert {node.__name__ for module in modules for node in _nodes_of(module)} - built == set()


def test_every_literal_of_a_rule_occurs_in_an_example() -> None:
    examples = "\n".join(text for _, text in _examples())
    literals = {each for rule in _rules().values() for each in _LITERAL.findall(rule)}
    assert {each for each in literals if each not in examples} == set()


def test_every_function_of_the_parser_is_in_a_rule() -> None:
    rules = " ".join(_rules().values())
    assert {name for name in _CALLS if f"'{name}'" not in rules} == set()


def test_every_rule_is_used_and_every_name_in_a_rule_is_a_rule() -> None:
    rules = _rules()
    used = {
        name
        for rule, text in rules.items()
        if rule not in _LEXICAL
        for name in re.findall(r"[A-Za-z][A-Za-z-]*", _LITERAL.sub(" ", text))
    }
    assert used - set(rules) == set()
    assert set(rules) - used == {"schema", "file"}


def _examples() -> list[tuple[str, str]]:
    found = _BLOCK.findall(PAGE.read_text())
    return [(language, text) for language, text in found if language in ("pg", "gq")]


def _rules() -> dict[str, str]:
    """The text of each rule by its name; a line without one continues the rule before it."""
    rules: dict[str, str] = {}
    last = ""
    for language, text in _BLOCK.findall(PAGE.read_text()):
        for line in text.splitlines() if language == "ebnf" else ():
            if found := re.match(r"([A-Za-z-]+) +=(.*)", line):
                last, body = found[1], found[2]
                assert last not in rules
                rules[last] = body
            else:
                rules[last] += line
    return rules


def _nodes_of(module: ModuleType) -> Iterator[type]:
    for value in vars(module).values():
        if isinstance(value, type) and dataclasses.is_dataclass(value):
            yield value


def _built_nodes() -> Iterator[str]:
    for language, text in _examples():
        tree = parse_schema(text).schema if language == "pg" else parse_query_file(text).file
        yield from _names_below(tree)


def _names_below(node: object) -> Iterator[str]:
    if isinstance(node, tuple):
        for each in node:
            yield from _names_below(each)
    elif dataclasses.is_dataclass(node):
        yield type(node).__name__
        for field in dataclasses.fields(node):
            yield from _names_below(getattr(node, field.name))
