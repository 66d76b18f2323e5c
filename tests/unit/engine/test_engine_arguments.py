"""Values of Python as parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd  # type: ignore[import-untyped]  # it has no types of its own
import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.engine.arguments import datetime_of, normalize_parameters, to_microseconds
from omnigraph.errors import InvalidArgumentError, OmnigraphError, ParameterError
from omnigraph.versioning import Signature
from places import fresh_uri
from unit.engine.company import CHANGES, SCHEMA, company


def test_what_json_knows_stays_and_the_rest_becomes_it() -> None:
    cet = timezone(timedelta(hours=1))
    given = {
        "none": None,
        "number": 1,
        "day": date(2024, 5, 6),
        "instant": datetime(2024, 5, 6, 7, 8, 9, 123000, tzinfo=cet),
        "blob": b"abc",
        "view": memoryview(b"abc"),
        "numpy": np.int64(7),
        "vector": np.array([1.0, 2.0], dtype=np.float32),
        "days": (date(2024, 5, 6),),
        "times": np.array(["2024-05-06T07:08:09.123", "NaT"], dtype="datetime64[ns]"),
        "numpy day": np.datetime64("2024-05-06"),
        "arrow": pa.scalar(datetime(2024, 5, 6, 7, tzinfo=UTC)),
        "arrow days": pa.array([date(2024, 5, 6), None]),
        "nothing": pd.NaT,
        "series": pd.Series([pd.Timestamp("2024-05-06T07:00:00")]),
    }
    assert normalize_parameters(given) == {
        "none": None,
        "number": 1,
        "day": "2024-05-06",
        "instant": "2024-05-06T06:08:09.123000Z",
        "blob": b"abc",
        "view": b"abc",
        "numpy": 7,
        "vector": [1.0, 2.0],
        "days": ["2024-05-06"],
        "times": ["2024-05-06T07:08:09.123000000", None],
        "numpy day": "2024-05-06",
        "arrow": "2024-05-06T07:00:00Z",
        "arrow days": ["2024-05-06", None],
        "nothing": None,
        "series": ["2024-05-06T07:00:00"],
    }


def test_what_is_no_mapping_is_left_to_the_binder() -> None:
    assert normalize_parameters([1]) == [1]
    assert normalize_parameters(None) is None


def test_times_keep_their_microseconds() -> None:
    at = datetime(2024, 5, 6, 7, 8, 9, 123457, tzinfo=UTC)
    assert datetime_of(to_microseconds(at)) == at


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="time zone"):
        to_microseconds(datetime(2024, 5, 6))


@pytest.fixture(scope="module")
def graph() -> Iterator[Graph]:
    """A graph that no call here may change."""
    with company() as graph:
        yield graph


WRONG = [5, b"x", object(), ["a"], "\ud800"]

# Every public argument that is a text, by the name it has.
TEXTS: list[tuple[str, Callable[[Graph, Any], object]]] = [
    ("uri", lambda _, v: omnigraph.open(v)),
    ("uri", lambda _, v: omnigraph.connect(v)),
    ("uri", lambda _, v: omnigraph.create(v, schema=SCHEMA)),
    ("schema", lambda _, v: omnigraph.create(fresh_uri(), schema=v)),
    ("actor", lambda _, v: omnigraph.create(fresh_uri(), schema=SCHEMA, actor=v)),
    ("actor", lambda g, v: omnigraph.open(g.uri, actor=v)),
    ("storage_options", lambda g, v: omnigraph.open(g.uri, storage_options={v: "x"})),
    ("storage_options['x']", lambda g, v: omnigraph.open(g.uri, storage_options={"x": v})),
    ("name", lambda g, v: g.branch(v)),
    ("name", lambda g, v: g.create_branch(v)),
    ("name", lambda g, v: g.delete_branch(v)),
    ("branch", lambda g, v: g.snapshot(0, branch=v)),
    ("text", lambda g, v: g.execute(v)),
    ("branch", lambda g, v: g.execute("branch list", branch=v)),
    ("mode", lambda g, v: g.branch().load([], mode=v)),
    ("dialect", lambda g, v: g.branch().load([], mode="append", dialect=v)),
    ("type", lambda g, v: g.branch().load([], mode="append", type=v)),
    ("message", lambda g, v: g.branch().load([], mode="append", message=v)),
    ("key", lambda g, v: g.branch().load([], mode="append", key=v)),
    ("if_commit", lambda g, v: g.branch().load([], mode="append", if_commit=v)),
    ("text", lambda g, v: g.branch().mutate(v)),
    ("name", lambda g, v: g.branch().mutate(CHANGES, name=v)),
    ("message", lambda g, v: g.branch().mutate(CHANGES, name="hire", message=v)),
    ("if_commit", lambda g, v: g.branch().mutate(CHANGES, name="hire", if_commit=v)),
    ("text", lambda g, v: g.branch().query(v)),
    ("name", lambda g, v: g.branch().query(CHANGES, name=v)),
    ("types", lambda g, v: list(g.branch().export(types=[v]))),
    ("text", lambda g, v: g.branch().plan_schema(v)),
    ("text", lambda g, v: g.branch().apply_schema(v)),
    ("message", lambda g, v: g.branch().apply_schema(SCHEMA, message=v)),
    ("kind", lambda g, v: g.branch().blob(v, "Person", "Ada", "badge")),
    ("type_name", lambda g, v: g.branch().blob("node", v, "Ada", "badge")),
    ("entity_id", lambda g, v: g.branch().blob("node", "Person", v, "badge")),
    ("property", lambda g, v: g.branch().blob("node", "Person", "Ada", v)),
    ("type_name", lambda g, v: g.branch().count(v)),
    ("kind", lambda g, v: g.branch().count("Person", v)),
]


@pytest.mark.parametrize("number", range(len(TEXTS)), ids=lambda n: f"{n}-{TEXTS[n][0]}")
def test_what_is_no_text_is_refused_by_the_name_of_its_argument(graph: Graph, number: int) -> None:
    argument, call = TEXTS[number]
    before = graph.branch().head
    for value in WRONG:
        if isinstance(value, list) and argument == "storage_options":
            continue  # no key of any mapping
        with pytest.raises(InvalidArgumentError) as caught:
            call(graph, value)
        assert caught.value.argument == argument
    assert graph.branch().head == before


@pytest.mark.parametrize(
    "call",
    [
        lambda g: g.branch().commits(limit="2"),
        lambda g: g.branch().commits(limit=-1),
        lambda g: g.branch().commits(limit=True),
        lambda g: g.check(commits_max=1.5),
        lambda g: g.branch().export(types="Person"),
        lambda g: g.branch().export(types=5),
        lambda g: g.create_branch("b", source=1.5),
        lambda g: g.commit(b"x"),
        lambda g: g.commit(True),
        lambda g: g.snapshot(None),
        lambda g: omnigraph.open(g.uri, storage_options=cast(Any, "x")),
    ],
)
def test_other_arguments_without_a_meaning_are_refused(
    graph: Graph, call: Callable[[Any], object]
) -> None:
    with pytest.raises(InvalidArgumentError):
        call(graph)


@pytest.mark.parametrize("field", ["actor", "message", "key"])
@pytest.mark.parametrize("value", [5, b"x", "\ud800"])
def test_no_record_can_be_made_of_what_cannot_be_read_back(field: str, value: object) -> None:
    with pytest.raises(InvalidArgumentError, match=field):
        Signature(**{field: value})  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize("call", [omnigraph.open, partial(omnigraph.create, schema="")])
def test_an_address_with_nul_is_refused(call: Callable[[str], object]) -> None:
    for uri in ("\0", "graphs/a\0b"):
        with pytest.raises(InvalidArgumentError, match="NUL"):
            call(uri)


def test_a_limit_beyond_all_numbers_of_the_machine_is_none() -> None:
    with omnigraph.create(fresh_uri(), schema="node A { n: I32 }") as graph:
        assert len(list(graph.branch().commits(limit=10**20))) == 1


@pytest.mark.parametrize("name", ["-x", "review/-x", "a\u202eb", "a\u200bb", "\u2028", "a\ue000"])
def test_new_names_are_seen_and_are_not_options(name: str) -> None:
    with omnigraph.create(fresh_uri(), schema="node A { n: I32 }") as graph:
        for create in (graph.create_branch, graph.tag):
            with pytest.raises(OmnigraphError, match=r"looks like an option|not seen"):
                create(name)


BYTES = """
query by_name($name: String) { match { $p: Person  $p.name = $name } return { $p.name } }
query hire($name: String) { insert Person { name: $name } }
query give($name: String, $badge: Blob) { insert Person { name: $name, badge: $badge } }
"""


@pytest.mark.parametrize("value", [b"ada", bytearray(b"ada"), memoryview(b"ada"), b"\xff"])
def test_bytes_are_a_blob_and_not_a_text(value: Any) -> None:
    with company() as graph:
        main = graph.branch()
        for call in (main.query, main.mutate):
            name = "by_name" if call == main.query else "hire"
            with pytest.raises(ParameterError, match=r"'name': expected String .*, got bytes"):
                call(BYTES, name=name, params={"name": value})
        main.mutate(BYTES, name="give", params={"name": "Cyd", "badge": value})
        assert main.blob("node", "Person", "Cyd", "badge").read() == bytes(value)


def test_a_path_in_place_of_a_text_is_answered_with_its_text() -> None:
    with pytest.raises(InvalidArgumentError, match="is not a text") as refused:
        omnigraph.create("memory://never", schema=cast(Any, Path("s.pg")))
    assert "read_text()" in str(refused.value.hint)


@pytest.mark.parametrize("settings", [[1], "engine", {1}])
def test_settings_are_values_by_name(graph: Graph, settings: Any) -> None:
    text = "query q() { match { $p: Person } return { $p.name } }"
    for read in (graph.branch("main").query, graph.branch("main").explain):
        with pytest.raises(ParameterError, match="settings are values by name"):
            read(text, settings=settings)
