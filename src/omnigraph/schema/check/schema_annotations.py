"""Which annotation may stand where, what it must say, and what it means."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto

from omnigraph.lang.diagnostics import Collector
from omnigraph.schema import ast
from omnigraph.schema.catalog import AnnotationValue, ConstraintKind, Embed
from omnigraph.schema.schema_parser import NOT_ON_EDGES, PROPERTIES_ONLY


class AnnotationTarget(Enum):
    """Where an annotation stands; an interface property counts as a node property."""

    NODE = auto()
    EDGE = auto()
    NODE_PROPERTY = auto()
    EDGE_PROPERTY = auto()


PROPERTY_CONSTRAINTS = (ConstraintKind.KEY, ConstraintKind.UNIQUE, ConstraintKind.INDEX)
_NOT_KEPT = frozenset({*PROPERTY_CONSTRAINTS, "embed", "rename_from"})
_TEXTS = frozenset({"description", "instruction", "rename_from"})
_ONCE = _NOT_KEPT | _TEXTS
_HEADER_REFUSED = (*ConstraintKind, "embed")
_NOT_ON_EDGE_PROPERTIES = "not supported on edge properties"
_TYPES_ONLY = "only supported on node and edge types"
_REFUSED = {
    AnnotationTarget.NODE: dict.fromkeys(_HEADER_REFUSED, PROPERTIES_ONLY),
    AnnotationTarget.EDGE: dict.fromkeys(_HEADER_REFUSED, NOT_ON_EDGES),
    AnnotationTarget.NODE_PROPERTY: {"instruction": _TYPES_ONLY},
    AnnotationTarget.EDGE_PROPERTY: {
        "instruction": _TYPES_ONLY,
        "key": _NOT_ON_EDGE_PROPERTIES,
        "embed": _NOT_ON_EDGE_PROPERTIES,
        "range": NOT_ON_EDGES,
        "check": NOT_ON_EDGES,
    },
}
# A bare one would be taken for a comment on the property and never enforced.
_BARE_REFUSED = {
    "range": "bounds expected: write @range(property, low..high)",
    "check": 'pattern expected: write @check(property, "pattern")',
}


def check_annotations(
    annotations: Sequence[ast.Annotation], place: AnnotationTarget, path: str, collector: Collector
) -> None:
    """Refuse annotations that are misplaced, repeated, or lack what they must say."""
    seen: set[str] = set()
    for annotation in annotations:
        name = annotation.name.text
        refused = _REFUSED[place].get(name)
        if refused is not None:
            collector.report_error("S015", annotation.span, f"{path}: @{name} is {refused}")
        elif name in _BARE_REFUSED:
            collector.report_error("S016", annotation.span, f"{path}: {_BARE_REFUSED[name]}")
        elif name in _ONCE and name in seen:
            message = f"{path}: @{name} is declared multiple times"
            collector.report_error("S017", annotation.span, message, hint="keep one of them")
        elif name in _TEXTS:
            _check_text(annotation, path, collector)
        elif name == "embed":
            _check_embed(annotation, path, collector)
        seen.add(name)


def text_of(annotation: ast.Annotation) -> str | None:
    """The positional value as text."""
    return annotation.value.text if annotation.value else None


def build_annotation_values(annotations: Sequence[ast.Annotation]) -> tuple[AnnotationValue, ...]:
    """The annotations that stay annotations, as data."""
    return tuple(
        AnnotationValue(
            annotation.name.text,
            text_of(annotation),
            tuple((key.text, value.text) for key, value in annotation.options),
        )
        for annotation in annotations
        if annotation.name.text not in _NOT_KEPT
    )


def rename_hint_of(annotations: Sequence[ast.Annotation]) -> str | None:
    """The old name that `@rename_from` gives."""
    hints = (text_of(found) for found in annotations if found.name.text == "rename_from")
    return next(hints, None)


def embed_of(annotations: Sequence[ast.Annotation]) -> Embed | None:
    """What `@embed` records, if it names a source."""
    annotation = next((found for found in annotations if found.name.text == "embed"), None)
    source = _embed_source_of(annotation) if annotation else None
    if annotation is None or source is None:
        return None
    models = (value.text for key, value in annotation.options if key.text == "model")
    return Embed(source, next(models, None))


def _embed_source_of(annotation: ast.Annotation) -> str | None:
    match annotation.value:
        case ast.Name(text) | ast.Literal(str(text)):
            return text
        case _:
            return None


def _check_text(annotation: ast.Annotation, path: str, collector: Collector) -> None:
    name = annotation.name.text
    value = text_of(annotation)
    if value is None or not value.strip():
        message = f'{path}: @{name} needs a non-blank value, as in @{name}("…")'
        collector.report_error("S016", annotation.span, message)
    elif name == "rename_from" and annotation.options:
        collector.report_error(
            "S016", annotation.span, f"{path}: @rename_from takes one value only"
        )


def _check_embed(annotation: ast.Annotation, path: str, collector: Collector) -> None:
    if _embed_source_of(annotation) is None:
        message = f"{path}: @embed needs the name of its source property"
        collector.report_error("S019", annotation.span, message, hint="write @embed(property)")
    for key, value in annotation.options:
        if key.text != "model":
            message = f"{path}: unknown @embed option '{key.text}'"
            collector.report_error("S019", key.span, message, hint='the only option is model="…"')
        elif not isinstance(value.value, str) or not value.value.strip():
            collector.report_error("S019", value.span, f"{path}: the @embed model must be a name")
    if len({key.text for key, _ in annotation.options}) < len(annotation.options):
        collector.report_error("S019", annotation.span, f"{path}: an @embed option is repeated")
