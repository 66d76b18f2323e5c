"""Changes of annotations: documentation may change, everything else may not."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.schema.catalog import AnnotationValue, InterfaceType, Property
from omnigraph.schema.migration.pairing import Side, TypePair
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
    old, new = _of_type(pair.old), _of_type(pair.new)
    if _metadata(old) != _metadata(new):
        yield UpdateTypeMetadata(pair.key, _metadata(new))
    yield from _plan_opaque(pair.entity(), old, new)


def plan_property_annotations(pair: TypePair, old: Property, new: Property) -> Iterator[Step]:
    """The steps for the annotations of a property."""
    if _metadata(old.annotations) != _metadata(new.annotations):
        yield UpdatePropertyMetadata(pair.key, new.name, _metadata(new.annotations))
    yield from _plan_opaque(pair.entity(new.name), old.annotations, new.annotations)


def _of_type(side: Side) -> _Annotations:
    return () if isinstance(side.type, InterfaceType) else side.type.annotations


def _metadata(annotations: _Annotations) -> _Annotations:
    return tuple(written for written in annotations if written.name in _METADATA)


def _plan_opaque(entity: str, old: _Annotations, new: _Annotations) -> Iterator[Step]:
    names = {written.name for written in set(old) ^ set(new)} - _METADATA
    for name in sorted(names):
        yield UnsupportedChange(
            entity, f"adding, removing or changing the annotation @{name} is not supported"
        )
