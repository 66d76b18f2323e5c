"""The merge of three schemas: the merged schema with its identities, or every conflict.

Ours keeps its numbers. A number of theirs is kept if ours never got as far as that: then none of
our tables has a column of it. It is also kept if theirs is a past of ours, whose columns are to be
seen again. Otherwise the element gets a new one. Every other number that an element ever had
becomes an alias of the one it has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from omnigraph.lang.diagnostics import Severity
from omnigraph.schema.accepted_schema import (
    AcceptedSchema,
    TypeIdentity,
    TypeKey,
    TypeKind,
    properties_of,
    types_of,
)
from omnigraph.schema.catalog import Catalog, NodeType
from omnigraph.schema.identity_map import map_identities
from omnigraph.schema.merging.merged_columns import merge_columns
from omnigraph.schema.merging.merged_declarations import (
    DeclarationMerger,
    DroppedElement,
    UntouchedTypes,
)
from omnigraph.schema.merging.merged_tree import (
    RebuiltType,
    iter_inherited_properties,
    rebuild_types,
)
from omnigraph.schema.merging.schema_sides import (
    ElementToken,
    Side,
    Sides,
    WrittenSchema,
    align_schemas,
)
from omnigraph.schema.merging.schema_text_edit import merge_text
from omnigraph.schema.merging.three_way_choice import Chooser, SchemaConflict
from omnigraph.schema.schema_compiler import compile_schema
from omnigraph.schema.schema_shape import canonicalize_catalog


@dataclass(frozen=True, slots=True)
class SchemaMerge:
    """The merged schema; with conflicts, ours as it is.

    `dropped` is what one branch dropped and the other one kept unchanged.
    """

    schema: WrittenSchema
    dropped: tuple[DroppedElement, ...] = ()
    conflicts: tuple[SchemaConflict, ...] = ()


def merge_written_schemas(
    base: WrittenSchema,
    ours: WrittenSchema,
    theirs: WrittenSchema,
    *,
    numbers: NewNumbers | None = None,
    untouched: UntouchedTypes | None = None,
    is_descended: bool = True,
) -> SchemaMerge:
    """Merge two schemas that come from one; ours may also not be descended from it."""
    sides = align_schemas(base, ours, theirs, is_descended=is_descended)
    chooser = Chooser(sides.ours, sides.theirs)
    merger = DeclarationMerger(sides, chooser, untouched or UntouchedTypes())
    declarations = merger.merge_declarations()
    if chooser.conflicts:
        return SchemaMerge(ours, conflicts=tuple(chooser.conflicts))
    types = rebuild_types(sides, declarations)
    clashes = tuple(_find_name_clashes(types))
    if clashes:
        return SchemaMerge(ours, conflicts=clashes)
    text = merge_text(sides, types)
    compiled = compile_schema(text)
    if compiled.catalog is None:
        errors = (each for each in compiled.diagnostics if each.severity is Severity.ERROR)
        found = tuple(SchemaConflict("schema", each.message) for each in errors)
        return SchemaMerge(ours, conflicts=found)
    merged = _number_merged_schema(sides, types, compiled.catalog, numbers or NewNumbers())
    missing = tuple(_find_missing_values(merged, ours.accepted, theirs.accepted))
    if missing:
        return SchemaMerge(ours, conflicts=missing)
    return SchemaMerge(WrittenSchema(text, merged), tuple(merger.dropped))


def _find_name_clashes(types: Iterable[RebuiltType]) -> Iterator[SchemaConflict]:
    """Names that a branch gave to one thing and the other branch to another one."""
    merged = list(types)
    for key, times in Counter(each.key for each in merged).items():
        if times > 1:
            yield SchemaConflict(str(key), "the branches use the name for different types")
    for each in merged:
        names = Counter(
            member.name.text for key, member in each.members.items() if isinstance(key, int)
        )
        for name, times in names.items():
            if times > 1:
                message = "the branches use the name for different properties"
                yield SchemaConflict(f"{each.key}.{name}", message)


def _find_missing_values(
    merged: AcceptedSchema, ours: AcceptedSchema, theirs: AcceptedSchema
) -> Iterator[SchemaConflict]:
    """Required properties that the entities of one branch have no values of."""
    for side in (ours, theirs):
        known = map_identities(side, merged)
        types = dict(types_of(merged.catalog))
        for old_key, key in known.types.items():
            had = set(known.properties_of(old_key).values())
            for name, declared in types[key].properties.items():
                if name not in had and declared.must_be_given:
                    yield _build_missing_conflict(key, name)


def _build_missing_conflict(key: TypeKey, name: str) -> SchemaConflict:
    return SchemaConflict(
        f"{key}.{name}", "it is required, and the entities of one branch have no values of it"
    )


@dataclass(frozen=True, slots=True)
class NewNumbers:
    """Where numbers that neither side has given start.

    With `is_past`, theirs is an earlier schema of ours: what it had gets its numbers back.
    """

    start: int = 0
    is_past: bool = False


def _number_merged_schema(
    sides: Sides, types: Sequence[RebuiltType], catalog: Catalog, new: NewNumbers
) -> AcceptedSchema:
    """The merged schema with the number of everything in it."""
    ours, theirs = sides.ours.accepted, sides.theirs.accepted
    beyond = max(ours.next_identity_id, theirs.next_identity_id)
    first = max(beyond, new.start)
    kept_from = 0 if new.is_past else ours.next_identity_id
    by_key = {each.key: each for each in types}
    numbering = _Numbering(sides, catalog, by_key, count(first), kept_from)
    identities = {key: numbering.assign_identity(key) for key, _ in types_of(catalog)}
    last = next(numbering.numbers)
    merged = AcceptedSchema(
        domain=ours.domain,
        next_identity_id=beyond if last == first else last,
        catalog=canonicalize_catalog(catalog),
        identities=identities,
        aliases=numbering.aliases,
    )
    return replace(merged, columns=merge_columns(merged, ours, theirs))


@dataclass(frozen=True)
class _Numbering:
    """Gives numbers, one type after another, and collects aliases."""

    sides: Sides
    catalog: Catalog
    types: Mapping[TypeKey, RebuiltType]
    numbers: Iterator[int]
    kept_from: int
    aliases: dict[int, int] = field(default_factory=dict)

    def assign_identity(self, key: TypeKey) -> TypeIdentity:
        """The numbers of one type."""
        token = self.types[key].token
        here, there = (_identity_of(side, token) for side in (self.sides.ours, self.sides.theirs))
        tokens = dict(self._iter_property_tokens(key))
        known = here or self._keep_identity(there)
        old = {} if there is None else self._index_by_token(there)
        mine = {} if known is None else self._index_by_token(known)
        order = sorted(tokens, key=lambda name: (old.get(tokens[name] or 0, 0), name))
        number = self._assign_number(token, None if known is None else known.id)
        properties = {
            name: self._assign_number(
                tokens[name], self._find_property_number(tokens[name], mine, old, known)
            )
            for name in order
        }
        incarnation = None if known is None else known.incarnation_id
        if incarnation is None and key.kind is not TypeKind.INTERFACE:
            incarnation = next(self.numbers)
        return TypeIdentity(number, incarnation, dict(sorted(properties.items())))

    def _keep_identity(self, there: TypeIdentity | None) -> TypeIdentity | None:
        """A type of theirs that keeps its numbers: all of them, so that their order stays."""
        if there is None:
            return None
        numbers = (there.id, *there.property_ids.values(), there.incarnation_id)
        is_beyond = all(number is None or self._is_beyond(number) for number in numbers)
        return there if is_beyond else None

    def _find_property_number(
        self,
        token: ElementToken | None,
        mine: Mapping[ElementToken, int],
        old: Mapping[ElementToken, int],
        known: TypeIdentity | None,
    ) -> int | None:
        if token is None:
            return None
        if token in mine:
            return mine[token]
        number = old.get(token)
        # A type that is renumbered is so as a whole: the order of its key is that of its numbers.
        return number if known and number and self._is_beyond(number) else None

    def _is_beyond(self, number: int) -> bool:
        return number >= self.kept_from

    def _assign_number(self, token: ElementToken | None, known: int | None) -> int:
        number = next(self.numbers) if known is None else known
        if token is not None:
            former = self.sides.tokens.numbers_of(token) - {number}
            self.aliases.update(dict.fromkeys(former, number))
        return number

    def _index_by_token(self, identity: TypeIdentity) -> dict[ElementToken, int]:
        return {
            self.sides.tokens.token_of(number): number for number in identity.property_ids.values()
        }

    def _iter_property_tokens(self, key: TypeKey) -> Iterator[tuple[str, ElementToken | None]]:
        """The token of every property in effect; None for one that neither side had."""
        merged = self.types[key]
        type_ = dict(types_of(self.catalog))[key]
        written = {
            member.name.text: token
            for token, member in merged.members.items()
            if isinstance(token, int)
        }
        given = (
            dict(self._iter_inherited(merged.token, type_)) if isinstance(type_, NodeType) else {}
        )
        for declared in properties_of(type_):
            yield declared.name, written.get(declared.name, given.get(declared.name))

    def _iter_inherited(
        self, node: ElementToken, type_: NodeType
    ) -> Iterator[tuple[str, ElementToken]]:
        """What the interfaces give to a node, by the names of the merged schema."""
        names = {
            (interface.token, token): member.name.text
            for interface in (
                self.types[TypeKey(TypeKind.INTERFACE, name)] for name in type_.implements
            )
            for token, member in interface.members.items()
            if isinstance(token, int)
        }
        for side in (self.sides.theirs, self.sides.ours):
            for (owner, token), origin in iter_inherited_properties(side):
                if owner == node and origin in names:
                    yield names[origin], token


def _identity_of(side: Side, token: ElementToken) -> TypeIdentity | None:
    key = side.keys.get(token)
    return None if key is None else side.accepted.identities[key]
