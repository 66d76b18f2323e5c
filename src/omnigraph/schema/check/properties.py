"""Written properties to drafts: names, types and annotations."""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.diagnostics import Collector
from omnigraph.schema import ast, catalog
from omnigraph.schema.check.annotations import (
    PROPERTY_CONSTRAINTS,
    AnnotationTarget,
    build_annotation_values,
    check_annotations,
    embed_of,
    rename_hint_of,
)
from omnigraph.schema.check.drafts import PropertyDraft
from omnigraph.schema.check.types import resolve_type
from omnigraph.schema.types import Scalar, make_scalar_type

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
    )
    return PropertyDraft(owner, syntax, meant, has_type=type_ is not None)


def _check_name(owner: str, place: AnnotationTarget, name: ast.Name, collector: Collector) -> None:
    if name.text.startswith("_"):
        message = f"{owner}.{name.text}: names that start with '_' are reserved for the system"
        collector.report_error("S007", name.span, message, hint="remove the leading '_'")
    elif place is AnnotationTarget.EDGE_PROPERTY and name.text in _EDGE_WORDS:
        message = f"{owner}.{name.text}: '{name.text}' is reserved for an end of the edge"
        hint = f"mutations write the ends of an edge as 'from' and 'to'; rename '{name.text}'"
        collector.report_error("S007", name.span, message, hint=hint)
