"""The JSON form of a step, as `schema plan` and `schema apply` answer it."""

from __future__ import annotations

from typing import assert_never

from omnigraph.schema.accepted import TypeKey
from omnigraph.schema.catalog import AnnotationValue, ConstraintKind
from omnigraph.schema.migration.steps import (
    AddIndex,
    AddProperty,
    AddType,
    DropProperty,
    DropType,
    ExtendEnum,
    RenameProperty,
    RenameType,
    Step,
    UnsupportedChange,
    UpdatePropertyMetadata,
    UpdateTypeMetadata,
)
from omnigraph.schema.shape import (
    JsonObject,
    encode_annotations,
    encode_member_constraint,
    encode_type,
)


def describe_step(step: Step) -> JsonObject:
    """One step with its `kind` and fields in snake case."""
    match step:
        case AddType() | RenameType() | UpdateTypeMetadata() | DropType():
            return _describe_type_step(step)
        case AddProperty() | RenameProperty() | ExtendEnum():
            return _describe_property_step(step)
        case UpdatePropertyMetadata(owner, name, annotations):
            return _describe_owner("update_property_metadata", owner, name) | _describe_annotations(
                annotations
            )
        case DropProperty(owner, name, mode):
            return _describe_owner("drop_property", owner, name) | {"mode": mode}
        case AddIndex(owner, members):
            constraint = encode_member_constraint(ConstraintKind.INDEX, members)
            return _describe_owner("add_constraint", owner) | {"constraint": constraint}
        case UnsupportedChange(entity, reason, code):
            document = {"kind": "unsupported_change", "entity": entity, "reason": reason}
            return document if code is None else document | {"code": code}
        case _:
            assert_never(step)


def _describe_type_step(step: AddType | RenameType | UpdateTypeMetadata | DropType) -> JsonObject:
    kind = str(step.type.kind)
    name = step.type.name
    match step:
        case AddType():
            return {"kind": "add_type", "type_kind": kind, "name": name}
        case RenameType(_, old_name):
            return {"kind": "rename_type", "type_kind": kind, "from": old_name, "to": name}
        case UpdateTypeMetadata(_, annotations):
            document = {"kind": "update_type_metadata", "type_kind": kind, "name": name}
            return document | _describe_annotations(annotations)
        case DropType(_, mode):
            return {"kind": "drop_type", "type_kind": kind, "name": name, "mode": mode}
        case _:
            assert_never(step)


def _describe_property_step(step: AddProperty | RenameProperty | ExtendEnum) -> JsonObject:
    match step:
        case AddProperty(owner, name, type_):
            return _describe_owner("add_property", owner, name) | {
                "property_type": encode_type(type_)
            }
        case RenameProperty(owner, old_name, name):
            return _describe_owner("rename_property", owner) | {"from": old_name, "to": name}
        case ExtendEnum(owner, name, added_values):
            return _describe_owner("extend_enum", owner, name) | {
                "added_values": list(added_values)
            }
        case _:
            assert_never(step)


def _describe_owner(kind: str, owner: TypeKey, name: str | None = None) -> JsonObject:
    document = {"kind": kind, "type_kind": str(owner.kind), "type_name": owner.name}
    return document if name is None else document | {"property_name": name}


def _describe_annotations(annotations: tuple[AnnotationValue, ...]) -> JsonObject:
    return {"annotations": encode_annotations(annotations)}
