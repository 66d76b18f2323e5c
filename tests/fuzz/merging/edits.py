"""The steps by which a schema changes, and the text of the schema after each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from omnigraph.schema import load_catalog
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType, Property

Edit: TypeAlias = (
    "AddProperty | RenameProperty | DropProperty | AddType | RenameNode | DropType | Reword"
)


@dataclass(frozen=True, slots=True)
class AddProperty:
    """A property of a node type."""

    type_name: str
    text: str


@dataclass(frozen=True, slots=True)
class RenameProperty:
    """Another name for a property."""

    type_name: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class DropProperty:
    """One property less."""

    type_name: str
    name: str


@dataclass(frozen=True, slots=True)
class AddType:
    """A node or an edge type."""

    text: str


@dataclass(frozen=True, slots=True)
class RenameNode:
    """Another name for a node type."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class DropType:
    """One node or edge type less."""

    name: str


@dataclass(frozen=True, slots=True)
class Reword:
    """Another rule: some words of the text that stand in it once."""

    old: str
    new: str


# Rules that are narrowed on one branch meet entities that another one writes.
TIGHTENED: tuple[Edit, ...] = (
    Reword("@range(age, 0..150)", "@range(age, 0..8)"),
    Reword("tags: [String]?", "tags: [String]"),
    Reword("edge Knows: Person -> Person @card(0..)", "edge Knows: Person -> Person @card(0..1)"),
    Reword("text: String", "text: String @unique"),
    Reword("since: Date?\n}\nedge Leads", "since: Date\n}\nedge Leads"),
)
# The other branch may write the name, which entities of a merge then have.
CONDITIONED: tuple[Edit, ...] = (
    Reword("node Team {\n", 'node Team {\n  @check(name != "o\'h")\n'),
    Reword('  @check(name != "o\'h")\n', ""),
)
RELAXED = tuple(Reword(each.new, each.old) for each in TIGHTENED if isinstance(each, Reword))
# Their values, whole numbers of a few digits, survive each of them.
RETYPED: tuple[Edit, ...] = (
    Reword("age: I32?", "age: I64?"),
    Reword("age: I64?", "age: F64?"),
    Reword("age: F64?", "age: I32?"),
    Reword("lat: F32?", "lat: F64?"),
    Reword("lat: F64?", "lat: F32?"),
)
ADDITIONS: tuple[Edit, ...] = (
    AddProperty("Team", "size: I64?"),
    AddProperty("Team", "motto: String?"),
    AddProperty("Note", "tag: String?"),
    AddProperty("Person", "nick: String?"),
    AddProperty("Team", "size: String?"),
    AddType("node Memo { text: String mark: I64? }"),
    AddType("node Place { zip: String city: String @key(zip, city) }"),
    AddType("edge Likes: Person -> Note { since: Date? }"),
    AddType("edge Likes: Person -> Team"),
)
EDITS: tuple[Edit, ...] = (
    *ADDITIONS,
    RenameProperty("Team", "size", "heads"),
    RenameProperty("Note", "tag", "label"),
    RenameProperty("Person", "nick", "alias"),
    DropProperty("Team", "motto"),
    DropProperty("Team", "size"),
    DropProperty("Person", "nick"),
    RenameNode("Note", "Remark"),
    RenameNode("Memo", "Slip"),
    DropType("Memo"),
    DropType("Likes"),
    *TIGHTENED,
    *RELAXED,
    *RETYPED,
    *CONDITIONED,
)


def edited(catalog: Catalog, edit: Edit) -> str | None:
    """The text of a schema after an edit; None where the edit says nothing."""
    if isinstance(edit, Reword):
        text = _text(catalog)
        return text.replace(edit.old, edit.new) if text.count(edit.old) == 1 else None
    try:
        return _text(_edited(catalog, edit)) + (edit.text if isinstance(edit, AddType) else "")
    except KeyError:
        return None


def _edited(
    catalog: Catalog,
    edit: AddProperty | RenameProperty | DropProperty | AddType | RenameNode | DropType,
) -> Catalog:
    """The catalog after an edit; a name that is missing or taken is a KeyError."""
    match edit:
        case AddProperty(type_name, text):
            added = load_catalog(f"node Any {{ {text} }}").nodes["Any"].properties
            return _with_properties(catalog, type_name, lambda old: old | _absent(old, added))
        case RenameProperty(type_name, old_name, new_name):

            def renamed(old: dict[str, Property]) -> dict[str, Property]:
                found = replace(old.pop(old_name), name=new_name, rename_from=old_name)
                return old | _absent(old, {new_name: found})

            return _with_properties(catalog, type_name, renamed)
        case DropProperty(type_name, name):

            def dropped(old: dict[str, Property]) -> dict[str, Property]:
                del old[name]
                return old

            return _with_properties(catalog, type_name, dropped)
        case AddType(text):
            name = text.split()[1].strip(":")
            _absent({**catalog.nodes, **catalog.edges}, {name: None})
            if "-> Note" in text:
                catalog.nodes["Note"]
            return catalog
        case RenameNode(old_name, new_name):
            return _with_node_renamed(catalog, old_name, new_name)
        case DropType(name):
            nodes, edges = dict(catalog.nodes), dict(catalog.edges)
            del (nodes if name in nodes else edges)[name]
            return replace(catalog, nodes=nodes, edges=edges)


def _absent(old: dict[str, object] | dict[str, Property], new: object) -> dict[str, Property]:
    assert isinstance(new, dict)
    if old.keys() & new.keys():
        raise KeyError(*new)
    return new


def _with_properties(
    catalog: Catalog,
    type_name: str,
    change: Callable[[dict[str, Property]], dict[str, Property]],
) -> Catalog:
    type_ = catalog.nodes[type_name]
    changed = replace(type_, properties=change(dict(type_.properties)))
    return replace(catalog, nodes={**catalog.nodes, type_name: changed})


def _with_node_renamed(catalog: Catalog, old: str, new: str) -> Catalog:
    nodes = dict(catalog.nodes)
    renamed = replace(nodes.pop(old), name=new, rename_from=old)
    if new in nodes:
        raise KeyError(new)
    edges = {
        name: replace(
            edge,
            source=new if edge.source == old else edge.source,
            target=new if edge.target == old else edge.target,
        )
        for name, edge in catalog.edges.items()
    }
    return replace(catalog, nodes={**nodes, new: renamed}, edges=edges)


def _text(catalog: Catalog) -> str:
    types: list[NodeType | EdgeType] = [*catalog.nodes.values(), *catalog.edges.values()]
    return "".join(f"{_head(type_)} {{\n{''.join(_body(type_))}}}\n" for type_ in types)


def _head(type_: NodeType | EdgeType) -> str:
    if isinstance(type_, NodeType):
        return f"node {type_.name}{_hint(type_.rename_from)}"
    most = "" if type_.cardinality.maximum is None else str(type_.cardinality.maximum)
    bounds = f"@card({type_.cardinality.minimum}..{most})"
    return f"edge {type_.name}: {type_.source} -> {type_.target} {bounds}"


def _body(type_: NodeType | EdgeType) -> Iterator[str]:
    for property_ in type_.properties.values():
        rules = "".join(f" @{kind.value}" for kind in sorted(property_.property_constraints))
        rules = rules if property_.merge is None else f" merge {property_.merge}{rules}"
        yield f"  {property_.name}: {property_.type}{rules}{_hint(property_.rename_from)}\n"
    for bounds in type_.constraints.ranges:
        yield f"  @range({bounds.property}, {bounds.minimum}..{bounds.maximum})\n"
    for condition in type_.constraints.conditions:
        yield f"  @check({condition.text})\n"
    for kind, members in type_.constraints.body:
        yield f"  @{kind.value}({', '.join(members)})\n"


def _hint(old: str | None) -> str:
    return "" if old is None else f" @rename_from({json.dumps(old)})"
