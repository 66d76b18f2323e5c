"""Written properties to drafts: names, types and annotations."""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.diagnostics import Collector
from omnigraph.schema import ast, catalog
from omnigraph.schema.check.annotations import (
    PROPERTY_CONSTRAINTS,
    Place,
    check_annotations,
    embed_of,
    kept_annotations,
    rename_hint,
)
from omnigraph.schema.check.drafts import Draft
from omnigraph.schema.check.types import resolve_type
from omnigraph.schema.types import Scalar, scalar_type

_EDGE_WORDS = ("from", "to")
# Stands for a refused type; such a draft says that it has no type.
_NO_TYPE = scalar_type(Scalar.STRING)


def draft_properties(
    owner: str, place: Place, members: Sequence[ast.Member], collector: Collector
) -> dict[str, Draft]:
    """The properties a declaration writes, by name; of two with one name the first is kept."""
    drafts: dict[str, Draft] = {}
    for member in members:
        if not isinstance(member, ast.Property):
            continue
        draft = _draft(owner, place, member, collector)
        if draft.name in drafts:
            message = f"{owner}: duplicate property '{draft.name}'"
            collector.error("S006", member.name.span, message, hint="rename or remove one of them")
        drafts.setdefault(draft.name, draft)
    return drafts


def _draft(owner: str, place: Place, syntax: ast.Property, collector: Collector) -> Draft:
    _check_name(owner, place, syntax.name, collector)
    check_annotations(syntax.annotations, place, f"{owner}.{syntax.name.text}", collector)
    type_ = resolve_type(syntax.type, collector)
    written = {annotation.name.text for annotation in syntax.annotations}
    meant = catalog.Property(
        syntax.name.text,
        type_ or _NO_TYPE,
        annotations=kept_annotations(syntax.annotations),
        property_constraints=frozenset(kind for kind in PROPERTY_CONSTRAINTS if kind in written),
        embed=embed_of(syntax.annotations),
        rename_from=rename_hint(syntax.annotations),
    )
    return Draft(owner, syntax, meant, has_type=type_ is not None)


def _check_name(owner: str, place: Place, name: ast.Name, collector: Collector) -> None:
    if name.text.startswith("_"):
        message = f"{owner}.{name.text}: names that start with '_' are reserved for the system"
        collector.error("S007", name.span, message, hint="remove the leading '_'")
    elif place is Place.EDGE_PROPERTY and name.text in _EDGE_WORDS:
        message = f"{owner}.{name.text}: '{name.text}' is reserved for an end of the edge"
        hint = f"mutations write the ends of an edge as 'from' and 'to'; rename '{name.text}'"
        collector.error("S007", name.span, message, hint=hint)
