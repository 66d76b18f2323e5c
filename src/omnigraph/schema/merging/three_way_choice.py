"""The three-way rule: what one branch changed is taken, what both changed differently conflicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from omnigraph.schema import ast
from omnigraph.schema.merging.declaration_pieces import (
    ANNOTATION,
    CARDINALITY,
    CONSTRAINT,
    DEFAULT,
    DOCUMENTATION,
    ENDS,
    MERGE,
    NAME,
    TYPE,
    Piece,
    PieceKey,
    Pieces,
)
from omnigraph.schema.merging.schema_sides import Side


@dataclass(frozen=True, slots=True)
class SchemaConflict:
    """What two schemas disagree about.

    `element` is `node:City`, `node:City.size` or `schema`; base, ours and theirs are its texts,
    None where it is not declared.
    """

    element: str
    message: str
    base: str | None = None
    ours: str | None = None
    theirs: str | None = None

    def __str__(self) -> str:
        return f"{self.element}: {self.message}"


@dataclass(frozen=True, slots=True)
class Element:
    """A type or property that is being merged, with its texts for a conflict."""

    name: str
    base: str | None = None
    ours: str | None = None
    theirs: str | None = None

    def build_conflict(self, message: str) -> SchemaConflict:
        """A disagreement about this element."""
        return SchemaConflict(self.name, message, self.base, self.ours, self.theirs)


@dataclass(frozen=True, slots=True)
class ChosenPiece:
    """A part of the merged schema, and whose names it is written in."""

    piece: Piece
    side: Side


ChosenPieces: TypeAlias = dict[PieceKey, ChosenPiece]


@dataclass(frozen=True, slots=True)
class Versions:
    """The parts of one element in the three schemas.

    `is_joined` when the branches added it separately: then it has to be the same thing. `is_known`
    when the base has it: then ours may be as the base is, and get what theirs changed.
    """

    base: Pieces
    ours: Pieces
    theirs: Pieces
    is_joined: bool = False
    is_known: bool = True


@dataclass(frozen=True)
class Chooser:
    """Chooses parts and collects what cannot be chosen."""

    ours: Side
    theirs: Side
    conflicts: list[SchemaConflict] = field(default_factory=list)

    def choose(self, versions: Versions, element: Callable[[], Element]) -> ChosenPieces:
        """The parts of the merged element: those of ours in our order, then new ones of theirs.

        The element is asked for only if there is a conflict.
        """
        chosen: ChosenPieces = {}
        for key in dict.fromkeys((*versions.ours, *versions.theirs)):
            base, ours, theirs = (
                each.get(key) for each in (versions.base, versions.ours, versions.theirs)
            )
            is_as_before = versions.is_known and (ours and ours.meaning) == (base and base.meaning)
            is_joined = versions.is_joined and not is_as_before
            found = self._choose_piece(key, (base, ours, theirs), is_joined=is_joined)
            if isinstance(found, ChosenPiece):
                chosen[key] = found
            elif found is not None:
                self.conflicts.append(element().build_conflict(found))
        return chosen

    def _choose_piece(
        self,
        key: PieceKey,
        pieces: tuple[Piece | None, Piece | None, Piece | None],
        *,
        is_joined: bool,
    ) -> ChosenPiece | str | None:
        """The part to take, None for none, or why the branches disagree."""
        base, ours, theirs = pieces
        was, here, there = (piece and piece.meaning for piece in pieces)
        is_free = not is_joined or (key[0] == ANNOTATION and key[1] in DOCUMENTATION)
        if here == there or (there == was and is_free):
            return None if ours is None else ChosenPiece(ours, self.ours)
        if here == was and is_free:
            return None if theirs is None else ChosenPiece(theirs, self.theirs)
        if key == (TYPE,) and ours is not None and theirs is not None and not is_joined:
            wider = _widen_enum(base, ours, theirs)
            if wider is not None:
                return ChosenPiece(wider, self.ours)
        return _describe_disagreement(key, ours, theirs)


def _widen_enum(base: Piece | None, ours: Piece, theirs: Piece) -> Piece | None:
    """The enum with the values of both sides, if both only added some."""
    match ours.fragment, theirs.fragment:
        case (
            ast.TypeSyntax(ast.EnumSyntax(here), nullable),
            ast.TypeSyntax(ast.EnumSyntax(there), also_nullable),
        ) if nullable == also_nullable:
            old = set(_enum_values_of(base)) if base else set()
            known = {value.text for value in here}
            if not old <= known & {value.text for value in there}:
                return None
            added = tuple(value for value in there if value.text not in known)
            wider = ast.TypeSyntax(ast.EnumSyntax((*here, *added)), nullable)
            return Piece((frozenset(_iter_enum_values(wider)), nullable), wider)
        case _:
            return None


def _enum_values_of(piece: Piece) -> Iterator[str]:
    assert isinstance(piece.fragment, ast.TypeSyntax)
    yield from _iter_enum_values(piece.fragment)


def _iter_enum_values(type_: ast.TypeSyntax) -> Iterator[str]:
    if isinstance(type_.core, ast.EnumSyntax):
        yield from (value.text for value in type_.core.values)


def _describe_disagreement(key: PieceKey, ours: Piece | None, theirs: Piece | None) -> str:
    match key:
        case (str(part), *_) if part == NAME and ours and theirs:
            return f"this branch calls it '{ours.meaning}', and the other one '{theirs.meaning}'"
        case (str(part), *_) if part == TYPE:
            what = "its type"
        case (str(part), *_) if part == ENDS:
            what = "its ends"
        case (str(part), *_) if part == MERGE:
            what = "its merge rule"
        case (str(part), *_) if part == DEFAULT:
            what = "its default"
        case (str(part), *_) if part == CARDINALITY:
            what = "its @card"
        case (str(part), str(name), *_) if part == ANNOTATION:
            what = f"its @{name}"
        case (str(part), str(name), *_) if part == CONSTRAINT:
            what = f"its @{name}"
        case _:
            what = "what it implements"
    return f"{what} is not the same on both branches"
