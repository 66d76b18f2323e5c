"""Which types and properties the merged schema has, and the parts of each."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from omnigraph.schema import ast
from omnigraph.schema.accepted_schema import TypeKey
from omnigraph.schema.merging.declaration_pieces import (
    NO_DECLARATION,
    NO_PIECES,
    DeclarationPieces,
    Pieces,
    meanings_of,
    split_declaration,
)
from omnigraph.schema.merging.schema_sides import ElementToken, Side, Sides
from omnigraph.schema.merging.three_way_choice import Chooser, ChosenPieces, Element, Versions
from omnigraph.schema.schema_printer import print_declaration, print_member

SideName = Literal["ours", "theirs"]


@dataclass(frozen=True, slots=True)
class UntouchedTypes:
    """The types whose entities a side has not changed since the base, by their names there."""

    ours: Container[TypeKey] = frozenset()
    theirs: Container[TypeKey] = frozenset()


@dataclass(frozen=True, slots=True)
class DroppedElement:
    """A type, or a property of it, that one side dropped and the other one kept as it was.

    `type_key` and `property` are the names on the side that kept it.
    """

    by: SideName
    type_key: TypeKey
    property: str | None = None

    def __str__(self) -> str:
        return str(self.type_key) if self.property is None else f"{self.type_key}.{self.property}"


@dataclass(frozen=True, slots=True)
class MergedDeclaration:
    """A type of the merged schema, in parts."""

    token: ElementToken
    header: ChosenPieces
    properties: Mapping[ElementToken, ChosenPieces]
    constraints: ChosenPieces


@dataclass(frozen=True)
class DeclarationMerger:
    """Merges the types of three schemas."""

    sides: Sides
    chooser: Chooser
    untouched: UntouchedTypes
    dropped: list[DroppedElement] = field(default_factory=list)

    def merge_declarations(self) -> list[MergedDeclaration]:
        """The types of the merged schema: ours in our order, then new ones of theirs."""
        tokens = dict.fromkeys((*self.sides.ours.keys, *self.sides.theirs.keys))
        return [self._merge_type(token) for token in tokens if self._has_type(token)]

    # ---- presence ----

    def _has_type(self, token: ElementToken) -> bool:
        sides = self.sides
        if token not in sides.base.keys or (
            token in sides.ours.keys and token in sides.theirs.keys
        ):
            return True
        by: SideName = "theirs" if token in sides.ours.keys else "ours"
        keeping, dropping = (
            (sides.ours, sides.theirs) if by == "theirs" else (sides.theirs, sides.ours)
        )
        self._check_droppable(token, keeping, by)
        self._check_not_recreated(token, keeping, dropping, by)
        self.dropped.append(DroppedElement(by, keeping.keys[token]))
        return False

    def _check_droppable(self, token: ElementToken, keeping: Side, by: SideName) -> None:
        if _pieces_of(keeping, token).meanings != _pieces_of(self.sides.base, token).meanings:
            self._report_conflict(self._build_type_element(token), _describe_drop(by))

    def _check_not_recreated(
        self, token: ElementToken, keeping: Side, dropping: Side, by: SideName
    ) -> None:
        """Refuse to give entities of one life of a type to another one of the same name."""
        key = keeping.keys[token]
        untouched = self.untouched.theirs if by == "ours" else self.untouched.ours
        if key in dropping.declarations and self.sides.base.keys[token] not in untouched:
            who = "this branch" if by == "ours" else "the other branch"
            message = (
                f"{who} dropped the type and created it again, and its entities changed on"
                " the one that kept it"
            )
            self._report_conflict(self._build_type_element(token), message)

    # ---- parts ----

    def _merge_type(self, token: ElementToken) -> MergedDeclaration:
        sides = self.sides
        base, ours, theirs = (
            _pieces_of(side, token) for side in (sides.base, sides.ours, sides.theirs)
        )
        is_joined, is_known = token in sides.joined, token in sides.base.keys
        element = partial(self._build_type_element, token)

        def chosen(was: Pieces, here: Pieces, there: Pieces) -> ChosenPieces:
            versions = Versions(was, here, there, is_joined, is_known)
            return self.chooser.choose(versions, element)

        return MergedDeclaration(
            token,
            chosen(base.header, ours.header, theirs.header),
            dict(self._merge_properties(token, (base, ours, theirs))),
            chosen(base.constraints, ours.constraints, theirs.constraints),
        )

    def _merge_properties(
        self,
        owner: ElementToken,
        pieces: tuple[DeclarationPieces, DeclarationPieces, DeclarationPieces],
    ) -> Iterator[tuple[ElementToken, ChosenPieces]]:
        base, ours, theirs = (each.properties for each in pieces)
        is_everywhere = owner in self.sides.ours.keys and owner in self.sides.theirs.keys
        for token in dict.fromkeys((*ours, *theirs)):
            versions = Versions(
                base.get(token, NO_PIECES),
                ours.get(token, NO_PIECES),
                theirs.get(token, NO_PIECES),
                is_joined=token in self.sides.joined,
                is_known=token in base,
            )
            if not is_everywhere or self._has_property(owner, token, versions):
                element = partial(self._build_property_element, owner, token)
                yield token, self.chooser.choose(versions, element)

    def _has_property(self, owner: ElementToken, token: ElementToken, versions: Versions) -> bool:
        if versions.ours and versions.theirs:
            return True
        if not versions.base:
            if owner in self.sides.joined and owner not in self.sides.base.keys:
                message = "both branches added the type, and only one of them with this property"
                self._report_conflict(self._build_property_element(owner, token), message)
            return True
        by: SideName = "theirs" if versions.ours else "ours"
        kept, side = (
            (versions.ours, self.sides.ours)
            if by == "theirs"
            else (versions.theirs, self.sides.theirs)
        )
        if meanings_of(kept) != meanings_of(versions.base):
            self._report_conflict(self._build_property_element(owner, token), _describe_drop(by))
        key = side.keys[owner]
        self.dropped.append(DroppedElement(by, key, _property_name_of(side, key, token)))
        return False

    # ---- conflicts ----

    def _report_conflict(self, element: Element, message: str) -> None:
        self.chooser.conflicts.append(element.build_conflict(message))

    def _build_type_element(self, token: ElementToken) -> Element:
        sides = self.sides
        keys = [side.keys[token] for side in _list_sides(sides) if token in side.keys]
        texts = [
            print_declaration(side.declarations[side.keys[token]]) if token in side.keys else None
            for side in _list_sides(sides)
        ]
        return Element(str(keys[0]), texts[2], texts[0], texts[1])

    def _build_property_element(self, owner: ElementToken, token: ElementToken) -> Element:
        found = [_find_property(side, owner, token) for side in _list_sides(self.sides)]
        names = [
            f"{side.keys[owner]}.{declared.name.text}"
            for side, declared in zip(_list_sides(self.sides), found, strict=True)
            if declared is not None
        ]
        texts = [None if declared is None else print_member(declared) for declared in found]
        return Element(names[0], texts[2], texts[0], texts[1])


def _list_sides(sides: Sides) -> tuple[Side, Side, Side]:
    """The sides in the order in which an element takes its name from them."""
    return sides.ours, sides.theirs, sides.base


def _pieces_of(side: Side, token: ElementToken) -> DeclarationPieces:
    key = side.keys.get(token)
    return NO_DECLARATION if key is None else split_declaration(side, side.declarations[key])


def _find_property(side: Side, owner: ElementToken, token: ElementToken) -> ast.Property | None:
    key = side.keys.get(owner)
    if key is None:
        return None
    tokens = side.property_tokens_of(key)
    declaration = side.declarations[key]
    members: Iterable[ast.Member] = (
        declaration.properties if isinstance(declaration, ast.Interface) else declaration.members
    )
    properties = (each for each in members if isinstance(each, ast.Property))
    return next((each for each in properties if tokens[each.name.text] == token), None)


def _property_name_of(side: Side, key: TypeKey, token: ElementToken) -> str:
    return next(name for name, each in side.property_tokens_of(key).items() if each == token)


def _describe_drop(by: SideName) -> str:
    dropping, keeping = "this branch", "the other one"
    if by == "theirs":
        dropping, keeping = "the other branch", "this one"
    return f"{dropping} dropped it, and {keeping} changed its declaration"
