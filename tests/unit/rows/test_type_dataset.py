"""Types as datasets of Arrow: opened by other programs, with the names of the schema."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from omnigraph.rows.type_dataset import TypeDataset
from omnigraph.rows.view import View
from omnigraph.schema.accepted_schema import TypeKey, TypeKind
from omnigraph.storage.tables.table_reader import Table
from unit.execution.items import items_graph
from unit.execution.model_views import view_of

GRAPH = items_graph(seed=8)
ITEM = TypeKey(TypeKind.NODE, "Item")
LINK = TypeKey(TypeKind.EDGE, "Link")


@pytest.fixture(scope="module")
def view() -> View:
    return view_of(GRAPH, parts=3)


@pytest.fixture
def items(view: View) -> TypeDataset:
    return TypeDataset(view, ITEM)


def test_columns_are_named_as_in_the_schema_without_blobs(view: View, items: TypeDataset) -> None:
    properties = [name for name in GRAPH.catalog.nodes["Item"].properties if name != "file"]
    assert items.schema.names == ["@id", *properties]
    assert items.schema.field("at").type == pa.timestamp("ms", "UTC")
    assert items.schema.field("times").type.value_type == pa.timestamp("ms", "UTC")
    assert items.to_table().schema == items.schema
    links = TypeDataset(view, LINK).schema
    assert links.names == ["@id", "@src", "@dst", *GRAPH.catalog.edges["Link"].properties]


def test_the_rows_are_the_entities(items: TypeDataset) -> None:
    found = {row["@id"]: row for row in items.to_table(columns=["@id", "i64", "text"]).to_pylist()}
    assert found == {
        id_: {"@id": id_, "i64": node["i64"], "text": node["text"]}
        for id_, node in GRAPH.nodes["Item"].items()
    }
    assert items.count_rows() == len(found)
    assert items.head(2).num_rows == 2
    assert items.take([0]).num_rows == 1


def test_filters_and_expressions_are_applied(items: TypeDataset) -> None:
    expected = sorted(id_ for id_, node in GRAPH.nodes["Item"].items() if (node["i64"] or 0) > 1)
    is_large = ds.field("i64") > 1
    assert sorted(items.to_table(columns=["@id"], filter=is_large)["@id"].to_pylist()) == expected
    filtered = items.filter(is_large)
    assert filtered.count_rows() == len(expected)
    assert filtered.count_rows(ds.field("@id") == expected[0]) == 1
    double = filtered.to_table(columns={"double": ds.field("i32").cast("int64") * 2})
    assert double.column_names == ["double"]
    assert double.num_rows == len(expected)


def test_only_the_columns_that_are_needed_are_read(
    items: TypeDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[list[str]] = []
    original = Table.scan_batches

    def batches(self: Table, *, columns: list[str]) -> Iterator[pa.RecordBatch]:
        read.append(columns)
        return original(self, columns=columns)

    monkeypatch.setattr(Table, "scan_batches", batches)
    items.to_table(columns=["i64"], filter=ds.field("text") == "a")
    items.to_table(columns=[])
    columns = items._columns
    assert read == [[columns["i64"], columns["text"]], ["__id"]] or read == [
        [columns["text"], columns["i64"]],
        ["__id"],
    ]


def test_polars_scans_a_type(items: TypeDataset) -> None:
    frame = pl.scan_pyarrow_dataset(items).filter(pl.col("flag")).select("@id", "i32").collect()
    assert sorted(frame["@id"]) == sorted(
        id_ for id_, node in GRAPH.nodes["Item"].items() if node["flag"]
    )
    assert len(pl.from_arrow(items.to_table())) == len(GRAPH.nodes["Item"])


def test_duckdb_joins_types(view: View, items: TypeDataset) -> None:
    connection = duckdb.connect()
    connection.register("items", items)
    connection.register("links", TypeDataset(view, LINK))
    text = """
        select i.name, count(*) from links l join items i on l."@src" = i."@id"
        where i.u32 > 1 group by all order by all
    """
    expected: dict[str, int] = {}
    for edge in GRAPH.edges["Link"].values():
        source = GRAPH.nodes["Item"][edge["@src"]]
        if (source["u32"] or 0) > 1:
            expected[source["name"]] = expected.get(source["name"], 0) + 1
    assert dict(connection.execute(text).fetchall()) == expected
    assert connection.execute("select count(*) from items").fetchone() == (len(items.to_table()),)


def test_its_only_part_is_scanned_like_itself(items: TypeDataset) -> None:
    # As DataFusion does it.
    (part,) = items.get_fragments(ds.field("i64") > 1)
    reader = part.scanner(items.schema, columns=["@id"], batch_size=10).to_reader()
    assert reader.schema.names == ["@id"]
    expected = items.count_rows(ds.field("i64") > 1)
    assert reader.read_all().num_rows == expected > 0


def test_what_arrow_cannot_do_with_it_is_refused(items: TypeDataset) -> None:
    calls: list[Callable[[], object]] = [
        lambda: items.sort_by("i64"),
        lambda: items.join(items, "@id"),
        lambda: items.partition_expression,
        lambda: items.replace_schema(items.schema),
    ]
    for call in calls:
        with pytest.raises(TypeError, match="to_table"):
            call()
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(items)
