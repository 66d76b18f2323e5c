"""Lists of records among the parameters of a mutation, read as a load reads them."""

from __future__ import annotations

import os
from typing import Any, Final

import pyarrow as pa

from omnigraph.errors import LoadError, ParameterError
from omnigraph.query.typed_tree import RecordParameter
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.schema.catalog import Catalog, NodeType, Property
from omnigraph.schema.schema_identity import accept_schema
from omnigraph.versioning.effects import ID_COLUMN
from omnigraph.writers.inputs.input_reader import read_input
from omnigraph.writers.inputs.input_rows import IncomingRows, InputOptions

_HINT: Final = (
    "give a list of records, a table, a data frame, or the pathlib.Path of a file; on the command "
    "line --rows NAME=PATH"
)


def read_parameter_records(
    parameter: RecordParameter,
    source: Any,  # Any: what the caller gave
) -> pa.Table:
    """The records of a parameter: a column for each field, as a property of its type has it.

    A text is not taken for a path: it may have come from elsewhere.
    """
    if source is None or isinstance(source, str | bytes | bytearray | int | float):
        got = "null" if source is None else f"a {type(source).__name__}"
        raise ParameterError(
            f"parameter '{parameter.name}': expected a list of records, got {got}", hint=_HINT
        )
    type_key = TypeKey(TypeKind.NODE, parameter.name)
    properties = {each.name: Property(each.name, each.type) for each in parameter.fields}
    catalog = Catalog(nodes={parameter.name: NodeType(parameter.name, properties)})
    accepted = accept_schema(catalog, domain=parameter.name).schema
    path = str(source) if isinstance(source, os.PathLike) else source
    try:
        found = read_input(path, accepted, InputOptions(type=f"node:{parameter.name}"))
    except LoadError as failure:
        raise ParameterError(
            f"parameter '{parameter.name}': {failure.message}", hint=failure.hint
        ) from failure
    incoming = found.types[type_key]
    _require_known(parameter, incoming)
    columns = incoming.shape.columns
    return pa.table({name: incoming.rows[columns[name]] for name in properties})


def build_missing_error(parameter: RecordParameter) -> ParameterError:
    """The error of records that are not given."""
    shown = ", ".join(f"{each.name}: {each.type}" for each in parameter.fields)
    message = f"parameter '{parameter.name}' not provided; it is required ([{{ {shown} }}])"
    return ParameterError(message, hint=_HINT)


def _require_known(parameter: RecordParameter, incoming: IncomingRows) -> None:
    """Refuse what is not a field, and null where a field cannot be null."""
    if incoming.rows[ID_COLUMN].null_count < incoming.rows.num_rows:
        raise ParameterError(f"parameter '{parameter.name}': its records have no field 'id'")
    for each in parameter.fields:
        values = incoming.rows[incoming.shape.columns[each.name]]
        if values.null_count and not each.type.is_nullable:
            row = values.is_null().index(True).as_py()
            place = incoming.origins.location_of(row)
            raise ParameterError(
                f"parameter '{parameter.name}': '{each.name}' is null, and {each.type} in {place}",
                hint=f"give it a value, or declare the field as {each.type}?",
            )
