from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.lang.lexer import Mode
from omnigraph.query.ast import AggregateFunction
from omnigraph.query.logical_plan import Scan, Unit
from omnigraph.query.typed_tree import PLAIN_AGGREGATES, PropertyValue
from omnigraph.rows.group_aggregates import aggregate_groups, group_rows
from omnigraph.rows.row_order import ValuesKey, sort_row_indices
from omnigraph.schema import load_catalog
from omnigraph.schema.catalog import Catalog
from omnigraph.spark.query.column_layout import Layout, build_layout
from omnigraph.spark.query.partial_aggregates import (
    FinalAggregation,
    GroupKey,
    PartialAggregation,
    make_measure,
)
from omnigraph.spark.query.sort_encoding import encode_sort_values, sort_type_of

CATALOG: Catalog = load_catalog(
    "node N { k: F64?  f: F64?  i: I64?  u: U64?  t: String?  l: [F32]? }", mode=Mode.STRICT
)
LAYOUT: Layout = build_layout(Scan(Unit(), "n", "N"), CATALOG)
FLOATS = st.floats() | st.sampled_from([0.0, -0.0, 1e308, -1e308, 5e-324, 1e16, 1.0, 0.1])
ROWS = st.lists(
    st.tuples(
        st.sampled_from([None, 0.0, -0.0, 1.5, float("nan")]),
        st.none() | FLOATS,
        st.none() | st.integers(-(2**63), 2**63 - 1),
        st.none() | st.integers(0, 2**64 - 1),
        st.none() | st.text(max_size=3),
    ),
    max_size=30,
)
KINDS = {"k": pa.float64(), "f": pa.float64(), "i": pa.int64(), "u": pa.uint64(), "t": pa.utf8()}


def value(name: str) -> PropertyValue:
    return PropertyValue("n", name, CATALOG.nodes["N"].properties[name].type)


def carried(columns: dict[str, pa.Array]) -> pa.Table:
    fields = LAYOUT.variables["n"].properties
    return pa.table(
        {
            fields[name].column: each.cast(pa.int64(), safe=False) if name == "u" else each
            for name, each in columns.items()
        }
    )


@given(rows=ROWS, cut=st.integers(1, 7))
@pytest.mark.parametrize("function", sorted(PLAIN_AGGREGATES))
def test_an_aggregate_in_two_steps_is_that_of_all_rows(
    function: AggregateFunction, rows: list[tuple[object, ...]], cut: int
) -> None:
    columns = {
        name: pa.array([row[place] for row in rows], kind)
        for place, (name, kind) in enumerate(KINDS.items())
    }
    names = ["f", "i", "u"]
    if function not in (AggregateFunction.SUM, AggregateFunction.AVG):
        names.append("t")
    key = GroupKey(value("k"), LAYOUT.variables["n"].properties["k"])
    measures = tuple(
        make_measure(function, value(name), number) for number, name in enumerate(names)
    )
    partial = PartialAggregation(LAYOUT, {}, (key,), measures)
    table = carried(columns)
    parts = [partial.run(table.slice(start, cut)) for start in range(0, max(len(rows), 1), cut)]
    _, found = FinalAggregation(partial).combine_groups(pa.concat_tables(parts))

    groups = group_rows([columns["k"]], len(rows))
    for number, name in enumerate(names):
        expected = aggregate_groups(function, columns[name], groups)
        assert bits(found[number]) == bits(expected)


def bits(values: pa.Array) -> list[object]:
    """The values in the order of their groups, every NaN alike and the zeros told apart."""
    return [repr(each) for each in values.to_pylist()]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([2**64 - 1, None, 0, 2**63], pa.uint64()),
        pa.array([float("nan"), None, -0.0, 0.0, float("-inf"), 5e-324]),
        pa.array([True, None, False]),
        pa.array(["b", None, "", "é", "z\x00"]),
        pa.array([[2.0], None, [], [1.0, float("nan")], [1.0]], pa.list_(pa.float32())),
        pa.array([3, None, -1], pa.int32()).cast(pa.date32()),
    ],
    ids=lambda values: str(values.type),
)
def test_spark_sorts_by_what_is_in_our_order(values: pa.Array) -> None:
    keys = encode_sort_values(values)
    assert keys.type == sort_type_of(values.type)
    order = sort_row_indices([ValuesKey(values)], len(values))
    raw = [each.as_py() for each in keys.take(pa.array(order))]
    known = [each.encode() if isinstance(each, str) else each for each in raw if each is not None]
    assert raw[: len(raw) - len(known)] == [None] * (len(raw) - len(known))
    assert known == sorted(known)
    assert (np.diff(order) != 0).all()
