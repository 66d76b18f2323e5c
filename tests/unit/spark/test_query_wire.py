from __future__ import annotations

import pyarrow as pa
import pytest

from omnigraph.spark.spark_types import from_wire, spark_type_of, to_wire, wire_type_of

VECTOR = pa.list_(pa.field("item", pa.float32()), 2)
COLUMNS = {
    "u64": (pa.array([0, None, 2**64 - 1], pa.uint64()), "bigint"),
    "u32": (pa.array([2**32 - 1, None], pa.uint32()), "bigint"),
    "datetime": (pa.array([-1, None, 2**62]).cast(pa.date64()), "bigint"),
    "date": (pa.array([-5, None], pa.int32()).cast(pa.date32()), "int"),
    "vector": (pa.array([[1.0, 2.0], None, [3.0, -0.0]], VECTOR), "array<float>"),
    "no vectors": (pa.array([], VECTOR), "array<float>"),
    "list": (pa.array([[1, None], None, []], pa.list_(pa.uint64())), "array<bigint>"),
    "text": (pa.array(["a\x00é", None, ""]), "string"),
    "bool": (pa.array([True, None]), "boolean"),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_what_goes_through_spark_comes_back_the_same(name: str) -> None:
    values, declared = COLUMNS[name]
    for part in (values, values.slice(1)):
        carried = to_wire(part)
        assert carried.type == wire_type_of(part.type)
        assert spark_type_of(carried.type) == declared
        back = from_wire(carried, part.type)
        assert back.type == part.type
        assert back.equals(part)
