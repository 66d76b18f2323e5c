"""Written properties to drafts: names, types and annotations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from omnigraph.lang.diagnostics import Collector
from omnigraph.lang.source_text import Span
from omnigraph.schema import ast, catalog
from omnigraph.schema.catalog import MergeRule, Property
from omnigraph.schema.check.schema_annotations import (
    PROPERTY_CONSTRAINTS,
    AnnotationTarget,
    build_annotation_values,
    check_annotations,
    embed_of,
    rename_hint_of,
)
from omnigraph.schema.property_types import (
    VECTOR_DIMENSION_MAX,
    EnumType,
    ListType,
    PropertyType,
    Scalar,
    ScalarType,
    ValueType,
    VectorType,
    make_scalar_type,
)

_EDGE_WORDS = ("from", "to")

# Stands for a refused type; such a draft says that it has no type.
_NO_TYPE = make_scalar_type(Scalar.STRING)


def build_drafts(
    owner: str, place: AnnotationTarget, members: Sequence[ast.Member], collector: Collector
) -> dict[str, PropertyDraft]:
    """The properties a declaration writes, by name; of two with one name the first is kept."""
    drafts: dict[str, PropertyDraft] = {}
    for member in members:
        if not isinstance(member, ast.Property):
            continue
        draft = _build_draft(owner, place, member, collector)
        if draft.name in drafts:
            message = f"{owner}: duplicate property '{draft.name}'"
            collector.report_error(
                "S006", member.name.span, message, hint="rename or remove one of them"
            )
        drafts.setdefault(draft.name, draft)
    return drafts


def _build_draft(
    owner: str, place: AnnotationTarget, syntax: ast.Property, collector: Collector
) -> PropertyDraft:
    _check_name(owner, place, syntax.name, collector)
    check_annotations(syntax.annotations, place, f"{owner}.{syntax.name.text}", collector)
    type_ = resolve_type(syntax.type, collector)
    written = {annotation.name.text for annotation in syntax.annotations}
    meant = catalog.Property(
        syntax.name.text,
        type_ or _NO_TYPE,
        annotations=build_annotation_values(syntax.annotations),
        property_constraints=frozenset(kind for kind in PROPERTY_CONSTRAINTS if kind in written),
        embed=embed_of(syntax.annotations),
        rename_from=rename_hint_of(syntax.annotations),
        merge=None if syntax.merge is None else MergeRule(syntax.merge.text),
        default=None if syntax.default is None else _build_default(syntax.default),
    )
    return PropertyDraft(owner, syntax, meant, has_type=type_ is not None)


def _build_default(default: ast.ExpressionText) -> catalog.Default:
    """A default with every word that may be a property; which ones are, the whole type says."""
    return catalog.Default(default.text, tuple(sorted({*default.names, *default.labels})))


def _check_name(owner: str, place: AnnotationTarget, name: ast.Name, collector: Collector) -> None:
    if name.text.startswith("_"):
        message = f"{owner}.{name.text}: names that start with '_' are reserved for the system"
        collector.report_error("S007", name.span, message, hint="remove the leading '_'")
    elif place is AnnotationTarget.EDGE_PROPERTY and name.text in _EDGE_WORDS:
        message = f"{owner}.{name.text}: '{name.text}' is reserved for an end of the edge"
        hint = f"mutations write the ends of an edge as 'from' and 'to'; rename '{name.text}'"
        collector.report_error("S007", name.span, message, hint=hint)


def resolve_type(syntax: ast.TypeSyntax, collector: Collector) -> PropertyType | None:
    """The type a text means, or None when it is refused."""
    value = _resolve_value_type(syntax, collector)
    return PropertyType(value, syntax.is_nullable) if value else None


def _resolve_value_type(syntax: ast.TypeSyntax, collector: Collector) -> ValueType | None:
    match syntax.core:
        case ast.ScalarSyntax(scalar):
            return ScalarType(scalar)
        case ast.ListSyntax(Scalar.BLOB):
            collector.report_error("S002", syntax.span, "list of Blob is not supported")
            return None
        case ast.ListSyntax(element):
            return ListType(element)
        case ast.VectorSyntax(dimension):
            if 1 <= dimension <= VECTOR_DIMENSION_MAX:
                return VectorType(dimension)
            message = f"a vector dimension is between 1 and {VECTOR_DIMENSION_MAX}"
            collector.report_error("S002", syntax.span, message)
            return None
        case ast.EnumSyntax(values):
            return _resolve_enum(values, collector)
        case _ as unreachable:
            assert_never(unreachable)


def _resolve_enum(values: tuple[ast.Name, ...], collector: Collector) -> EnumType | None:
    seen: set[str] = set()
    for value in values:
        if value.text in seen:
            message = f"duplicate enum value '{value.text}'"
            collector.report_error("S002", value.span, message, hint="list every value once")
        seen.add(value.text)
    return EnumType(tuple(sorted(seen))) if len(seen) == len(values) else None


@dataclass(frozen=True, slots=True)
class PropertyDraft:
    """What the text says about a property, and the property it means."""

    # The type or interface that writes the property.
    owner: str
    syntax: ast.Property
    meant: Property
    # False when the written type was refused: what depends on the type is then not checked.
    has_type: bool

    @property
    def name(self) -> str:
        """The property's name."""
        return self.meant.name

    @property
    def path(self) -> str:
        """How messages name the property."""
        return f"{self.owner}.{self.name}"

    def find_annotation(self, name: str) -> ast.Annotation | None:
        """The first annotation of a name."""
        return next((found for found in self.syntax.annotations if found.name.text == name), None)

    def span_of(self, name: str) -> Span:
        """Where an annotation stands, or the property if it has none."""
        annotation = self.find_annotation(name)
        return annotation.span if annotation else self.syntax.span


def inherit_properties(
    own: Mapping[str, PropertyDraft],
    node: ast.Node,
    interfaces: Mapping[str, Mapping[str, PropertyDraft]],
    collector: Collector,
) -> dict[str, PropertyDraft]:
    """The node's own properties, then those it does not write itself, in source order."""
    effective = dict(own)
    satisfied: dict[str, list[str]] = {}
    for interface in dict.fromkeys(node.implements):
        for given in interfaces.get(interface.text, {}).values():
            mine = effective.get(given.name)
            if mine is None:
                mine = replace(given, meant=replace(given.meant, is_injected=True))
            elif mine.meant.is_injected:
                mine = _merge_drafts(mine, given, interface, collector)
            else:
                _check_same_type(mine, given, collector)
            effective[given.name] = mine
            satisfied.setdefault(given.name, []).append(interface.text)
    for name, names in satisfied.items():
        draft = effective[name]
        meant = replace(draft.meant, interfaces=tuple(sorted(names)))
        effective[name] = replace(draft, meant=meant)
    return effective


def _check_same_type(mine: PropertyDraft, given: PropertyDraft, collector: Collector) -> None:
    if not (mine.has_type and given.has_type) or mine.meant.type == given.meant.type:
        return
    collector.report_error(
        "S009",
        mine.syntax.type.span,
        f"{mine.path} is {mine.meant.type}, but interface '{given.owner}' says {given.meant.type}",
        hint=f"write {given.meant.type}, or remove the property to get the interface's",
    )


def _merge_drafts(
    mine: PropertyDraft, given: PropertyDraft, interface: ast.Name, collector: Collector
) -> PropertyDraft:
    is_comparable = mine.has_type and given.has_type
    if is_comparable and _semantics_of(mine.meant) != _semantics_of(given.meant):
        message = (
            f"interfaces '{mine.owner}' and '{given.owner}' give '{given.name}' incompatible"
            " property semantics"
        )
        hint = "make both declarations equal, or write the property in the node"
        collector.report_error("S010", interface.span, message, hint=hint)
    rename_from = mine.meant.rename_from or given.meant.rename_from
    return replace(mine, meant=replace(mine.meant, rename_from=rename_from))


def _semantics_of(property_: Property) -> tuple[object, ...]:
    annotations = frozenset(
        (found.name, found.value, frozenset(found.options)) for found in property_.annotations
    )
    return (
        property_.type,
        annotations,
        property_.property_constraints,
        property_.embed,
        property_.merge,
        property_.default,
    )
