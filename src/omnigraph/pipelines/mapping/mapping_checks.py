"""Mappings against the schema of their target, before anything is read or written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from omnigraph.config.yaml_reader import Findings
from omnigraph.errors import PipelineInvalidError
from omnigraph.lang.quoting import sanitize_text
from omnigraph.lang.spellcheck import suggest_similar
from omnigraph.pipelines.config.definition import (
    Constant,
    EmbeddedText,
    Endpoint,
    Interpolation,
    MappingRule,
    RecordMapping,
    Value,
)
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.schema.property_types import (
    FLOATS,
    EnumType,
    PropertyType,
    Scalar,
    ScalarType,
    VectorType,
)
from omnigraph.writers.inputs.coerced_columns import WrongArrowTypeError, coerce_column
from omnigraph.writers.inputs.value_coercion import MisfitError, make_coercer

MERGE = "merge"
_TEMPLATED = frozenset({Scalar.STRING, Scalar.DATE, Scalar.DATETIME, Scalar.BLOB})


def check_mapping(mapped: RecordMapping, catalog: Catalog, *, mode: str) -> Findings:
    """Everything in a mapping that its target's schema does not have or cannot hold."""
    findings = Findings(mapped.file, paths=mapped.paths, error=PipelineInvalidError)
    for rule in mapped.rules:
        type_ = _find_type(rule, catalog, findings)
        if type_ is None:
            continue
        _check_values(rule, type_, findings)
        _check_required(rule, type_, findings, mode=mode)
        _check_identity(rule, type_, findings)
        if rule.deletes and mode != MERGE:
            message = f"{type_.name}: 'mode: {mode}' deletes nothing by records"
            findings.add_problem(rule.position, message, hint="use mode merge")
        if isinstance(type_, EdgeType) and rule.ends is not None:
            for end, node in zip(rule.ends, (type_.source, type_.target), strict=True):
                _check_end(rule, end, catalog.nodes[node], findings)
    return findings


def _find_type(
    rule: MappingRule, catalog: Catalog, findings: Findings
) -> NodeType | EdgeType | None:
    noun = "edge" if rule.is_edge else "node"
    name = sanitize_text(rule.type_name)
    found: NodeType | EdgeType | None
    if rule.is_edge:
        found = catalog.find_edge(rule.type_name)
        names: Iterable[str] = catalog.edges
    else:
        found, names = catalog.nodes.get(rule.type_name), catalog.nodes
    # A rule without a type is reported when it is read.
    if found is None and rule.type_name:
        hint = suggest_similar(rule.type_name, names)
        findings.add_problem(
            rule.position_of("type"), f"the schema has no {noun} type '{name}'", hint=hint
        )
    return found


def _check_identity(rule: MappingRule, type_: NodeType | EdgeType, findings: Findings) -> None:
    """Report what needs to know which entity a record is about, where nothing says it."""
    if rule.id is not None or type_.key is not None:
        return
    uses = {"latest": bool(rule.latest), "op": rule.operations is not None}
    uses["delete_missing"] = rule.missing_max is not None
    for name in (name for name, is_used in uses.items() if is_used):
        message = f"{type_.name} has no key by which '{name}' finds the records of an entity"
        findings.add_problem(rule.position_of(name), message, hint="give it an 'id'")


def _check_values(rule: MappingRule, type_: NodeType | EdgeType, findings: Findings) -> None:
    for name, value in rule.values.items():
        property_ = type_.properties.get(name)
        if property_ is None:
            hint = suggest_similar(name, type_.properties)
            message = f"{type_.name} has no property '{sanitize_text(name)}'"
            findings.add_problem(rule.position_of(f"set.{name}"), message, hint=hint)
            continue
        problem = _find_type_mismatch(value, property_.type)
        if problem is not None:
            findings.add_problem(value.position, f"{type_.name}.{name}: {problem}")
    if rule.id is not None and type_.key is not None:
        message = f"{type_.name} has a key, which makes its ids"
        findings.add_problem(rule.id.position, message, hint="leave 'id' out")


def _check_required(
    rule: MappingRule, type_: NodeType | EdgeType, findings: Findings, *, mode: str
) -> None:
    """Report properties that no entity could be written without.

    A rule that changes entities which exist needs no more than what identifies them.
    """
    missing = list_unset_required(rule, type_)
    if mode == MERGE and (type_.key is not None or rule.id is not None):
        missing = [name for name in missing if name in (type_.key or ())]
    if missing:
        message = f"{type_.name}: no value is set for {', '.join(missing)}"
        findings.add_problem(rule.position, message, hint="the schema requires one")


def list_unset_required(rule: MappingRule, type_: NodeType | EdgeType) -> list[str]:
    """The properties that the schema requires and a rule does not set."""
    return [
        name
        for name, property_ in type_.properties.items()
        if not property_.type.is_nullable and name not in rule.values
    ]


def _check_end(rule: MappingRule, end: Endpoint, node: NodeType, findings: Findings) -> None:
    if isinstance(end.value, EmbeddedText):
        findings.add_problem(end.position, f"{rule.type_name}: the end of an edge is not a vector")
    if not end.members:
        if end.value is not None and len(node.key or ()) > 1:
            members = ", ".join(node.key or ())
            message = f"{rule.type_name}: the key of {node.name} has several members"
            findings.add_problem(end.position, message, hint=f"give a value for each of {members}")
        return
    key = node.key or ()
    for name in end.members:
        if name not in key:
            hint = suggest_similar(name, key) or f"it has {', '.join(key) or 'no key'}"
            message = (
                f"{rule.type_name}: the key of {node.name} has no member '{sanitize_text(name)}'"
            )
            findings.add_problem(end.position, message, hint=hint)
    missing = [name for name in key if name not in end.members]
    if missing:
        message = f"{rule.type_name}: the key of {node.name} needs {', '.join(missing)} too"
        findings.add_problem(end.position, message)
    for message in _find_float_members(rule, node):
        findings.add_problem(end.position, message)


def _find_float_members(rule: MappingRule, node: NodeType) -> Iterator[str]:
    for name in node.key or ():
        if node.properties[name].type.scalar in FLOATS:
            yield f"{rule.type_name}: '{name}' of the key of {node.name} is a float"


def _find_type_mismatch(value: Value, type_: PropertyType) -> str | None:
    """Why a property cannot hold a value, as far as that shows before records are read."""
    match value:
        case EmbeddedText():
            is_vector = isinstance(type_.value, VectorType)
            return None if is_vector else f"an embedding needs a Vector, this is {type_}"
        case Interpolation():
            is_text = isinstance(type_.value, EnumType) or type_.scalar in _TEMPLATED
            return None if is_text else f"a template gives a text, this is {type_}"
        case Constant(constant):
            return _find_constant_mismatch(constant, type_)
        case _:
            return None


def fits_property(found: pa.DataType, type_: PropertyType) -> bool:
    """Whether the load takes columns of an Arrow type for a property."""
    try:
        coerce_column(pa.array([], found), type_, is_strict=True)
    except (WrongArrowTypeError, pa.ArrowException):
        return False
    return True


def _find_constant_mismatch(constant: object, type_: PropertyType) -> str | None:
    if constant is None:
        return None if type_.is_nullable else "it may not be null"
    if type_.value == ScalarType(Scalar.BLOB):
        return "a blob is not a constant"
    try:
        make_coercer(type_, is_strict=True)(constant)
    except MisfitError as misfit:
        return str(misfit)
    except (ValueError, OverflowError, TypeError) as failure:
        return str(failure)
    if isinstance(type_.value, EnumType) and constant not in type_.value.values:
        return f"'{sanitize_text(str(constant))}' is not one of {', '.join(type_.value.values)}"
    return None
