"""Changes of annotations: documentation may change, everything else may not."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.schema.catalog import AnnotationValue, InterfaceType, Property
from omnigraph.schema.migration.pairing import TypePair, TypeVersion
from omnigraph.schema.migration.steps import (
    Step,
    UnsupportedChange,
    UpdatePropertyMetadata,
    UpdateTypeMetadata,
)

_METADATA = frozenset({"description", "instruction"})
_Annotations = tuple[AnnotationValue, ...]


def plan_type_annotations(pair: TypePair) -> Iterator[Step]:
    """The steps for the annotations of a type."""
    old, new = _annotations_of(pair.old), _annotations_of(pair.new)
    if _select_metadata(old) != _select_metadata(new):
        yield UpdateTypeMetadata(pair.key, _select_metadata(new))
    yield from _plan_opaque(pair.format_entity(), old, new)


def plan_property_annotations(pair: TypePair, old: Property, new: Property) -> Iterator[Step]:
    """The steps for the annotations of a property."""
    if _select_metadata(old.annotations) != _select_metadata(new.annotations):
        yield UpdatePropertyMetadata(pair.key, new.name, _select_metadata(new.annotations))
    yield from _plan_opaque(pair.format_entity(new.name), old.annotations, new.annotations)


def _annotations_of(side: TypeVersion) -> _Annotations:
    return () if isinstance(side.type, InterfaceType) else side.type.annotations


def _select_metadata(annotations: _Annotations) -> _Annotations:
    return tuple(written for written in annotations if written.name in _METADATA)


def _plan_opaque(entity: str, old: _Annotations, new: _Annotations) -> Iterator[Step]:
    names = {written.name for written in set(old) ^ set(new)} - _METADATA
    for name in sorted(names):
        yield UnsupportedChange(
            entity, f"adding, removing or changing the annotation @{name} is not supported"
        )
