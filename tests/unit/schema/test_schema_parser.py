"""Text to tree: what is read, where errors are, and how reading goes on after them."""

from __future__ import annotations

import random

import pytest

from omnigraph.errors import CompileError
from omnigraph.lang.diagnostics import Severity
from omnigraph.schema import compile_schema, format_schema, parse_schema
from omnigraph.schema.ast import (
    Annotation,
    Cardinality,
    Constraint,
    Edge,
    EnumSyntax,
    Interface,
    ListSyntax,
    Literal,
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
from omnigraph.schema.property_types import Scalar

SAMPLES = (
    'interface N { name: String @index }\nnode A @d("x") implements N { k: String? @key }',
    'node B { v: Vector(8)? @embed(t, model="m")  t: [I32]  @range(n, -0.5..3)  n: F64 }',
    'edge W: A -> B @card(0..2) { role: enum(a-b, 2c)? @unique(src, @dst) @check(r, "^a") }',
    "/* c */ node A {} // d\nedge E: A -> A { since: Date  @key(@src, @dst, since) }",
)
MUTATED_INPUTS = 25_000
SEEDS = 10


def node_with(members: str) -> Node:
    parsed = parse_schema(f"node A {{ {members} }}")
    assert parsed.diagnostics == ()
    (declaration,) = parsed.schema.declarations
    assert isinstance(declaration, Node)
    return declaration


def first_property(members: str) -> Property:
    found = node_with(members).members[0]
    assert isinstance(found, Property)
    return found


def first_constraint(members: str) -> Constraint:
    found = node_with(members).members[0]
    assert isinstance(found, Constraint)
    return found


def test_an_empty_file_is_a_schema_without_types() -> None:
    parsed = parse_schema("")
    assert parsed.schema == Schema(())
    assert parsed.diagnostics == ()


def test_declarations_keep_every_part_in_source_order() -> None:
    parsed = parse_schema(
        'interface N { a: I32 }\nnode A @d("x") @e(y, z=1) implements N, M { b: I32  @key(b) }\n'
        "edge E: A -> A @card(1..) @f { }"
    )
    assert parsed.diagnostics == ()
    i32 = TypeSyntax(ScalarSyntax(Scalar.I32), False)
    assert parsed.schema == Schema(
        (
            Interface(Name("N"), (Property(Name("a"), i32),)),
            Node(
                Name("A"),
                (
                    Annotation(Name("d"), Literal("x", "x")),
                    Annotation(Name("e"), Name("y"), ((Name("z"), Literal(1, "1")),)),
                ),
                (Name("N"), Name("M")),
                (Property(Name("b"), i32), Constraint(Name("key"), (Name("b"),))),
            ),
            Edge(
                Name("E"), Name("A"), Name("A"), Cardinality(1, None), (Annotation(Name("f")),), ()
            ),
        )
    )


@pytest.mark.parametrize(
    ("written", "core"),
    [
        ("String", ScalarSyntax(Scalar.STRING)),
        ("DateTime", ScalarSyntax(Scalar.DATETIME)),
        ("[U64]", ListSyntax(Scalar.U64)),
        ("Vector( 4 )", VectorSyntax(4)),
        ("enum(2d, 3-d, x_y, -)", EnumSyntax(tuple(map(Name, ("2d", "3-d", "x_y", "-"))))),
        ("enum ( a )", EnumSyntax((Name("a"),))),
    ],
)
@pytest.mark.parametrize("is_nullable", [True, False])
def test_a_type_is_read_as_written(
    written: str, core: ScalarSyntax | ListSyntax | VectorSyntax | EnumSyntax, is_nullable: bool
) -> None:
    found = first_property(f"p: {written}{'?' if is_nullable else ''}").type
    assert found == TypeSyntax(core, is_nullable)


@pytest.mark.parametrize("blank", [" ", "/* - */", "\n"])
def test_the_pieces_of_an_enum_value_are_not_separated(blank: str) -> None:
    parsed = parse_schema(f"node A {{ p: enum(a{blank}-b) }}")
    assert [found.message for found in parsed.diagnostics] == ["expected ',' or ')', found '-'"]


@pytest.mark.parametrize("word", ["node", "edge", "interface", "enum", "implements", "true"])
def test_keywords_are_property_names_too(word: str) -> None:
    parsed = parse_schema(f"node A {{\n  {word}: String\n  {word}s: I32 @unique({word}s)\n}}")
    assert parsed.diagnostics == ()
    (node,) = parsed.schema.declarations
    assert isinstance(node, Node)
    assert [member.name.text for member in node.members] == [word, f"{word}s", "unique"]


@pytest.mark.parametrize(
    ("written", "low", "high"),
    [
        ("-5..5", -5, 5),
        ("-0.5..", -0.5, None),
        ("..10", None, 10),
        (" 1.5 .. 2 ", 1.5, 2),
        ("-9223372036854775808..9223372036854775807", -(2**63), 2**63 - 1),
        ("0..9223372036854775808", 0, float(2**63)),
    ],
)
def test_bounds_are_integers_when_they_fit_64_bits(
    written: str, low: float | None, high: float | None
) -> None:
    bounds = first_constraint(f"@range(t, {written})").arguments[1]
    assert isinstance(bounds, RangeBounds)
    assert (bounds.low, bounds.high) == (low, high)
    assert [type(bounds.low), type(bounds.high)] == [type(low), type(high)]


def test_a_constraint_after_a_property_belongs_to_the_type() -> None:
    members = node_with("email: String @pii @unique(email) @index (email)  key: I32 @key").members
    assert [type(member).__name__ for member in members] == [
        "Property",
        "Constraint",
        "Constraint",
        "Property",
    ]
    assert isinstance(members[0], Property)
    assert [found.name.text for found in members[0].annotations] == ["pii"]


def test_ends_and_literals_are_constraint_arguments() -> None:
    assert first_constraint('@key(@src, dst, "x", 1, 2.5, true, 1..2)').arguments == (
        SystemField("src"),
        Name("dst"),
        Literal("x", "x"),
        Literal(1, "1"),
        Literal(2.5, "2.5"),
        Literal(True, "true"),
        RangeBounds(1, 2),
    )


def test_a_string_is_decoded_and_may_span_lines() -> None:
    found = first_property('p: String @d("a\\tb\\"\\\\\\n\\r\nc")').annotations[0].value
    assert found == Literal('a\tb"\\\n\r\nc', 'a\tb"\\\n\r\nc')


def test_spans_cover_what_was_written() -> None:
    text = 'node A @d("x") { a: enum(b-c, d)? @e(f)\n @range(a, -1 .. 2) }\nedge E: A->A@card(0..1)'
    parsed = parse_schema(text)
    node, edge = parsed.schema.declarations
    assert isinstance(node, Node)
    assert isinstance(edge, Edge)
    assert edge.cardinality is not None
    declared, constraint = node.members
    assert isinstance(declared, Property)
    assert isinstance(declared.type.core, EnumSyntax)
    assert isinstance(constraint, Constraint)
    spans = [
        node.span,
        node.annotations[0].span,
        declared.span,
        declared.type.span,
        declared.type.core.values[0].span,
        constraint.span,
        constraint.arguments[1].span,
        edge.span,
        edge.cardinality.span,
    ]
    assert [text[span.start : span.end] for span in spans] == [
        text.partition("\n")[0] + "\n @range(a, -1 .. 2) }",
        '@d("x")',
        "a: enum(b-c, d)? @e(f)",
        "enum(b-c, d)?",
        "b-c",
        "@range(a, -1 .. 2)",
        "-1 .. 2",
        "edge E: A->A@card(0..1)",
        "@card(0..1)",
    ]


def test_comments_are_kept_beside_the_tree() -> None:
    parsed = parse_schema("// a\nnode A { /* b /* c */ }")
    assert parsed.diagnostics == ()
    assert [comment.text for comment in parsed.comments] == ["// a", "/* b /* c */"]


def test_a_byte_order_mark_is_not_part_of_the_text() -> None:
    assert parse_schema("\ufeffnode A {}".encode()).diagnostics == ()
    assert parse_schema("\ufeffnode A {}").diagnostics == ()


@pytest.mark.parametrize("text", ["node", "node A", "node A {", "node A { a: }", "edge E", "}"])
def test_a_grammar_error_has_a_byte_span(text: str) -> None:
    diagnostics = parse_schema(text).diagnostics
    assert diagnostics
    for found in diagnostics:
        assert found.code == "S001"
        # Only at the end of the text is there nothing to point at.
        assert found.span.start < found.span.end <= len(text) or found.span.start == len(text)


def test_bytes_that_are_not_utf_8_are_refused_where_they_stand() -> None:
    (found,) = compile_schema(b"node A {}\n// \xc3\xa9 \xff\nnode A {}").diagnostics
    assert (found.code, found.position.line, found.position.column) == ("S001", 2, 6)
    assert "not UTF-8" in found.message


def test_half_a_surrogate_pair_is_refused() -> None:
    (found,) = compile_schema('node A @d("\ud800") {}').diagnostics
    assert (found.code, found.position.column) == ("S001", 12)


@pytest.mark.parametrize("opener", ["[", "(", "{", "@key(", "node A {", "@", "-", ".."])
def test_deep_nesting_ends_in_diagnostics(opener: str) -> None:
    compiled = compile_schema("node A { a: " + opener * 5_000)
    assert compiled.catalog is None
    assert compiled.diagnostics


TEN_MEGABYTES = 10_000_000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "piece", "after", "codes"),
    [
        ("/*", "x", "*/", set()),
        ("/*", "x", "", {"S001"}),
        ('node A @d("', "\\n", '") {}', set()),
        ('node A @d("', "\\n", "", {"S001"}),
        ("node A { ", "x", ": I32 }", set()),
        ("node A { a: Vector(", "9", ") }", {"S001"}),
        ("node A { a: F64 @range(a, 0..", "9", ".5) }", {"S001"}),
        ('node A { a: String @check(a, "', "(", '") }', {"S020"}),
        ("", " ", "", set()),
    ],
)
def test_a_file_of_ten_megabytes_is_read(
    before: str, piece: str, after: str, codes: set[str]
) -> None:
    compiled = compile_schema(before + piece * (TEN_MEGABYTES // len(piece)) + after)
    assert {found.code for found in compiled.diagnostics} == codes


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["/**/", "/* a\n */", "//\n"])
def test_a_megabyte_of_comments_takes_linear_time(piece: str) -> None:
    text = "node A {" + piece * (1_000_000 // len(piece)) + "}"
    assert compile_schema(text).diagnostics == ()
    assert format_schema(text).count(piece[:2]) == 1_000_000 // len(piece)


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, SEEDS))]
)
def test_any_text_ends_in_diagnostics(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(MUTATED_INPUTS // SEEDS):
        text = mutated(chance.choice(SAMPLES).encode(), chance)
        compiled = compile_schema(text)
        severities = {found.severity for found in compiled.diagnostics}
        assert (compiled.catalog is None) == (Severity.ERROR in severities)
        assert all(
            0 <= found.span.start <= found.span.end <= len(compiled.source.text)
            for found in compiled.diagnostics
        )
        if chance.random() < 0.1:
            assert_formats_or_refuses(text)


def mutated(data: bytes, chance: random.Random) -> bytes:
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data) + 1)
        length = chance.randint(1, 8)
        match chance.randrange(5):
            case 0:
                data = data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]
            case 1:
                data = data[:at] + data[at + length :]
            case 2:
                data = data[:at] + data[at : at + length] * 2 + data[at + length :]
            case 3:
                data = data[:at] + chr(chance.randrange(1, 0xD800)).encode() + data[at:]
            case _:
                piece = chance.choice([b"{", b"}", b"(", b")", b'"', b"@", b"..", b"node ", b"/*"])
                data = data[:at] + piece + data[at:]
    return data


def assert_formats_or_refuses(text: bytes) -> None:
    parsed = parse_schema(text)
    if parsed.diagnostics:
        with pytest.raises(CompileError):
            format_schema(text)
    else:
        formatted = format_schema(text)
        assert format_schema(formatted) == formatted
        assert parse_schema(formatted).schema == parsed.schema
