"""The three schemas of a merge, with every type and property turned into a token.

A token stands for one element under all its numbers: those it has in the three schemas, and their
aliases. Two elements that both branches added under one name share a token too: they were joined.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias, TypeVar

from omnigraph.schema import ast
from omnigraph.schema.accepted_schema import AcceptedSchema, TypeKey, TypeKind
from omnigraph.schema.schema_parser import ParsedSchema, parse_schema

ElementToken: TypeAlias = int
# What a name stands for: an element, or itself where it names none, as `@src` does.
Reference: TypeAlias = int | str

_Named = TypeVar("_Named", str, TypeKey)


@dataclass(frozen=True, slots=True)
class WrittenSchema:
    """A schema as its author wrote it, and what it was accepted as."""

    source: str
    accepted: AcceptedSchema


class ElementTokens:
    """Numbers that mean the same, as sets of which each has its smallest number as token."""

    def __init__(self, schemas: Iterable[AcceptedSchema]) -> None:
        self._parents: dict[int, int] = {}
        self._numbers: dict[int, set[int]] = {}
        for accepted in schemas:
            for alias, number in accepted.aliases.items():
                self.join(alias, number)

    def token_of(self, number: int) -> ElementToken:
        """The token of a number."""
        while (parent := self._parents.get(number, number)) != number:
            number = parent
        return number

    def join(self, first: int, second: int) -> None:
        """From now on two numbers mean the same."""
        smaller, larger = sorted((self.token_of(first), self.token_of(second)))
        if smaller != larger:
            self._parents[larger] = smaller
            numbers = self._numbers.setdefault(smaller, {smaller})
            numbers |= self._numbers.pop(larger, {larger})

    def numbers_of(self, token: ElementToken) -> set[int]:
        """Every number that an element has or had."""
        return self._numbers.get(token, {token})


class Side:
    """One of the three schemas of a merge."""

    def __init__(self, written: WrittenSchema, tokens: ElementTokens) -> None:
        self.source = written.source
        self.accepted = written.accepted
        self._tokens = tokens

    @cached_property
    def parsed(self) -> ParsedSchema:
        """The tree of the text, and its comments."""
        return parse_schema(self.source)

    @cached_property
    def keys(self) -> dict[ElementToken, TypeKey]:
        """The types by token, in the order of their declarations."""
        return {self.type_token_of(key): key for key in self.declarations}

    @cached_property
    def declarations(self) -> dict[TypeKey, ast.Declaration]:
        """What the text declares, in its order."""
        return {key_of(found): found for found in self.parsed.schema.declarations}

    def type_token_of(self, key: TypeKey) -> ElementToken:
        """The token of a type of this schema."""
        return self._tokens.token_of(self.accepted.identities[key].id)

    def property_tokens_of(self, key: TypeKey) -> dict[str, ElementToken]:
        """The tokens of all properties of a type, also of those its interfaces give it."""
        ids = self.accepted.identities[key].property_ids
        return {name: self._tokens.token_of(number) for name, number in ids.items()}

    def resolve_member(self, key: TypeKey, name: str) -> Reference:
        """What a name inside a type stands for."""
        number = self.accepted.find_property_id(key, name)
        return name if number is None else self._tokens.token_of(number)

    def resolve_type(self, kind: TypeKind, name: str) -> Reference:
        """What the name of another type stands for."""
        key = TypeKey(kind, name)
        return self.type_token_of(key) if key in self.accepted.identities else name


@dataclass(frozen=True, slots=True)
class Sides:
    """The three schemas of a merge, and the tokens of what was joined by name."""

    base: Side
    ours: Side
    theirs: Side
    tokens: ElementTokens
    joined: frozenset[ElementToken]


def key_of(declaration: ast.Declaration) -> TypeKey:
    """The kind and the name of a declared type."""
    match declaration:
        case ast.Interface():
            kind = TypeKind.INTERFACE
        case ast.Node():
            kind = TypeKind.NODE
        case ast.Edge():
            kind = TypeKind.EDGE
    return TypeKey(kind, declaration.name.text)


def align_schemas(
    base: WrittenSchema, ours: WrittenSchema, theirs: WrittenSchema, *, is_descended: bool
) -> Sides:
    """Give what is the same in several of three schemas the same token.

    Unless ours is descended from the base, what the base has and ours lacks was never dropped: then
    what ours has under its name is the same, too.
    """
    tokens = ElementTokens((base.accepted, ours.accepted, theirs.accepted))
    alignment = _Alignment(tokens, base.accepted, ours.accepted, theirs.accepted, is_descended)
    joined = [*alignment.join_types(), *alignment.join_properties()]
    return Sides(
        Side(base, tokens),
        Side(ours, tokens),
        Side(theirs, tokens),
        tokens,
        frozenset(map(tokens.token_of, joined)),
    )


@dataclass(frozen=True, slots=True)
class _Alignment:
    """Joins what both branches added under one name."""

    tokens: ElementTokens
    base: AcceptedSchema
    ours: AcceptedSchema
    theirs: AcceptedSchema
    is_descended: bool

    def join_types(self) -> list[int]:
        numbers = [_collect_type_numbers(each) for each in (self.base, self.ours, self.theirs)]
        return list(self._join_same_names(*numbers))

    def join_properties(self) -> list[int]:
        base, ours, theirs = map(self._index_by_token, (self.base, self.ours, self.theirs))
        return [
            number
            for token in ours
            if token in theirs
            for number in self._join_same_names(base.get(token, {}), ours[token], theirs[token])
        ]

    def _index_by_token(self, accepted: AcceptedSchema) -> dict[ElementToken, Mapping[str, int]]:
        identities = accepted.identities.values()
        return {self.tokens.token_of(each.id): each.property_ids for each in identities}

    def _join_same_names(
        self,
        base: Mapping[_Named, int],
        ours: Mapping[_Named, int],
        theirs: Mapping[_Named, int],
    ) -> Iterator[int]:
        here = (
            self._known_tokens_of(base, ours) if self.is_descended else self._known_tokens_of(ours)
        )
        there = self._known_tokens_of(base, theirs)
        for name, number in ours.items():
            other = theirs.get(name)
            if other is None or self.tokens.token_of(number) in there:
                continue
            if self.tokens.token_of(other) not in here:
                self.tokens.join(number, other)
                yield number

    def _known_tokens_of(self, *named: Mapping[_Named, int]) -> set[ElementToken]:
        return {self.tokens.token_of(number) for each in named for number in each.values()}


def _collect_type_numbers(accepted: AcceptedSchema) -> dict[TypeKey, int]:
    return {key: identity.id for key, identity in accepted.identities.items()}
