"""Lists of records among the parameters of a mutation, as JSON for a server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from omnigraph.query.ast import RecordListType
from omnigraph.query.query_compiler import compile_query, parse_file, select_query
from omnigraph.query.typed_tree import Mutation
from omnigraph.rows.json_encoding import encode_json_values
from omnigraph.rows.result_types import to_result_values
from omnigraph.schema import load_catalog
from omnigraph.writers.inputs.parameter_records import read_parameter_records


def encode_record_parameters(
    text: str,
    name: str | None,
    params: Mapping[str, Any] | None,  # Any: what the caller gave
    read_schema: Callable[[], str],
) -> Mapping[str, Any] | None:
    """The parameters with their tables, frames and files of records as lists of objects.

    The types of the fields are those of the schema, which is asked for only where records are.
    """
    if not params:
        return params
    declared = select_query(parse_file(text).file, name).parameters
    if not any(isinstance(each.type, RecordListType) for each in declared):
        return params
    plan = compile_query(text, load_catalog(read_schema()), name=name).checked
    assert isinstance(plan, Mutation), "a list of records is refused elsewhere"
    found = dict(params)
    for each in plan.records:
        if each.name in found:
            table = read_parameter_records(each, found[each.name])
            columns = [encode_json_values(to_result_values(column)) for column in table.columns]
            rows = zip(*columns, strict=True)
            found[each.name] = [dict(zip(table.column_names, row, strict=True)) for row in rows]
    return found
