"""What texts mean, and what is said about texts that mean nothing."""

from __future__ import annotations

import pytest

from omnigraph.lang.diagnostics import Applicability, Diagnostic, Severity
from omnigraph.lang.lexer import Mode
from omnigraph.query import ast
from omnigraph.query.parser import ParsedFile, parse_query_file
from omnigraph.query.query_printer import print_expr
from omnigraph.schema.ast import Name
from omnigraph.schema.property_types import ListType, PropertyType, Scalar, ScalarType, VectorType

A, B = ast.Variable("a"), ast.Variable("b")


# ---- choosing a clause ----


@pytest.mark.parametrize(
    "text",
    [
        "$a knows $b",
        "$a contains $b",
        "$a starts_with $b",
        "$a limit $b",
        "$a exists $b",
        "$a count{1,2} $b",
        '$a "knows" $b',
        '$a "in"{1,2} $b',
        "$a knows{1,} $b",
        "$a <knows> $b",
        '$a <"in"> $b',
        "$a <knows | likes>{1,3} $b",
        "$a <*> $b",
        "$a * $b",
        "$a *{1,3} $b",
        "$a (knows | likes) $b",
        '$a ("in" | likes){2,2} $b',
        "$a $e:knows $b",
        "$a $e:(knows | likes) $b",
        "$a $e:* $b",
        "$a $e:<knows> $b",
        "$_ knows $_",
    ],
)
def test_two_variables_around_an_edge_are_a_traversal(text: str) -> None:
    assert isinstance(clause(text), ast.Traversal)


@pytest.mark.parametrize(
    "text",
    [
        "$a",
        "$a = $b",
        "$a < $b",
        "$a < 5",
        "$a < now()",
        '$a < "x"',
        "$a.x",
        "$a contains $b.name",
        "$a contains $b and true",
        "$a starts_with $b or $a",
        "$a in $b",
        "$a and $b",
        "$a or $b",
        "$a is null",
        "$a is not null",
        "($a contains $b)",
        "count($b) > 1",
        "count > 1",
        "exists",
        "not $a",
        "not (true)",
        "true",
        'search($a.t, "x")',
        'contains($a.t, "x")',
        '"x" in $a.tags',
        "@id = 1",
        "[1] = $a.x",
    ],
)
def test_everything_else_is_a_filter(text: str) -> None:
    assert isinstance(clause(text), ast.Filter)


def test_an_edge_binding_needs_a_lower_case_edge() -> None:
    assert [type(each) for each in clauses("$flag $x: Person")] == [ast.Filter, ast.Binding]
    assert [type(each) for each in clauses("$flag $x: person $y")] == [ast.Traversal]


def test_reserved_words_between_variables_are_operators_if_they_can_be() -> None:
    assert clause("$a in $b") == ast.Filter(ast.Membership(A, B))
    assert clause("$a and $b") == ast.Filter(ast.And((A, B)))
    assert clause("$a or $b") == ast.Filter(ast.Or((A, B)))


@pytest.mark.parametrize("word", ["is", "null"])
def test_reserved_words_that_cannot_be_operators_are_edges_in_lenient_mode(word: str) -> None:
    text = f"$a {word} $b"
    edges = ast.NamedEdges((ast.EdgeName(word),))
    assert clause(text) == ast.Traversal(A, None, edges, False, None, B)
    (found,) = parse(wrapped(text), mode=Mode.STRICT).diagnostics
    assert "reserved word" in found.message


def test_a_bare_not_never_names_an_edge() -> None:
    assert [print_clause(each) for each in clauses("$a not $b")] == ["$a", "not $b"]
    for text in ("$a <not> $b", "$a $e:not $b", "$a (not | knows) $b"):
        assert "reserved word" in only_error(wrapped(text)).message


def test_clauses_need_no_separator() -> None:
    text = """
        $f exists { $a knows $b } $g count { $a knows $b } >= 1 $h not { $a knows $b }
        $a.x = 1 ($a.y) [1] = $z.t "x" in $z.t contains($a.x, "y") $a.x contains ("z")
        $a knows $b $b likes $c; $i true sum($b.x) { $a knows $b } > 2
    """
    assert len(clauses(text)) == 17


def test_contains_before_parentheses_is_an_operator_unless_a_comma_is_inside() -> None:
    assert len(clauses('$a.x contains ("a")')) == 1
    assert len(clauses('$a.x contains (contains("a", "b"))')) == 1
    assert len(clauses('$a.x contains ("a", "b")')) == 2
    assert len(clauses('$a.x starts_with ($a.y, "b")')) == 2


def test_blocks_keep_their_parts() -> None:
    traversal = clause("$a knows $b")
    one = ast.IntegerLiteral(1)
    assert clause("not { $a knows $b }") == ast.NotBlock((traversal,))
    assert clause("exists { $a knows $b; }") == ast.ExistsBlock((traversal,))
    assert clause("count { $a knows $b } >= 1") == ast.AggregateBlock(
        ast.AggregateFunction.COUNT, None, (traversal,), ast.CompareOp.GE, one
    )
    access = ast.PropertyAccess(B, Name("x"))
    assert clause("max(($b.x)) { $a knows $b } != 1") == ast.AggregateBlock(
        ast.AggregateFunction.MAX, access, (traversal,), ast.CompareOp.NE, one
    )


def test_bindings_take_empty_braces_and_a_trailing_comma() -> None:
    assert clause("$a: T { }") == clause("$a: T")
    assert clause("$a: T { x: 1, y: $b, }") == ast.Binding(
        A,
        Name("T"),
        (
            ast.PropertyMatch(Name("x"), ast.IntegerLiteral(1)),
            ast.PropertyMatch(Name("y"), B),
        ),
    )


# ---- expressions ----


@pytest.mark.parametrize(
    ("text", "grouped"),
    [
        ("a or b and c", "a or (b and c)"),
        ("a and b or c", "(a and b) or c"),
        ("not a and b", "(not a) and b"),
        ("not a = b", "not (a = b)"),
        ("not not a", "not (not a)"),
        ("a = b or c in d", "(a = b) or (c in d)"),
        ("a is not null and b", "(a is not null) and b"),
    ],
)
def test_or_binds_looser_than_and_than_not_than_comparisons(text: str, grouped: str) -> None:
    assert expr(text) == expr(grouped)


def test_chains_of_one_operator_are_one_operation() -> None:
    a, b, c = (ast.Identifier(name) for name in "abc")
    assert expr("a or b or c") == ast.Or((a, b, c))
    assert expr("(a or b) or c") == ast.Or((ast.Or((a, b)), c))
    assert expr("a and b and c") == ast.And((a, b, c))


@pytest.mark.parametrize("text", ["1 < 2 < 3", "a = b in c", "a is null = b", "a contains b = c"])
def test_comparisons_do_not_chain(text: str) -> None:
    assert "do not chain" in only_error(wrapped(text)).message


@pytest.mark.parametrize("word", ["count", "date", "now", "search", "nearest", "contains", "rrf"])
def test_a_function_name_without_parenthesis_is_a_name(word: str) -> None:
    assert expr(word) == ast.Identifier(word)
    assert expr(f"$a.{word}") == ast.PropertyAccess(A, Name(word))


def test_literals_are_decoded() -> None:
    assert expr('"a\\n\\t\\"\\\\\n"') == ast.StringLiteral('a\n\t"\\\n')
    assert expr("9223372036854775807") == ast.IntegerLiteral(2**63 - 1)
    assert expr("007.50") == ast.FloatLiteral("007.50")
    assert expr("trueness") == ast.Identifier("trueness")
    assert expr('[date("d"), datetime("t"), [false], $a]') == ast.ListLiteral(
        (
            ast.DateLiteral("d"),
            ast.DateTimeLiteral("t"),
            ast.ListLiteral((ast.BooleanLiteral(False),)),
            A,
        )
    )


def test_integers_fit_64_bits() -> None:
    for text in ("18446744073709551616", "9" * 100_000):
        assert "integer is larger than" in only_error(wrapped(f"{text} = 1")).message


def test_a_reserved_word_after_an_assignment_can_be_the_next_key() -> None:
    (query,) = parse(
        "query q() { insert T { a: 1 in: 2 and: 3 or: $x is: true contains: 4 } }"
    ).file.queries
    assert isinstance(query.body, ast.MutationBody)
    (insert,) = query.body.mutations
    assert isinstance(insert, ast.Insert)
    keys = [assignment.property.text for assignment in insert.assignments]
    assert keys == ["a", "in", "and", "or", "is", "contains"]


@pytest.mark.parametrize(
    "text",
    [
        "query q() { delete T where and = 1 }",
        "query q() { delete T where not not = 1 or null != 2 }",
        "query q() { match { $p: P } return { $p.x as in } }",
        "query q() { match { $p: P } return { $p.x } order { in, null desc } }",
    ],
)
def test_reserved_words_as_names_are_warnings_or_errors_by_mode(text: str) -> None:
    lenient = parse(text)
    assert {found.code for found in lenient.diagnostics} == {"L311"}
    assert len(lenient.file.queries) == 1
    strict = parse(text, mode=Mode.STRICT)
    assert {found.code for found in strict.diagnostics} == {"Q001"}
    assert all("reserved word" in found.message for found in strict.diagnostics)
    assert strict.file.queries == ()


# ---- declarations ----


def test_a_query_keeps_its_header() -> None:
    text = (
        'query list($a: String, $b: [I64]?, $c: Vector(3), $d: Blob?) @instruction("i") '
        '@description("d") { match { $p: P } return { $p } }'
    )
    (query,) = parse(text).file.queries
    assert query.name == Name("list")
    assert query.description == "d"
    assert query.instruction == "i"
    assert [(each.name.text, each.type) for each in query.parameters] == [
        ("a", PropertyType(ScalarType(Scalar.STRING))),
        ("b", PropertyType(ListType(Scalar.I64), True)),
        ("c", PropertyType(VectorType(3))),
        ("d", PropertyType(ScalarType(Scalar.BLOB), True)),
    ]
    assert text[query.header_span.start : query.header_span.end].endswith('@description("d") {')
    assert text[query.span.start : query.span.end] == text


def test_every_node_knows_its_place() -> None:
    text = "query q() { match { not ($a.x = 1) } return { $a.x as n, } order { n desc } limit 3 }"
    body = parse(text).file.queries[0].body
    assert isinstance(body, ast.ReadBody)
    (condition,) = body.clauses
    assert [
        text[span.start : span.end]
        for span in (
            condition.span,
            body.match_span,
            body.return_span,
            body.projections[0].span,
            body.order_span,
            body.order[0].span,
            body.limit_span,
        )
    ] == [
        "not ($a.x = 1)",
        "match { not ($a.x = 1) }",
        "return { $a.x as n, }",
        "$a.x as n",
        "order { n desc }",
        "n desc",
        "limit 3",
    ]


def test_items_of_return_are_separated_by_commas_lines_or_blanks() -> None:
    text = "query q() { match { $p: P } return { $p.x, $p.y as y $p.z\n count($p) $p.w > 1 as w } }"
    body = parse(text).file.queries[0].body
    assert isinstance(body, ast.ReadBody)
    assert len(body.projections) == 5


def test_as_needs_a_word_boundary() -> None:
    text = "query q() { match { $p: P } return { $p.x assets } }"
    body = parse(text).file.queries[0].body
    assert isinstance(body, ast.ReadBody)
    assert body.projections[1] == ast.Projection(ast.Identifier("assets"))


def test_limit_takes_an_unsigned_64_bit_integer() -> None:
    text = "query q() { match { $p: P } return { $p } limit 18446744073709551615 }"
    body = parse(text).file.queries[0].body
    assert isinstance(body, ast.ReadBody)
    assert body.limit == 2**64 - 1


def test_a_query_without_parameter_list_comes_with_an_edit_that_mends_it() -> None:
    text = "query q { match { $p: P } return { $p } }"
    (found,) = parse(text).diagnostics
    assert found.code == "Q002"
    assert found.suggestion is not None
    assert found.suggestion.applicability is Applicability.MACHINE_APPLICABLE
    (edit,) = found.suggestion.edits
    mended = text[: edit.span.start] + edit.replacement + text[edit.span.end :]
    assert parse(mended).diagnostics == ()


def test_a_declaration_with_an_error_is_left_out_and_the_others_stay() -> None:
    text = """
        query a() { match { $p: P } return { $p.x } }
        query b() { match { $p: } return { $p.x } }
        query c() { match { $p: P } return { $p.x } }
    """
    parsed = parse(text)
    assert [query.name.text for query in parsed.file.queries] == ["a", "c"]
    assert [(found.code, found.position.line) for found in parsed.diagnostics] == [("Q001", 3)]


@pytest.mark.parametrize("count", [1, 3, 10])
def test_one_broken_clause_gives_one_error(count: int) -> None:
    broken = ["$a.x = null", "$a.x > +1", "$p: person", "$a: T { x: }", "$a knows", "exists { }"]
    lines = "\n".join(broken * count)
    assert len(errors(wrapped(lines))) == len(broken) * count


# ---- files ----


def test_a_file_is_settings_then_queries() -> None:
    settings = 'set a.b = 5; set c = word; set d = "s"; reset e; reset all;'
    file = parse(f"{settings}\nquery q() {{ delete T where x = 1 }}").file
    assert file.settings == (
        ast.SetSetting(Name("a.b"), 5),
        ast.SetSetting(Name("c"), "word", True),
        ast.SetSetting(Name("d"), "s"),
        ast.ResetSetting(Name("e")),
        ast.ResetSetting(None),
    )
    assert len(file.queries) == 1


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("branch list", ast.BranchList()),
        ("branch create a", ast.BranchCreate(Name("a"))),
        ('branch create "r/x" from main;', ast.BranchCreate(Name("r/x"), Name("main"))),
        ("branch create from from from", ast.BranchCreate(Name("from"), Name("from"))),
        ("branch delete list;", ast.BranchDelete(Name("list"))),
        ('branch merge a into "B 1"', ast.BranchMerge(Name("a"), Name("B 1"))),
        ("branch merge a", ast.BranchMerge(Name("a"))),
        ("show all;", ast.Show(None)),
        ("show engine;", ast.Show(Name("engine"))),
    ],
)
def test_a_file_may_be_one_statement(text: str, statement: ast.Statement) -> None:
    assert parse(f"set a = 1;\n{text}").file.statement == statement


def test_explain_holds_its_query() -> None:
    statement = parse("explain query q() { match { $p: P } return { $p } }").file.statement
    assert isinstance(statement, ast.Explain)
    assert statement.query.name == Name("q")


def test_a_file_of_settings_or_of_nothing_parses() -> None:
    assert parse("set a = 1;").diagnostics == ()
    assert parse("// nothing").file == ast.File(())


def test_text_that_is_not_utf_8_is_one_error() -> None:
    (found,) = parse_query_file(b"query q() { \xff }").diagnostics
    assert found.code == "Q001"
    assert found.position.column == 13
    assert parse_query_file("\ufeffbranch list".encode()).file.statement == ast.BranchList()


# ---- reading texts for tests ----


def parse(text: str, *, mode: Mode = Mode.LENIENT) -> ParsedFile:
    return parse_query_file(text, mode=mode)


def errors_of(parsed: ParsedFile) -> list[Diagnostic]:
    return [found for found in parsed.diagnostics if found.severity is Severity.ERROR]


def errors(text: str) -> list[Diagnostic]:
    return errors_of(parse(text))


def only_error(text: str) -> Diagnostic:
    (found,) = errors(text)
    return found


def wrapped(text: str) -> str:
    return f"query q() {{\n  match {{\n{text}\n  }}\n  return {{ 1 as one }}\n}}\n"


def clauses(text: str) -> tuple[ast.Clause, ...]:
    parsed = parse(wrapped(text))
    assert [str(found) for found in errors_of(parsed)] == []
    body = parsed.file.queries[0].body
    assert isinstance(body, ast.ReadBody)
    return body.clauses


def clause(text: str) -> ast.Clause:
    (found,) = clauses(text)
    return found


def print_clause(found: ast.Clause) -> str:
    assert isinstance(found, ast.Filter)
    return print_expr(found.condition)


def expr(text: str) -> ast.Expr:
    found = clause(f"({text})")
    assert isinstance(found, ast.Filter)
    return found.condition
