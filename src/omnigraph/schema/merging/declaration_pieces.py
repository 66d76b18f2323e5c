"""Splits a declaration into parts that are compared one by one, each with its meaning.

A meaning names types and properties by their tokens, so a rename of what a part refers to does
not change the part. Rename hints mean nothing: they say what happened, not what is.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from omnigraph.schema import ast
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.schema.catalog import SOURCE, TARGET
from omnigraph.schema.merging.schema_sides import ElementToken, Reference, Side, key_of

# Names of parts; longer keys start with one of these.
NAME = "name"
TYPE = "type"
IMPLEMENTS = "implements"
ENDS = "ends"
CARDINALITY = "cardinality"
ANNOTATION = "annotation"
CONSTRAINT = "constraint"
MERGE = "merge"
DEFAULT = "default"

RENAME_HINT = "rename_from"
EMBED = "embed"
# Annotations that say something to people only.
DOCUMENTATION = frozenset({"description", "instruction"})
_BARE_ENDS = {"src": SOURCE, "dst": TARGET}

PieceKey: TypeAlias = tuple[Hashable, ...]
Fragment: TypeAlias = (
    ast.Name
    | ast.TypeSyntax
    | tuple[ast.Name, ast.Name]
    | ast.Cardinality
    | tuple[ast.Annotation, ...]
    | ast.Constraint
    | ast.ExpressionText
)


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a declaration: what it means, and how it is written."""

    meaning: Hashable
    fragment: Fragment


Pieces: TypeAlias = Mapping[PieceKey, Piece]
NO_PIECES: Pieces = {}


@dataclass(frozen=True, slots=True)
class DeclarationPieces:
    """All parts of one declaration; properties are those it writes itself."""

    header: Pieces
    properties: Mapping[ElementToken, Pieces]
    constraints: Pieces

    @property
    def meanings(self) -> Hashable:
        """Everything the declaration means, to be compared as a whole."""
        return (
            meanings_of(self.header),
            frozenset((token, meanings_of(each)) for token, each in self.properties.items()),
            meanings_of(self.constraints),
        )


NO_DECLARATION = DeclarationPieces({}, {}, {})


def meanings_of(pieces: Pieces) -> frozenset[tuple[PieceKey, Hashable]]:
    """What some parts mean together."""
    return frozenset((key, piece.meaning) for key, piece in pieces.items())


def split_declaration(side: Side, declaration: ast.Declaration) -> DeclarationPieces:
    """The parts of a declaration of one side."""
    key = key_of(declaration)
    tokens = side.property_tokens_of(key)
    properties, constraints = _split_members(declaration)
    return DeclarationPieces(
        dict(_split_header(side, declaration)),
        {tokens[each.name.text]: split_property(side, key, each) for each in properties},
        {constraint_key_of(side, key, each): Piece(True, each) for each in constraints},
    )


def split_property(side: Side, owner: TypeKey, declared: ast.Property) -> Pieces:
    """The parts of a property."""
    return {
        (NAME,): Piece(declared.name.text, _select_rename_hints(declared.annotations)),
        (TYPE,): Piece(_type_meaning_of(declared.type), declared.type),
        **({} if declared.merge is None else {(MERGE,): _split_merge_rule(declared.merge)}),
        **({} if declared.default is None else {(DEFAULT,): _split_default(declared.default)}),
        **_split_annotations(side, owner, declared.annotations),
    }


def _split_merge_rule(rule: ast.Name) -> Piece:
    return Piece(rule.text, rule)


def _split_default(default: ast.ExpressionText) -> Piece:
    return Piece(default.text, default)


def constraint_key_of(side: Side, owner: TypeKey, constraint: ast.Constraint) -> PieceKey:
    """The kind and the members of a constraint: equal constraints have the same key."""
    members: list[Reference] = []
    details: list[Hashable] = []
    for argument in constraint.arguments:
        match argument:
            case ast.Name(text):
                members.append(resolve_constraint_member(side, owner, text))
            case ast.SystemField(name):
                members.append(f"@{name}")
            case ast.RangeBounds(low, high):
                details.append((low, high))
            case ast.Literal(value):
                details.append(value)
            case ast.ExpressionText(text, names, labels):
                details.append(text)
                members += [resolve_constraint_member(side, owner, n) for n in (*names, *labels)]
            case _ as unreachable:
                assert_never(unreachable)
    return (CONSTRAINT, constraint.name.text, frozenset(members), tuple(details))


def resolve_constraint_member(side: Side, owner: TypeKey, name: str) -> Reference:
    """What a bare name in a constraint stands for; in an edge, `src` may be the end."""
    found = side.resolve_member(owner, name)
    is_end = found == name and owner.kind is TypeKind.EDGE and name in _BARE_ENDS
    return _BARE_ENDS[name] if is_end else found


def _split_members(
    declaration: ast.Declaration,
) -> tuple[list[ast.Property], list[ast.Constraint]]:
    members: Sequence[ast.Member]
    if isinstance(declaration, ast.Interface):
        members = declaration.properties
    else:
        members = declaration.members
    return (
        [each for each in members if isinstance(each, ast.Property)],
        [each for each in members if isinstance(each, ast.Constraint)],
    )


def _split_header(side: Side, declaration: ast.Declaration) -> Iterator[tuple[PieceKey, Piece]]:
    key = key_of(declaration)
    hints = (
        ()
        if isinstance(declaration, ast.Interface)
        else _select_rename_hints(declaration.annotations)
    )
    yield (NAME,), Piece(key.name, hints)
    match declaration:
        case ast.Interface():
            return
        case ast.Node():
            for interface in declaration.implements:
                token = side.resolve_type(TypeKind.INTERFACE, interface.text)
                yield (IMPLEMENTS, token), Piece(True, interface)
        case ast.Edge():
            ends = (declaration.source, declaration.target)
            tokens = tuple(side.resolve_type(TypeKind.NODE, end.text) for end in ends)
            yield (ENDS,), Piece(tokens, ends)
            bounds = declaration.cardinality
            # Any number of edges is what an edge without a cardinality may have.
            if bounds is not None and (bounds.minimum, bounds.maximum) != (0, None):
                yield (CARDINALITY,), Piece((bounds.minimum, bounds.maximum), bounds)
        case _ as unreachable:
            assert_never(unreachable)
    yield from _split_annotations(side, key, declaration.annotations).items()


def _select_rename_hints(annotations: Sequence[ast.Annotation]) -> tuple[ast.Annotation, ...]:
    """The rename hints, which explain a name and stay with it."""
    return tuple(each for each in annotations if each.name.text == RENAME_HINT)


def _split_annotations(
    side: Side, owner: TypeKey, annotations: Sequence[ast.Annotation]
) -> dict[PieceKey, Piece]:
    """Annotations by name; one that is repeated is one part."""
    named: dict[str, list[ast.Annotation]] = {}
    for annotation in annotations:
        if annotation.name.text != RENAME_HINT:
            named.setdefault(annotation.name.text, []).append(annotation)
    return {
        (ANNOTATION, name): Piece(
            frozenset(_annotation_meaning_of(side, owner, each) for each in found), tuple(found)
        )
        for name, found in named.items()
    }


def _annotation_meaning_of(side: Side, owner: TypeKey, annotation: ast.Annotation) -> Hashable:
    options = frozenset((key.text, value.text) for key, value in annotation.options)
    value = annotation.value.text if annotation.value else None
    if annotation.name.text == EMBED and value is not None:
        return side.resolve_member(owner, value), options
    return value, options


def _type_meaning_of(type_: ast.TypeSyntax) -> Hashable:
    if isinstance(type_.core, ast.EnumSyntax):
        return frozenset(value.text for value in type_.core.values), type_.is_nullable
    return type_.core, type_.is_nullable
