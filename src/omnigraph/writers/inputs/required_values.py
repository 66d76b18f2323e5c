"""Values that must be there: required properties, and the ends of edges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from omnigraph.errors import VIOLATIONS_SHOWN_MAX, LoadError, Violation, format_violations
from omnigraph.rows.columns import SOURCE_COLUMN, TARGET_COLUMN, TableShape
from omnigraph.schema.accepted_schema import AcceptedSchema, TypeKey, TypeKind
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.writers.inputs.input_rows import IncomingRows

_ENDS = {"from": SOURCE_COLUMN, "to": TARGET_COLUMN}


class OrderedViolation(NamedTuple):
    """A violation with the file and the record it is in, to sort by, and what to do about it."""

    order: tuple[int, int]
    violation: Violation
    hint: str | None = None


def type_of(accepted: AcceptedSchema, key: TypeKey) -> NodeType | EdgeType:
    """The declared type of a key."""
    catalog = accepted.catalog
    return catalog.edges[key.name] if key.kind is TypeKind.EDGE else catalog.nodes[key.name]


def find_missing_values(
    types: Mapping[TypeKey, IncomingRows],
    accepted: AcceptedSchema,
    *,
    fills_vectors: bool = False,
) -> tuple[list[OrderedViolation], int]:
    """The first nulls of every column that must not have any, and how many there are.

    Columns that a table of a merge lacks are checked when the committed values are known.
    """
    found: list[OrderedViolation] = []
    count = 0
    for type_key, incoming in types.items():
        type_ = type_of(accepted, type_key)
        for column, name, message in iter_required_columns(type_, incoming.shape):
            is_filled = fills_vectors and name is not None and type_.properties[name].embed
            if is_filled or not incoming.rows[column].null_count:
                continue
            nulls = _find_null_rows(incoming, column)
            count += len(nulls)
            for row in nulls[:VIOLATIONS_SHOWN_MAX].tolist():
                violation = Violation(
                    "required",
                    message,
                    type_name=type_key.name,
                    property=name,
                    value="null",
                    place=incoming.origins.location_of(row),
                )
                found.append(OrderedViolation(incoming.origins.order_of(row), violation))
    return found, count


def build_load_error(found: Sequence[OrderedViolation], count: int) -> LoadError:
    """The error that lists the first violations in the order of the records."""
    ordered = sorted(found, key=lambda each: each.order)[:VIOLATIONS_SHOWN_MAX]
    violations = [each.violation for each in ordered]
    return LoadError(
        format_violations(violations, count),
        record=ordered[0].order[1],
        violations=violations,
        count=count,
        hint="; ".join(dict.fromkeys(each.hint for each in ordered if each.hint)) or None,
    )


def iter_required_columns(
    type_: NodeType | EdgeType, shape: TableShape
) -> Iterator[tuple[str, str | None, str]]:
    """The columns that must be full, the property of each, and what to say of a null."""
    for end, column in _ENDS.items() if isinstance(type_, EdgeType) else ():
        yield column, None, f"requires field '{end}' ({type_.name})"
    for name, property_ in type_.properties.items():
        if not property_.type.is_nullable:
            problem = f"non-nullable property '{name}' has null or invalid values ({type_.name})"
            yield shape.columns[name], name, problem


def _find_null_rows(incoming: IncomingRows, column: str) -> npt.NDArray[np.int64]:
    """The rows that hold null; those whose table lacks the column may get a committed value yet."""
    is_null = np.asarray(incoming.rows[column].is_null().to_numpy(), np.bool_)
    if column in incoming.absent:
        is_null &= ~incoming.absent[column]
    return np.flatnonzero(is_null)
