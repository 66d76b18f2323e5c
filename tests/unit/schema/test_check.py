"""What a correct schema means; what an incorrect one raises is in the diagnostic cases."""

from __future__ import annotations

import time

import pytest

from omnigraph.errors import CompileError
from omnigraph.lang.lexer import Mode
from omnigraph.schema import Catalog, compile_schema, load_catalog
from omnigraph.schema.catalog import (
    AnnotationValue,
    Cardinality,
    Check,
    ConstraintKind,
    Constraints,
    Embed,
    NodeType,
    Property,
    Range,
)
from omnigraph.schema.property_types import (
    EnumType,
    PropertyType,
    Scalar,
    VectorType,
    make_scalar_type,
)


def node(members: str) -> NodeType:
    return load_catalog(f"node A {{ {members} }}").nodes["A"]


def edge_constraints(members: str, *, mode: Mode = Mode.LENIENT) -> Constraints:
    text = f"node A {{}} edge E: A -> A {{ {members} }}"
    return load_catalog(text, mode=mode).edges["E"].constraints


def codes(text: str, *, mode: Mode = Mode.LENIENT) -> list[str]:
    return [found.code for found in compile_schema(text, mode=mode).diagnostics]


def test_an_empty_text_gives_an_empty_catalog() -> None:
    assert load_catalog("") == Catalog()


def test_a_schema_with_errors_has_no_catalog() -> None:
    assert compile_schema("node A { a: Vector(0) }").catalog is None
    with pytest.raises(CompileError, match=r"S002.*dimension") as raised:
        load_catalog("node A { a: Vector(0) }")
    assert [found.code for found in raised.value.diagnostics] == ["S002"]


def test_warnings_leave_the_catalog_usable() -> None:
    compiled = compile_schema("node A {} edge E: A -> A { @unique(src, dst) }")
    assert [found.code for found in compiled.diagnostics] == ["S022", "S022"]
    assert compiled.catalog is not None


def test_a_node_without_properties_is_keyless() -> None:
    found = load_catalog("node City {}").nodes["City"]
    assert found == NodeType("City", {})
    assert found.key is None


def test_properties_keep_declaration_order() -> None:
    assert list(node("b: I32  c: I32  a: I32").properties) == ["b", "c", "a"]


def test_enum_values_are_sorted() -> None:
    found = node("p: enum(x_y, 3-d, 2d)?").properties["p"].type
    assert found == PropertyType(EnumType(("2d", "3-d", "x_y")), is_nullable=True)


def test_a_node_and_an_edge_may_share_a_name() -> None:
    catalog = load_catalog("interface A {} node A {} edge A: A -> A")
    assert (list(catalog.interfaces), list(catalog.nodes), list(catalog.edges)) == (
        ["A"],
        ["A"],
        ["A"],
    )


def test_edges_are_found_in_any_case() -> None:
    catalog = load_catalog("node A {} edge WorksAt: A -> A")
    assert catalog.find_edge("wORKSat") is catalog.edges["WorksAt"]


def test_an_edge_without_cardinality_is_unbounded() -> None:
    catalog = load_catalog("node A {} edge E: A -> A edge F: A -> A @card(1..2)")
    assert catalog.edges["E"].cardinality == Cardinality(0, None)
    assert catalog.edges["F"].cardinality == Cardinality(1, 2)


@pytest.mark.parametrize("name", ["id", "src", "dst", "from", "to"])
def test_the_words_for_system_columns_are_free_on_nodes(name: str) -> None:
    assert list(node(f"{name}: String").properties) == [name]


@pytest.mark.parametrize("name", ["id", "src", "dst"])
def test_the_words_for_system_columns_are_free_on_edges(name: str) -> None:
    assert codes(f"node A {{}} edge E: A -> A {{ {name}: String }}") == []


# ---- constraints ----


def test_constraints_on_properties_equal_constraints_in_the_body() -> None:
    sugar = node("a: String @key  b: I32 @unique  c: I32 @index").constraints
    body = node("a: String  b: I32  c: I32  @key(a) @unique(b) @index(c)").constraints
    assert (sugar.key, sugar.uniques, sugar.indexes) == (body.key, body.uniques, body.indexes)
    assert (sugar.key, sugar.uniques, sugar.indexes) == (("a",), (("b",),), (("c",),))


def test_the_catalog_says_which_spelling_was_used() -> None:
    both = node("a: I32 @unique @index  b: I32  @unique(a) @unique(b, a)")
    assert both.properties["a"].property_constraints == {"unique", "index"}
    assert both.properties["b"].property_constraints == frozenset()
    assert both.constraints.uniques == (("a",), ("b", "a"))
    assert both.constraints.body == (("unique", ("a",)), ("unique", ("b", "a")))


def test_equal_groups_collapse_whatever_their_order() -> None:
    found = node("a: I32  b: I32  @unique(a, b, a) @unique(b, a) @index(a, a)").constraints
    assert found.uniques == (("a", "b"),)
    assert found.indexes == (("a",),)


def test_a_composite_key_is_sorted_by_name() -> None:
    assert node("tenant: String  slot: I32  @key(tenant, slot)").key == ("slot", "tenant")


def test_an_edge_key_starts_with_its_ends() -> None:
    found = edge_constraints("b: I32  a: I32  @key(b, @dst, a, @src)")
    assert found.key == ("@src", "@dst", "a", "b")
    assert found.body == (("key", ("@src", "@dst", "a", "b")),)


def test_ends_can_be_unique_and_indexed() -> None:
    found = edge_constraints("@unique(@src, @dst) @index(@dst)", mode=Mode.STRICT)
    assert (found.uniques, found.indexes) == ((("@src", "@dst"),), (("@dst",),))


def test_a_bare_end_is_the_declared_property_if_there_is_one() -> None:
    found = edge_constraints("src: String  @unique(src, @dst)", mode=Mode.STRICT)
    assert found.uniques == (("src", "@dst"),)


def test_a_bare_end_can_be_mended_by_its_suggestion() -> None:
    text = "node A {} edge E: A -> A { @unique(src) }"
    (found,) = compile_schema(text).diagnostics
    assert found.suggestion is not None
    (edit,) = found.suggestion.edits
    mended = text[: edit.span.start] + edit.replacement + text[edit.span.end :]
    assert load_catalog(mended, mode=Mode.STRICT).edges["E"].constraints.uniques == (("@src",),)


def test_ranges_are_inclusive_bounds_open_where_missing() -> None:
    found = node("t: F64  @range(t, -5..5) @range(t, -0.5..) @range(t, ..10) @range(t, ..10)")
    assert found.constraints.ranges == (
        Range("t", -5, 5),
        Range("t", -0.5, None),
        Range("t", None, 10),
    )
    assert found.constraints.body == ()


def test_a_range_may_be_empty() -> None:
    assert node("t: I32  @range(t, 5..1)").constraints.ranges == (Range("t", 5, 1),)


def test_checks_hold_their_pattern() -> None:
    found = node('s: String  e: enum(a)  @check(s, "^a$") @check(e, "a")').constraints
    assert found.checks == (Check("s", "^a$"), Check("e", "a"))


@pytest.mark.parametrize(
    ("type_", "refused"),
    [
        ("String", {"@range(p, 0..1)"}),
        ("String?", {"@key(p)", "@range(p, 0..1)"}),
        ("enum(a, b)", {"@range(p, 0..1)"}),
        ("I32", {'@check(p, "x")'}),
        ("U64?", {"@key(p)", '@check(p, "x")'}),
        ("F32", {'@check(p, "x")'}),
        ("Bool", {"@range(p, 0..1)", '@check(p, "x")'}),
        ("Date", {"@range(p, 0..1)", '@check(p, "x")'}),
        ("DateTime", {"@range(p, 0..1)", '@check(p, "x")'}),
        ("Vector(2)", {"@key(p)", "@unique(p)", "@range(p, 0..1)", '@check(p, "x")'}),
        ("[I32]", {"@key(p)", "@unique(p)", "@index(p)", "@range(p, 0..1)", '@check(p, "x")'}),
        ("[String]", {"@key(p)", "@unique(p)", "@index(p)", "@range(p, 0..1)", '@check(p, "x")'}),
        ("Blob", {"@key(p)", "@unique(p)", "@index(p)", "@range(p, 0..1)", '@check(p, "x")'}),
    ],
)
def test_a_constraint_fits_exactly_these_types(type_: str, refused: set[str]) -> None:
    forms = ["@key(p)", "@unique(p)", "@index(p)", "@range(p, 0..1)", '@check(p, "x")']
    found = {form for form in forms if codes(f"node A {{ p: {type_}  {form} }}")}
    assert found == refused


# ---- annotations ----


def test_unknown_annotations_are_kept_as_text() -> None:
    found = node('p: String @future(7, x="y", z=1.50) @pii @default(true) @to(word)')
    assert found.properties["p"].annotations == (
        AnnotationValue("future", "7", (("x", "y"), ("z", "1.50"))),
        AnnotationValue("pii"),
        AnnotationValue("default", "true"),
        AnnotationValue("to", "word"),
    )


def test_types_and_properties_may_be_described_and_renamed() -> None:
    catalog = load_catalog(
        'node A @description("d") @rename_from("B") { p: I32 @description("e") @rename_from(q) }\n'
        'edge E: A -> A @instruction("i") @rename_from("F") { r: I32 @rename_from("s") }'
    )
    found, edge = catalog.nodes["A"], catalog.edges["E"]
    assert (found.annotations, found.rename_from) == ((AnnotationValue("description", "d"),), "B")
    assert (edge.annotations, edge.rename_from) == ((AnnotationValue("instruction", "i"),), "F")
    assert found.properties["p"].annotations == (AnnotationValue("description", "e"),)
    assert found.properties["p"].rename_from == "q"
    assert edge.properties["r"].rename_from == "s"


@pytest.mark.parametrize("source", ["body", '"body"'])
def test_an_embedding_names_its_source_as_word_or_string(source: str) -> None:
    found = node(f'body: String?  v: Vector(2)? @embed({source}, model="m")').properties["v"]
    assert found.embed == Embed("body", "m")
    assert found.type == PropertyType(VectorType(2), is_nullable=True)
    assert found.annotations == ()


# ---- interfaces ----


def test_a_node_gets_the_properties_it_does_not_write() -> None:
    catalog = load_catalog(
        "interface N { name: String @index @pii  size: I32 @rename_from(width) }\n"
        "node A implements N { size: I32 @unique }"
    )
    assert list(catalog.interfaces["N"].properties) == ["name", "size"]
    found = catalog.nodes["A"]
    assert found.implements == ("N",)
    assert list(found.properties) == ["size", "name"]
    assert found.properties["name"] == Property(
        "name",
        make_scalar_type(Scalar.STRING),
        annotations=(AnnotationValue("pii"),),
        property_constraints=frozenset({ConstraintKind.INDEX}),
        interfaces=("N",),
        is_injected=True,
    )
    own = found.properties["size"]
    assert (own.interfaces, own.is_injected, own.rename_from) == (("N",), False, None)
    assert (found.constraints.indexes, found.constraints.uniques) == ((("name",),), (("size",),))


def test_an_injected_key_makes_the_node_keyed() -> None:
    catalog = load_catalog("interface K { k: String @key } node A implements K { a: I32 }")
    assert catalog.nodes["A"].key == ("k",)


def test_a_key_that_no_node_injects_is_not_validated() -> None:
    text = "interface K { k: String? @key }"
    assert codes(text) == []
    assert codes(text + " node A implements K { k: String? }") == []
    assert codes(text + " node A implements K {} node B implements K {}") == ["S012"]


def test_body_constraints_may_name_injected_properties() -> None:
    catalog = load_catalog("interface K { k: String } node A implements K { @key(k) }")
    assert catalog.nodes["A"].key == ("k",)


def test_interfaces_that_agree_give_one_property() -> None:
    catalog = load_catalog(
        "interface M { name: String @index @a(1) @b }\n"
        "interface N { name: String @b @a(1) @index @rename_from(title) }\n"
        "node A implements N, M, N {}"
    )
    found = catalog.nodes["A"]
    assert found.implements == ("N", "M")
    assert found.properties["name"].interfaces == ("M", "N")
    assert found.properties["name"].rename_from == "title"


@pytest.mark.parametrize(
    "other",
    [
        "name: String?",
        "name: String",
        "name: I32 @index",
        "name: String @index @a",
        "name: String @unique",
    ],
)
def test_interfaces_that_disagree_are_refused(other: str) -> None:
    text = f"interface M {{ name: String @index }} interface N {{ {other} }}"
    assert codes(text + " node A implements M, N {}") == ["S010"]


# ---- everything together ----


def test_the_same_error_of_two_nodes_is_reported_once() -> None:
    text = "interface N { v: Vector(2) @unique } node A implements N {} node B implements N {}"
    assert codes(text) == ["S014"]


def test_unknown_names_come_with_a_suggestion() -> None:
    (found,) = compile_schema("node A { email: String  @unique(emial) }").diagnostics
    assert found.hint == "did you mean 'email'?"


def test_a_schema_of_real_size_compiles_in_milliseconds() -> None:
    nodes = [
        f"node N{number} {{ k: String @key  a: I32?  b: enum(x, y)  c: Date? @index }}"
        for number in range(17)
    ]
    edges = [
        f"edge E{number}: N{number % 17} -> N{number % 5} @card(0..9) {{ s: DateTime? }}"
        for number in range(67)
    ]
    text = "\n".join(nodes + edges)
    best = min(_seconds(text) for _ in range(5))
    # Far above what it takes, so that a busy machine does not fail the test.
    assert best < 0.1


def _seconds(text: str) -> float:
    start = time.perf_counter()
    assert compile_schema(text).catalog is not None
    return time.perf_counter() - start
