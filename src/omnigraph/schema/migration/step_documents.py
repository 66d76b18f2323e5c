"""The JSON form of the steps of a plan."""

from __future__ import annotations

from typing import assert_never

from omnigraph.schema.accepted_schema import TypeKey
from omnigraph.schema.catalog import AnnotationValue, ConstraintKind, Default
from omnigraph.schema.migration.migration_steps import (
    AddConstraint,
    AddIndex,
    AddProperty,
    AddType,
    ChangeConstraint,
    ChangeDefault,
    ChangeImplements,
    ConvertProperty,
    DropConstraint,
    DropProperty,
    DropType,
    ExtendEnum,
    ReembedProperty,
    RelaxProperty,
    RenameProperty,
    RenameType,
    Step,
    TightenProperty,
    UnsupportedChange,
    UpdatePropertyMetadata,
    UpdateTypeMetadata,
    WidenProperty,
)
from omnigraph.schema.property_types import PropertyType, ValueType
from omnigraph.schema.schema_shape import (
    JsonObject,
    encode_annotations,
    encode_member_constraint,
    encode_type,
)


def describe_step(step: Step) -> JsonObject:
    """One step with its `kind` and fields in snake case."""
    match step:
        case AddType() | RenameType() | UpdateTypeMetadata() | DropType() | ChangeImplements():
            return _describe_type_step(step)
        case AddIndex() | AddConstraint() | ChangeConstraint() | DropConstraint():
            return _describe_constraint_step(step)
        case ChangeDefault(owner, name, old, new):
            changed = {"from": _text_of(old), "to": _text_of(new)}
            return _describe_owner("change_default", owner, name) | changed
        case UnsupportedChange(entity, reason, code):
            document = {"kind": "unsupported_change", "entity": entity, "reason": reason}
            return document if code is None else document | {"code": code}
        case ReembedProperty(owner, name, old, new):
            return _describe_owner("reembed_property", owner, name) | {"from": old, "to": new}
        case _:
            return _describe_property_step(step)


def _describe_type_step(
    step: AddType | RenameType | UpdateTypeMetadata | DropType | ChangeImplements,
) -> JsonObject:
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
        case ChangeImplements(_, old, new, properties):
            changed = {"from": list(old), "to": list(new), "properties": list(properties)}
            return {"kind": "change_implements", "type_kind": kind, "name": name} | changed
        case _:
            assert_never(step)


def _describe_constraint_step(
    step: AddIndex | AddConstraint | ChangeConstraint | DropConstraint,
) -> JsonObject:
    match step:
        case AddIndex(owner, members):
            constraint = encode_member_constraint(ConstraintKind.INDEX, members)
            return _describe_owner("add_constraint", owner) | {"constraint": constraint}
        case AddConstraint(owner, new):
            return _describe_owner("add_constraint", owner) | {"constraint": new.to_json()}
        case DropConstraint(owner, old):
            return _describe_owner("drop_constraint", owner) | {"constraint": old.to_json()}
        case ChangeConstraint(owner, old, new):
            changed = {"from": old.to_json(), "constraint": new.to_json()}
            return _describe_owner("change_constraint", owner) | changed
        case _:
            assert_never(step)


def _describe_property_step(
    step: AddProperty
    | RenameProperty
    | ExtendEnum
    | RelaxProperty
    | TightenProperty
    | WidenProperty
    | ConvertProperty
    | UpdatePropertyMetadata
    | DropProperty,
) -> JsonObject:
    match step:
        case AddProperty(owner, name, type_, filled):
            return (
                _describe_owner("add_property", owner, name)
                | {"property_type": encode_type(type_)}
                | _describe_filled(filled)
            )
        case RenameProperty(owner, old_name, name):
            return _describe_owner("rename_property", owner) | {"from": old_name, "to": name}
        case ExtendEnum(owner, name, added_values):
            return _describe_owner("extend_enum", owner, name) | {
                "added_values": list(added_values)
            }
        case RelaxProperty(owner, name):
            return _describe_owner("relax_property", owner, name)
        case TightenProperty(owner, name, filled):
            return _describe_owner("tighten_property", owner, name) | _describe_filled(filled)
        case WidenProperty(owner, name, old, new):
            return _describe_owner("widen_property", owner, name) | _describe_types(old, new)
        case ConvertProperty(owner, name, old, new):
            return _describe_owner("convert_property", owner, name) | _describe_types(old, new)
        case UpdatePropertyMetadata(owner, name, annotations):
            metadata = _describe_annotations(annotations)
            return _describe_owner("update_property_metadata", owner, name) | metadata
        case DropProperty(owner, name, mode):
            return _describe_owner("drop_property", owner, name) | {"mode": mode}
        case _:
            assert_never(step)


def _describe_filled(filled: Default | None) -> JsonObject:
    """The default that existing entities get; other steps do not mention it."""
    return {} if filled is None else {"filled_with": filled.text}


def _text_of(default: Default | None) -> str | None:
    return None if default is None else default.text


def _describe_types(old: ValueType, new: ValueType) -> JsonObject:
    return {"from": encode_type(PropertyType(old)), "to": encode_type(PropertyType(new))}


def _describe_owner(kind: str, owner: TypeKey, name: str | None = None) -> JsonObject:
    document = {"kind": kind, "type_kind": str(owner.kind), "type_name": owner.name}
    return document if name is None else document | {"property_name": name}


def _describe_annotations(annotations: tuple[AnnotationValue, ...]) -> JsonObject:
    return {"annotations": encode_annotations(annotations)}
