"""GraphML documents: those of exports, those of other programs, and what cannot be read."""

from __future__ import annotations

from pathlib import Path

import networkx  # type: ignore[import-untyped]
import pytest

from omnigraph.errors import LoadError
from unit.writers.loaded_rows import accept, edge, node, read, rows_of

SCHEMA = accept(
    "node P { name: String @key  age: I32?  born: Date?  tags: [String]?  at: Vector(2)? }"
    " node Q { }  edge K: P -> P { w: F64? }  edge L: P -> Q"
)
ONE = accept("node P { name: String @key  age: I32? }  edge K: P -> P { w: F64? }")
HEAD = """<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="t" for="all" attr.name="@type" attr.type="string"/>
<key id="n" for="node" attr.name="name" attr.type="string"/>
<key id="a" for="node" attr.name="age" attr.type="int"><default>7</default></key>
<key id="b" for="node" attr.name="born" attr.type="string"/>
<key id="l" for="node" attr.name="tags" attr.type="string"/>
<key id="v" for="node" attr.name="at" attr.type="string"/>
<key id="w" for="edge" attr.name="w" attr.type="double"/>
<key id="y" for="node" yfiles.type="nodegraphics"/>
<graph edgedefault="directed">
"""
ANN = """<node id="P:ann"><data key="t">P</data><data key="n">ann</data>
<data key="b">1990-01-02</data><data key="l">["x &amp; y", "z"]</data>
<data key="v">[1, 2.5]</data><data key="y"><Shape/></data></node>
"""


def write(folder: Path, body: str, head: str = HEAD) -> Path:
    path = folder / "a.graphml"
    path.write_text(f"{head}{body}</graph></graphml>")
    return path


def test_elements_become_rows_of_their_types(tmp_path: Path) -> None:
    body = ANN
    body += '<node id="P:bob"><data key="t">P</data><data key="n">bob</data></node>\n'
    body += '<node id="Q:1"><data key="t">Q</data></node>\n'
    body += '<edge id="K:e" source="P:ann" target="P:bob"><data key="t">K</data>'
    body += '<data key="w">0.5</data></edge><edge source="P:ann" target="Q:1">'
    body += '<data key="t">L</data></edge>'
    found = read(write(tmp_path, body), SCHEMA).types
    assert list(rows_of(found[node("P")].rows, found[node("P")].shape)) == [
        {"@id": "ann", "age": 7, "at": (1.0, 2.5), "born": 7306, "name": "ann",
         "tags": ("x & y", "z")},
        {"@id": "bob", "age": 7, "at": None, "born": None, "name": "bob", "tags": None},
    ]  # fmt: skip
    assert found[node("Q")].rows["__id"].to_pylist() == ["1"]
    edges = found[edge("K")].rows
    assert [edges[name].to_pylist() for name in ("__id", "__src", "__dst")] == [
        ["e"],
        ["ann"],
        ["bob"],
    ]
    assert found[edge("L")].rows["__dst"].to_pylist() == ["1"]
    assert found[edge("L")].origins.location_of(0).endswith("a.graphml line 16")


def test_a_document_of_another_program_names_nodes_by_ids_of_its_own(tmp_path: Path) -> None:
    graph = networkx.DiGraph()
    graph.add_node(0, name="ann", age=3)
    graph.add_node(1, name="bob")
    graph.add_edge(0, 1, w=0.25)
    networkx.write_graphml(graph, tmp_path / "x.graphml")
    found = read(tmp_path / "x.graphml", ONE).types
    people, knows = found[node("P")], found[edge("K")]
    assert [row["name"] for row in rows_of(people.rows, people.shape)] == ["ann", "bob"]
    assert people.rows["__id"].to_pylist() == [None, None]
    assert knows.rows["__src"].to_pylist() == ["ann"]
    assert knows.rows["__dst"].to_pylist() == ["bob"]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("<node", "line 11: not well-formed XML"),
        (
            '<node id="P:a"><data key="n"><Shape/></data></node>',
            "line 11: the text of an attribute has a tag inside: <Shape>",
        ),
        ("<node/>", "line 11: <node> has no 'id'"),
        ('<edge source="a"/>', "line 11: <edge> has no 'target'"),
        ('<node id="a"><data key="z">1</data></node>', "line 11: the key 'z' is not declared"),
        ('<node id="a"><graph/></node>', "line 11: <graph> cannot be loaded here"),
        ("<hyperedge/>", "line 11: <hyperedge> cannot be loaded here"),
        ('<node id="a"><node id="b"/></node>', "line 11: <node> is inside of another element"),
        ('<node id="a"/>', "line 11: node without a type: the schema has 2 node types"),
        ('<node id="a"><data key="t">R</data></node>', "line 11: unknown type 'R'"),
        (
            '<node id="Q:a"><data key="t">Q</data><data key="n">x</data></node>',
            "line 11: unknown input field 'name' of Q",
        ),
        (
            '<node id="P:a"><data key="t">P</data><data key="l">x, y</data></node>',
            "line 11: P.tags",
        ),
        (
            '<node id="P:a"><data key="n">a</data><data key="n">b</data></node>',
            "line 11: the attribute 'name' is there twice",
        ),
        (
            """<node id="1"><data key="t">P</data><data key="n">a</data></node>
            <node id="1"><data key="t">P</data><data key="n">b</data></node>""",
            "line 12: two nodes have the id '1'",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(
    tmp_path: Path, body: str, problem: str
) -> None:
    with pytest.raises(LoadError) as failure:
        read(write(tmp_path, body), SCHEMA)
    assert problem in str(failure.value)


def test_a_document_that_declares_entities_is_refused(tmp_path: Path) -> None:
    bomb = '<!DOCTYPE graphml [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>\n'
    with pytest.raises(LoadError, match="declares entities"):
        read(write(tmp_path, "", head=bomb + HEAD), SCHEMA)


def test_an_entity_of_another_document_is_not_left_out(tmp_path: Path) -> None:
    head = f'<!DOCTYPE graphml SYSTEM "names.dtd">{HEAD}'
    body = '<node id="P:a"><data key="t">P</data><data key="n">a&b;c</data></node>'
    with pytest.raises(LoadError, match="the entity 'b' is not declared in the document"):
        read(write(tmp_path, body, head=head), SCHEMA)


def test_a_document_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.graphml").write_text("<gexf><graph/></gexf>")
    with pytest.raises(LoadError, match="begins with <graphml>, not <gexf>"):
        read(tmp_path / "a.graphml", SCHEMA)
