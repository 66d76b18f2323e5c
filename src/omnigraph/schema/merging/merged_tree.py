"""Chosen parts to a syntax tree, with every name as the merged schema spells it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar, cast

from omnigraph.schema import ast
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.schema.merging.declaration_pieces import (
    ANNOTATION,
    CARDINALITY,
    DEFAULT,
    EMBED,
    ENDS,
    IMPLEMENTS,
    MERGE,
    NAME,
    TYPE,
    PieceKey,
    constraint_key_of,
    resolve_constraint_member,
)
from omnigraph.schema.merging.merged_declarations import MergedDeclaration
from omnigraph.schema.merging.schema_sides import ElementToken, Reference, Side, Sides, key_of
from omnigraph.schema.merging.three_way_choice import ChosenPiece, ChosenPieces
from omnigraph.schema.schema_printer import members_of

# A property of a type.
_PropertyRef: TypeAlias = tuple[ElementToken, ElementToken]
# A property by its token, or a constraint by what it demands.
MemberKey: TypeAlias = ElementToken | PieceKey
_Fragment = TypeVar("_Fragment")


@dataclass(frozen=True, slots=True)
class RebuiltType:
    """A type of the merged schema as a tree, its members by key in their order."""

    token: ElementToken
    declaration: ast.Declaration
    members: Mapping[MemberKey, ast.Member]

    @property
    def key(self) -> TypeKey:
        """The kind and the name in the merged schema."""
        return key_of(self.declaration)


def rebuild_types(sides: Sides, declarations: Iterable[MergedDeclaration]) -> list[RebuiltType]:
    """The trees of merged types."""
    found = list(declarations)
    written = {
        (each.token, token): _name_of(pieces)
        for each in found
        for token, pieces in each.properties.items()
    }
    given = {
        place: written[origin]
        for side in (sides.theirs, sides.ours)
        for place, origin in iter_inherited_properties(side)
        if origin in written
    }
    names = _MergedNames({each.token: _name_of(each.header) for each in found}, given | written)
    return [_Rebuilder(sides, names, each).rebuild_type() for each in found]


def iter_inherited_properties(side: Side) -> Iterator[tuple[_PropertyRef, _PropertyRef]]:
    """Every property that an interface gives to a node, with that of the interface."""
    for node, key in side.keys.items():
        if key.kind is not TypeKind.NODE:
            continue
        declared = side.accepted.catalog.nodes[key.name]
        tokens = side.property_tokens_of(key)
        for interface in declared.implements:
            owner = TypeKey(TypeKind.INTERFACE, interface)
            for name, token in side.property_tokens_of(owner).items():
                if declared.properties[name].is_injected:
                    yield (node, tokens[name]), (side.type_token_of(owner), token)


def member_key_of(side: Side, owner: TypeKey, member: ast.Member) -> MemberKey:
    """What a member of a declaration is, whatever it is called."""
    if isinstance(member, ast.Property):
        return side.property_tokens_of(owner)[member.name.text]
    return constraint_key_of(side, owner, member)


@dataclass(frozen=True, slots=True)
class _MergedNames:
    """What everything is called in the merged schema."""

    types: Mapping[ElementToken, str]
    properties: Mapping[_PropertyRef, str]


@dataclass(frozen=True, slots=True)
class _Rebuilder:
    """Rebuilds one type."""

    sides: Sides
    names: _MergedNames
    merged: MergedDeclaration

    def rebuild_type(self) -> RebuiltType:
        members = dict(self._rebuild_members())
        return RebuiltType(
            self.merged.token, self._rebuild_declaration(tuple(members.values())), members
        )

    # ---- the whole ----

    def _rebuild_declaration(self, members: tuple[ast.Member, ...]) -> ast.Declaration:
        pattern = self._find_declaration(self.sides.ours) or self._find_declaration(
            self.sides.theirs
        )
        assert pattern is not None, "every merged type is declared on one of the branches"
        header = self.merged.header
        name = ast.Name(_name_of(header))
        annotations = self._rebuild_annotations(header, pattern)
        match pattern:
            case ast.Interface():
                properties = tuple(each for each in members if isinstance(each, ast.Property))
                return ast.Interface(name, properties)
            case ast.Node():
                return ast.Node(name, annotations, self._rebuild_implements(), members)
            case ast.Edge():
                source, target = self._rebuild_ends()
                found = header.get((CARDINALITY,))
                cardinality = None if found is None else _fragment_of(found, ast.Cardinality)
                return ast.Edge(name, source, target, cardinality, annotations, members)

    def _find_declaration(self, side: Side) -> ast.Declaration | None:
        key = side.keys.get(self.merged.token)
        return None if key is None else side.declarations[key]

    def _rebuild_implements(self) -> tuple[ast.Name, ...]:
        tokens = (key[1] for key in self.merged.header if key[0] == IMPLEMENTS)
        return tuple(ast.Name(self._resolve_type_name(cast(Reference, token))) for token in tokens)

    def _rebuild_ends(self) -> tuple[ast.Name, ast.Name]:
        source, target = cast(tuple[Reference, Reference], self.merged.header[ENDS,].piece.meaning)
        return ast.Name(self._resolve_type_name(source)), ast.Name(self._resolve_type_name(target))

    def _resolve_type_name(self, reference: Reference) -> str:
        # What one branch dropped and the other one names keeps its name, to be found unknown.
        if isinstance(reference, int) and reference not in self.names.types:
            sides = (self.sides.ours, self.sides.theirs)
            return next(side.keys[reference].name for side in sides if reference in side.keys)
        return reference if isinstance(reference, str) else self.names.types[reference]

    # ---- members ----

    def _rebuild_members(self) -> Iterator[tuple[MemberKey, ast.Member]]:
        seen: set[MemberKey] = set()
        for side in (self.sides.ours, self.sides.theirs):
            declaration = self._find_declaration(side)
            for member in () if declaration is None else members_of(declaration):
                key = member_key_of(side, side.keys[self.merged.token], member)
                if key not in seen:
                    seen.add(key)
                    yield from self._rebuild_member(key, member)

    def _rebuild_member(
        self, key: MemberKey, pattern: ast.Member
    ) -> Iterator[tuple[MemberKey, ast.Member]]:
        if isinstance(key, int):
            if key in self.merged.properties:
                assert isinstance(pattern, ast.Property)
                yield key, self._rebuild_property(self.merged.properties[key], pattern)
        elif key in self.merged.constraints:
            yield key, self._rebuild_constraint(self.merged.constraints[key])

    def _rebuild_property(self, pieces: ChosenPieces, pattern: ast.Property) -> ast.Property:
        type_ = _fragment_of(pieces[TYPE,], ast.TypeSyntax)
        name = _name_of(pieces)
        annotations = self._rebuild_annotations(pieces, pattern)
        rule = pieces.get((MERGE,))
        merge = None if rule is None else _fragment_of(rule, ast.Name)
        value = pieces.get((DEFAULT,))
        default = None if value is None else _fragment_of(value, ast.ExpressionText)
        return ast.Property(ast.Name(name), type_, annotations, merge, default)

    def _rebuild_constraint(self, chosen: ChosenPiece) -> ast.Constraint:
        constraint = _fragment_of(chosen, ast.Constraint)
        arguments = tuple(
            self._rebuild_argument(each, chosen.side) for each in constraint.arguments
        )
        return replace(constraint, arguments=arguments)

    def _rebuild_argument(
        self, argument: ast.ConstraintArgument, side: Side
    ) -> ast.ConstraintArgument:
        if not isinstance(argument, ast.Name):
            return argument
        found = resolve_constraint_member(side, side.keys[self.merged.token], argument.text)
        if isinstance(found, str):
            return argument
        return ast.Name(self._resolve_property_name(found, argument.text))

    def _resolve_property_name(self, token: ElementToken, name: str) -> str:
        return self.names.properties.get((self.merged.token, token), name)

    # ---- annotations ----

    def _rebuild_annotations(
        self, pieces: ChosenPieces, pattern: ast.Declaration | ast.Property
    ) -> tuple[ast.Annotation, ...]:
        found = [
            self._rebuild_annotation(annotation, chosen.side)
            for key, chosen in pieces.items()
            if key[0] == ANNOTATION
            for annotation in cast(tuple[ast.Annotation, ...], chosen.piece.fragment)
        ]
        written = () if isinstance(pattern, ast.Interface) else pattern.annotations
        found += cast(tuple[ast.Annotation, ...], pieces[NAME,].piece.fragment)
        # As they were written, if there is no other change.
        return written if set(found) == set(written) else tuple(found)

    def _rebuild_annotation(self, annotation: ast.Annotation, side: Side) -> ast.Annotation:
        value = annotation.value
        if annotation.name.text != EMBED or value is None:
            return annotation
        found = side.resolve_member(side.keys[self.merged.token], value.text)
        if isinstance(found, str):
            return annotation
        name = self._resolve_property_name(found, value.text)
        return annotation if name == value.text else replace(annotation, value=ast.Name(name))


def _name_of(pieces: ChosenPieces) -> str:
    return str(pieces[NAME,].piece.meaning)


def _fragment_of(chosen: ChosenPiece, kind: type[_Fragment]) -> _Fragment:
    assert isinstance(chosen.piece.fragment, kind)
    return chosen.piece.fragment
