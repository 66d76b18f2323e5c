from __future__ import annotations

import pytest

from omnigraph.query import typed_tree
from omnigraph.query.ast import CompareOp
from omnigraph.schema.property_types import (
    ListType,
    PropertyType,
    Scalar,
    VectorType,
    make_scalar_type,
)
from omnigraph.schema.property_values import round_to_f32
from unit.query.checking import hints_of, problems_of, statement_of

PARAMETERS = "$s: String?, $n: I64, $f: F64, $blob: Blob, $v: Vector(2), $l: [I64], $t: DateTime"


def assigned(assignment: str) -> typed_tree.Expr:
    statement = statement_of(
        f'update Author set {{ {assignment} }} where name = "x"', parameters=PARAMETERS
    )
    assert isinstance(statement, typed_tree.UpdateNodes)
    (found,) = statement.assignments
    return found.value


def stored_in_book(assignment: str) -> typed_tree.Expr:
    statement = statement_of(
        f'update Book set {{ {assignment} }} where title = "x"', parameters=PARAMETERS
    )
    assert isinstance(statement, typed_tree.UpdateNodes)
    return statement.assignments[0].value


def where_of(condition: str, *, target: str = "Wrote") -> typed_tree.Expr:
    statement = statement_of(f"delete {target} where {condition}", parameters=PARAMETERS)
    assert isinstance(statement, typed_tree.DeleteNodes | typed_tree.DeleteEdges)
    (found,) = statement.conditions
    return found


def test_literals_are_stored_at_the_type_of_the_property() -> None:
    assert assigned("score: 2") == typed_tree.Constant(2.0, typed_tree.F64)
    assert assigned("tiny: 0.1") == typed_tree.Constant(round_to_f32(0.1), typed_tree.F32)
    assert assigned("small: 2.0") == typed_tree.Constant(2, make_scalar_type(Scalar.I32))
    assert assigned("marks: [1, 0.1]") == typed_tree.Constant(
        (1.0, round_to_f32(0.1)), PropertyType(ListType(Scalar.F32))
    )
    assert stored_in_book("vec: [1, 2]") == typed_tree.Constant(
        (1.0, 2.0), PropertyType(VectorType(2))
    )
    assert stored_in_book("tags: []") == typed_tree.Constant(
        (), PropertyType(ListType(Scalar.STRING))
    )


def test_parameters_are_stored_as_they_are() -> None:
    assert assigned("score: $n") == typed_tree.ParameterValue("n", make_scalar_type(Scalar.I64))
    assert assigned("marks: $l").type == PropertyType(ListType(Scalar.I64))
    assert stored_in_book("cover: $s") == typed_tree.ParameterValue(
        "s", typed_tree.STRING.as_nullable()
    )
    assert stored_in_book("cover: $blob").type == make_scalar_type(Scalar.BLOB)
    assert stored_in_book("state: $s").type == typed_tree.STRING.as_nullable()
    assert assigned("seen: now()") == typed_tree.NowValue()


def test_an_assignment_takes_a_constant_expression() -> None:
    assert isinstance(assigned("active: $n > 1 or true"), typed_tree.AnyOf)


def test_an_inserted_node_keeps_its_assignments_in_order() -> None:
    statement = statement_of('insert Author { name: "x", handle: $s }', parameters=PARAMETERS)
    assert isinstance(statement, typed_tree.InsertNode)
    assert [each.property for each in statement.assignments] == ["name", "handle"]


def test_an_inserted_edge_has_ends_and_properties() -> None:
    statement = statement_of(
        'insert Wrote { role: "lead", to: $s, from: "a" }', parameters=PARAMETERS
    )
    assert isinstance(statement, typed_tree.InsertEdge)
    assert statement.source == typed_tree.Constant("a", typed_tree.STRING)
    assert statement.target == typed_tree.ParameterValue("s", typed_tree.STRING.as_nullable())
    assert [each.property for each in statement.assignments] == ["role"]


def test_where_reads_the_row_under_test() -> None:
    assert where_of('score = 1 and @id = "x"', target="Author") == typed_tree.AllOf(
        (
            typed_tree.Compare(
                CompareOp.EQ,
                typed_tree.PropertyValue(typed_tree.ROW, "score", typed_tree.F64.as_nullable()),
                typed_tree.Constant(1.0, typed_tree.F64),
                typed_tree.BOOL.as_nullable(),
            ),
            typed_tree.Compare(
                CompareOp.EQ,
                typed_tree.SystemValue(typed_tree.ROW, typed_tree.SystemName.ID),
                typed_tree.Constant("x", typed_tree.STRING),
            ),
        ),
        typed_tree.BOOL.as_nullable(),
    )


def test_from_and_to_are_the_ends_of_an_edge() -> None:
    assert where_of("from = $s or to = $s") == where_of("@src = $s or @dst = $s")


def test_where_takes_every_operator() -> None:
    condition = 'role is null or not role in ["lead"] and role starts_with "l"'
    assert isinstance(where_of(condition), typed_tree.AnyOf)


def test_a_delete_names_nodes_or_edges() -> None:
    assert isinstance(statement_of("delete Book where true"), typed_tree.DeleteNodes)
    assert isinstance(statement_of("delete Wrote where true"), typed_tree.DeleteEdges)


@pytest.mark.parametrize(
    ("mutation", "problems"),
    [
        ("insert Autor { name: $zz }", ["T10 Autor", "T14 $zz"]),
        ("insert Named { name: $s }", ["T10 Named"]),
        ("insert Author { handle: $s }", ["T12 Author"]),
        ("insert Wrote { role: $s }", ["T12 Wrote"]),
        ("insert Note { vec: $v }", []),
        ("insert Note { body: $s }", []),
        ("insert Drew { from: $s, to: $s, role: $s }", ["T12 Drew"]),
        ("insert Author { handle: $s, name: $s, name: $s }", ["T13 name"]),
        ("insert Author { handle: $s, name: $nope }", ["T14 $nope"]),
        ("insert Author { handle: $s, name: $n }", ["T7 $n"]),
        ("insert Author { handle: $s, name: 1 }", ["T3 1"]),
        ("insert Wrote { from: $n, to: 1 }", ["T7 $n", "T3 1"]),
        ("update Wrote set { from: $s } where from = $s", ["T11 from"]),
        ("update Author set { handle: $s } where name = $s", ["T11 handle"]),
        (
            "update Author set { nme: $s, name: name } where zz = 1",
            ["T11 nme", "T11 zz"],
        ),
        ("update Author set { name: count(1) } where name = $s", ["T44 count(1)"]),
        ("update Author set { small: 3000000000 } where name = $s", ["T3 3000000000"]),
        ("update Author set { small: 2.5 } where name = $s", ["T3 2.5"]),
        ("update Author set { bornOn: $t } where name = $s", ["T7 $t"]),
        ("update Author set { marks: $s } where name = $s", ["T7 $s"]),
        ("update Author set { marks: 1 } where name = $s", ["T3 1"]),
        ('update Author set { marks: ["x"] } where name = $s', ['T3 ["x"]']),
        ('update Book set { state: "nope" } where title = $s', ['T3 "nope"']),
        ('update Book set { cover: "base64:" } where title = $s', ['T3 "base64:"']),
        ("update Book set { cover: $n } where title = $s", ["T7 $n"]),
        ("update Book set { vec: [1] } where title = $s", ["T3 [1]"]),
        ("update Book set { vec: [$n, $s] } where title = $s", ["T103 [$n, $s]"]),
        ("update Book set { vec: $l } where title = $s", ["T7 $l"]),
        ("delete Author where name", ["T41 name"]),
        ("delete Author where name = 1", ["T7 name = 1"]),
        ("delete Book where tags = tags", ["T7 tags"]),
        ("delete Book where cover is null", ["T11 cover"]),
        ("delete Author where $z = 1", ["T14 $z"]),
        ("delete Author where $s.name = 1", ["T14 $s"]),
        ("delete Author where @src = $s", ["T11 @src"]),
        ("delete Wrote where @type = $s", ["T11 @type"]),
        ("delete Author where from = $s", ["T11 from"]),
        ("delete Author where search(name, $s)", ["T44 search(name, $s)"]),
        ("delete Author where max(score) = 1", ["T44 max(score)"]),
    ],
)
def test_a_mutation_that_does_not_fit_is_refused(mutation: str, problems: list[str]) -> None:
    assert problems_of(mutation, parameters=PARAMETERS) == problems


def test_every_statement_is_checked() -> None:
    text = "insert Autor { name: $s } delete Book where nope = 1 delete Wrote where true"
    assert problems_of(text, parameters=PARAMETERS) == ["T10 Autor", "T11 nope"]


def test_a_hint_names_the_system_field() -> None:
    assert hints_of("delete Wrote where src = $s", parameters=PARAMETERS) == [
        "the system field is '@src'"
    ]
    assert hints_of("delete Author where nam = $s", parameters=PARAMETERS) == [
        "did you mean 'name'?"
    ]
