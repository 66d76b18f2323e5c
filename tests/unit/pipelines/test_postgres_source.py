from __future__ import annotations

import traceback

import pytest

from omnigraph.errors import SourceFailedError
from omnigraph.pipelines.config.definition import PostgresSource
from omnigraph.pipelines.sources import build_location_sql
from omnigraph.pipelines.sources.postgres_source import describe_position, open_cursor


@pytest.mark.parametrize(
    "url",
    [
        "hunter2",
        "postgresql://me:hunter%2@127.0.0.1:1/x",
        "postgresql://me:hun@ter2@127.0.0.1:1/x",
        "postgresql://me:hun/ter2@127.0.0.1:1/x",
        "postgresql://me:hunter2@127.0.0.1:1/x",
    ],
)
def test_no_part_of_an_address_with_a_password_is_told(url: str) -> None:
    with (
        pytest.raises(SourceFailedError, match="PostgreSQL cannot be read") as caught,
        open_cursor(url),
    ):
        pass
    told = "".join(traceback.format_exception_only(caught.value))
    assert "hun" not in told
    assert "ter" not in told.replace("PostgreSQL", "").replace("server", "")
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_a_server_that_does_not_answer_is_named() -> None:
    with (
        pytest.raises(SourceFailedError, match=r'"127.0.0.1", port 1 failed: Connection refused'),
        open_cursor("postgresql://me:hunter2@127.0.0.1:1/x"),
    ):
        pass


def test_the_ledger_sees_tables_and_no_queries() -> None:
    url = "postgresql://h/d"
    assert describe_position(PostgresSource(url, table="a.b")) == {
        "kind": "postgres",
        "read": "a.b",
    }
    query = PostgresSource(url, query="SELECT * FROM f('hunter2')")
    assert describe_position(query) == {"kind": "postgres", "read": "a query"}


def test_a_place_names_the_key_only_if_records_have_it() -> None:
    source = PostgresSource("postgresql://h", query="SELECT 1 AS id", key="id")
    assert "`id`" in build_location_sql(source, ["id", "name"])
    assert "`id`" not in build_location_sql(source, ["name"])
    assert "`id`" not in build_location_sql(source, ["id", "id"])
