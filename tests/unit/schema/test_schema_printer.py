"""Tree to text and back, and formatting that loses nothing."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import CompileError
from omnigraph.lang.lexer import lex
from omnigraph.schema import format_schema, parse_schema, print_schema
from omnigraph.schema.ast import (
    Annotation,
    Cardinality,
    Constraint,
    Declaration,
    Edge,
    EnumSyntax,
    ExpressionText,
    Interface,
    ListSyntax,
    Literal,
    Member,
    Name,
    Node,
    Property,
    RangeBounds,
    ScalarSyntax,
    Schema,
    SystemField,
    TypeSyntax,
    VectorSyntax,
)
from omnigraph.schema.property_types import DECLARED_SCALARS

CONSTRAINTS = ("key", "unique", "index", "range")


def names(*texts: str) -> st.SearchStrategy[Name]:
    return st.sampled_from(texts).map(Name)


WORDS = ("a", "node", "edge", "enum", "interface", "implements", "src", "_x9", "camelCase")
words = names(*WORDS, "key", "card")
identifiers = names(*WORDS, "key", "card", "true")
type_names = names("A", "B", "String", "Vector", "Camel_1")
literals = st.one_of(
    st.text(max_size=8).map(lambda text: Literal(text, text)),
    st.sampled_from(["0", "007", "9" * 20]).map(lambda text: Literal(int(text), text)),
    st.sampled_from(["0.50", "1.0", "9" * 400 + ".0"]).map(lambda text: Literal(float(text), text)),
    st.sampled_from([Literal(True, "true"), Literal(False, "false")]),
)
numbers = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False)
)
bounds = st.builds(RangeBounds, st.none() | numbers, numbers) | st.builds(
    RangeBounds, numbers, st.none()
)
system_fields = st.sampled_from(["src", "dst", "id", "Key", "_"]).map(SystemField)
constraints = st.builds(
    Constraint,
    st.sampled_from(CONSTRAINTS).map(Name),
    st.lists(st.one_of(bounds, literals, system_fields, words), min_size=1, max_size=3).map(tuple),
)
# One argument of a check is an expression, which has a spelling of its own.
checks = st.one_of(
    st.tuples(words, st.text(max_size=8).map(lambda text: Literal(text, text))),
    st.sampled_from(
        [(ExpressionText("a > 1", ("a",)),), (ExpressionText("-1 < camelCase", ("camelCase",)),)]
    ),
).map(lambda arguments: Constraint(Name("check"), arguments))
annotation_lists = st.lists(
    st.one_of(
        st.builds(Annotation, names(*WORDS, *CONSTRAINTS)),
        st.builds(
            Annotation,
            names(*WORDS),
            literals | words,
            st.lists(st.tuples(identifiers, literals), max_size=2).map(tuple),
        ),
    ),
    max_size=2,
).map(tuple)
ENUM_VALUES = names("a", "2d", "3-d", "-", "--", "A_b", "12", "1-", "true")
types = st.builds(
    TypeSyntax,
    st.one_of(
        st.builds(ScalarSyntax, st.sampled_from(DECLARED_SCALARS)),
        st.builds(ListSyntax, st.sampled_from(DECLARED_SCALARS)),
        st.builds(VectorSyntax, st.integers(0, 10**12)),
        st.builds(
            EnumSyntax,
            st.lists(ENUM_VALUES, min_size=1, max_size=3).map(tuple),
        ),
    ),
    st.booleans(),
)
properties = st.builds(Property, identifiers, types, annotation_lists)
members: st.SearchStrategy[tuple[Member, ...]] = st.lists(
    properties | constraints | checks, max_size=4
).map(tuple)
declarations: st.SearchStrategy[Declaration] = st.one_of(
    st.builds(Interface, type_names, st.lists(properties, max_size=3).map(tuple)),
    st.builds(
        Node, type_names, annotation_lists, st.lists(type_names, max_size=2).map(tuple), members
    ),
    st.builds(
        Edge,
        type_names,
        type_names,
        type_names,
        st.none()
        | st.builds(Cardinality, st.integers(0, 10**12), st.none() | st.integers(0, 10**12)),
        annotation_lists,
        members,
    ),
)
schemas = st.builds(Schema, st.lists(declarations, max_size=4).map(tuple))

line_comments = st.builds(
    lambda text, end: f"//{text}{end}",
    st.text(st.characters(exclude_characters="\r\n", codec="utf-8"), max_size=6),
    st.sampled_from(["\n", "\r\n", "\r"]),
)
block_comments = st.text("ab *\n\t", max_size=8).map(lambda text: f"/*{text}*/")
gaps = st.lists(st.one_of(st.sampled_from([" ", "\n", "\t"]), line_comments, block_comments)).map(
    lambda parts: "".join(parts) or " "
)


@pytest.mark.slow
@given(schemas)
def test_printing_and_parsing_gives_an_equal_tree(schema: Schema) -> None:
    parsed = parse_schema(print_schema(schema))
    assert parsed.diagnostics == ()
    assert parsed.schema == schema


@pytest.mark.slow
@given(schemas)
def test_printed_text_is_already_formatted(schema: Schema) -> None:
    text = print_schema(schema)
    assert format_schema(text) == text


@pytest.mark.slow
@given(schemas, st.data())
def test_formatting_keeps_the_tree_and_every_comment(schema: Schema, data: st.DataObject) -> None:
    text = spaced_out(print_schema(schema), lambda: data.draw(gaps))
    before = parse_schema(text)
    assert before.schema == schema
    formatted = format_schema(text)
    after = parse_schema(formatted)
    assert after.schema == schema
    assert shown(after.comments) == shown(before.comments)
    assert format_schema(formatted) == formatted


def spaced_out(text: str, gap: Callable[[], str]) -> str:
    """The text with other blanks and with comments wherever a blank stood."""
    pieces = [gap()]
    tokens = lex(parse_schema(text).source).tokens
    for token, following in pairwise(tokens):
        pieces.append(token.text)
        if token.end < following.start:
            pieces.append(gap())
    return "".join(pieces)


def shown(comments: Any) -> list[str]:  # Any: comments are plain tuples here
    return sorted("\n".join(map(str.strip, comment.text.split("\n"))) for comment in comments)


UNTIDY = """// top

/* license
     two */
interface Named{name:String@index} // after


// about
node Author@d("x\\ty")implements Named,Other{ // opens

  // first
  handle: String @key // key


  /* before */ score: F64? /* middle */ @index // tail
  @range(score,0.50..100)

  // last

}
node Tag { /* empty */ }
node Tag2 {  }
edge A: Tag->Tag
// b
edge B: Tag->Tag@card(0..)


edge C: Tag->Tag { }
node N { a:enum(b-c,d)? // c
b: Vector( 3 ) }
// end"""

TIDY = """\
// top

/* license
     two */
interface Named {
  name: String @index
} // after

// about
node Author @d("x\\ty") implements Named, Other { // opens
  // first
  handle: String @key // key

  /* before */
  score: F64? @index /* middle */ // tail
  @range(score, 0.5..100)

  // last
}

node Tag { /* empty */
}

node Tag2 {}
edge A: Tag -> Tag
// b
edge B: Tag -> Tag @card(0..)

edge C: Tag -> Tag

node N {
  a: enum(b-c, d)? // c
  b: Vector(3)
}

// end
"""


def test_formatting_lays_out_a_schema_in_one_style() -> None:
    assert format_schema(UNTIDY) == TIDY


def test_formatting_removes_commas_between_members() -> None:
    text = (
        "node A {\n  a: I32, // one\n  // two\n  b: I32? /* x */,\n  @unique(a, b), c: Date,\n}\n"
    )
    formatted = (
        "node A {\n  a: I32 // one\n  // two\n  b: I32? /* x */\n  @unique(a, b)\n  c: Date\n}\n"
    )
    assert format_schema(text) == formatted
    assert parse_schema(text).schema == parse_schema(formatted).schema


def test_block_comments_move_with_their_block() -> None:
    text = "node A {\n      /* a\n       * b\n   c */\n  x: I32\n}\n"
    assert format_schema(text) == "node A {\n  /* a\n   * b\n  c */\n  x: I32\n}\n"


def test_a_line_comment_ends_only_at_a_line_feed() -> None:
    text = "// a\u2028b\x0bc\nnode A {}\n"
    assert format_schema(text) == text


@pytest.mark.parametrize(
    ("bound", "text"),
    [
        (0.1, "0.1"),
        (1e22, "10000000000000000000000.0"),
        (5.0, "5.0"),
        (1e-7, "0.0000001"),
        (-3, "-3"),
    ],
)
def test_bounds_are_printed_without_exponents(bound: float, text: str) -> None:
    constraint = Constraint(Name("range"), (Name("p"), RangeBounds(bound, None)))
    schema = Schema((Node(Name("A"), (), (), (constraint,)),))
    assert f"@range(p, {text}..)" in print_schema(schema)


def test_an_empty_schema_is_printed_as_nothing() -> None:
    assert print_schema(Schema(())) == ""
    assert format_schema(" \n// only\n\n") == "// only\n"


def test_a_text_with_grammar_errors_is_not_formatted() -> None:
    with pytest.raises(CompileError, match="S001"):
        format_schema("node A { a: I32; }")


def test_a_text_that_breaks_other_rules_is_formatted() -> None:
    assert format_schema("node A{a:Vector(0)}") == "node A {\n  a: Vector(0)\n}\n"
