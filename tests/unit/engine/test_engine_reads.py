"""What callers ask of a read beside its text: time, memory, settings, and other forms."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import omnigraph
from omnigraph import errors
from omnigraph.engine.graph import open_on
from omnigraph.engine.resources import Environment
from omnigraph.execution.query_budget import Access
from omnigraph.policy.acts import Act
from places import fresh_uri, storage_of
from unit.engine.company import company

SCHEMA = """
node Person { name: String @key  age: I32?  height: F64? }
edge Knows: Person -> Person
edge Likes: Person -> Person
"""
PEOPLE = 2_000
# Of all pairs of people and their friends: many rows, none of which can be left out.
LARGE = """query q() {
  match { $a: Person  $b: Person  $a knows $c  $b likes $d  $a.age <= $d.age }
  return { $a.age, $b.age, $c.age, $d.age, count($a) as n }
}"""


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[omnigraph.Graph]:
    random = np.random.default_rng(2)
    names = [f"p{number}" for number in range(PEOPLE)]
    uri = fresh_uri(tmp_path_factory.mktemp("crowd") / "crowd.omni")
    with omnigraph.create(uri, schema=SCHEMA, durable=False) as graph:
        main = graph.branch()
        people = pa.table({"name": names, "age": random.integers(0, 90, PEOPLE).astype(np.int32)})
        main.load(people, type="Person", mode="append")
        for type_name in ("Knows", "Likes"):
            ends = [random.choice(names, 5 * PEOPLE).tolist() for _ in range(2)]
            edges = pa.table({"from": ends[0], "to": ends[1]})
            main.load(edges, type=type_name, mode="append")
        yield graph


@pytest.mark.parametrize("access", list(Access))
def test_a_query_is_stopped_when_its_time_is_over(crowd: omnigraph.Graph, access: Access) -> None:
    with open_on(storage_of(crowd.uri), environment=Environment(access=access)) as graph:
        main = graph.branch()
        # What the first read loads is not what is stopped here.
        main.query(LARGE.replace("$b likes $d", '$b likes $d  $b.name = "p1" $a.name = "p2"'))
        started = time.monotonic()
        with pytest.raises(errors.QueryTimeoutError) as stopped:
            main.query(LARGE, timeout=0.5)
        assert time.monotonic() - started < 5
        assert stopped.value.timeout_s == 0.5
        assert stopped.value.code == "query_timeout"
        assert len(main.query("query q() { match { $p: Person } return { $p.name } }")) == PEOPLE


@pytest.mark.parametrize("text", ['"x"', "$p.name"])
def test_texts_that_a_query_makes_count_towards_its_memory(
    crowd: omnigraph.Graph, text: str
) -> None:
    padded = f'query q() {{ match {{ $p: Person }} return {{ pad_left({text}, 50000, "y") as x }} '
    main = crowd.branch()
    assert len(main.query(f"{padded} limit 100 }}", memory=10_000_000)) == 100
    with pytest.raises(errors.ResourceLimitError) as refused:
        main.query(f"{padded} limit 400 }}", memory=10_000_000)
    assert refused.value.resource == "query_memory_bytes"


@pytest.mark.parametrize(
    "query",
    [
        "match { $p: Person  let $l = range(0, 1000 + $p.age)  size($l) < 0 } return { $p.name }",
        "match { $p: Person  size(slice(range(0, 2000), 1 + $p.age)) < 0 } return { $p.name }",
        "match { $p: Person  size(range(0, 1000 + $p.age)) < 0 } return { $p.name }",
        "match { $p: Person  size(range(0, 300) + range(0, 300 + $p.age)) < 0 } return { $p.name }",
        'match { $p: Person  let $t = pad_left($p.name, 5000, "x")  $t = "" } return { $p.name }',
        'match { $p: Person  pad_left("x", 5000, "x") + $p.name = "" } return { $p.name }',
        "match { $p: Person  let $l = collect($x.name) { $x: Person } size($l) < 0 } return { $p }",
    ],
)
def test_values_that_a_match_makes_count_towards_its_memory(
    crowd: omnigraph.Graph, query: str
) -> None:
    main = crowd.branch()
    with pytest.raises(errors.ResourceLimitError) as refused:
        main.query(f"query q() {{ {query} }}", memory=8_000_000)
    assert refused.value.resource == "query_memory_bytes"
    assert len(main.query(f"query q() {{ {query} }}", memory=200_000_000)) <= 1


def test_rows_of_several_reads_count_towards_their_memory(crowd: omnigraph.Graph) -> None:
    part = '{ match { $p: Person } return { pad_left($p.name, 1000, "x") as x } }'
    text = f"query q() {{ {part} union all {part} limit 1 }}"
    main = crowd.branch()
    with pytest.raises(errors.ResourceLimitError) as refused:
        main.query(text, memory=6_000_000)
    assert refused.value.resource == "query_memory_bytes"
    assert len(main.query(text, memory=20_000_000)) == 1


def test_a_query_that_needs_too_much_memory_is_refused(crowd: omnigraph.Graph) -> None:
    text = "query q() { match { $a: Person  $b: Person } return { $a.name, $b.name } }"
    with pytest.raises(errors.ResourceLimitError) as refused:
        crowd.branch().query(text, memory=10_000_000)
    assert refused.value.resource == "query_memory_bytes"
    assert refused.value.limit == 10_000_000
    gc.collect()
    assert pa.total_allocated_bytes() < 500_000_000


def test_settings_of_a_request_hold_unless_the_text_changes_them(crowd: omnigraph.Graph) -> None:
    main = crowd.branch()
    text = "query q() { match { $a: Person  $a (knows | likes) $b } return { count($b) as n } }"
    with pytest.raises(errors.ResourceLimitError, match="traversal_work_limit is limited to 5"):
        main.query(text, settings={"traversal_work_limit": 5})
    changed = f"set traversal_work_limit = 900000; {text}"
    assert len(main.query(changed, settings={"traversal_work_limit": 5})) == 1
    with pytest.raises(errors.ParameterError, match="unknown setting 'nonsense'"):
        main.query(text, settings={"nonsense": 1})
    with pytest.raises(errors.ParameterError, match="takes"):
        main.query(text, settings={"traversal_work_limit": "many"})


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("timeout", "soon"),
        ("timeout", True),
        ("timeout", -1),
        ("timeout", math.nan),
        ("memory", -1),
        ("memory", 1.5),
        ("memory", True),
    ],
)
def test_bounds_without_a_meaning_are_refused(
    crowd: omnigraph.Graph, argument: str, value: object
) -> None:
    text = "query q() { match { $p: Person } return { $p.name } }"
    with pytest.raises(errors.InvalidArgumentError) as refused:
        crowd.branch().query(text, **{argument: value})  # type: ignore[arg-type]
    assert refused.value.argument == argument


# ---- other forms ----


def test_types_are_datasets_and_tables_of_arrow(tmp_path: Path) -> None:
    with company(fresh_uri(tmp_path / "org.omni")) as graph:
        snapshot = graph.branch().snapshot()
        graph.branch().mutate('query q() { delete Person where name = "Ada" }')
        people = snapshot.to_arrow("Person")
        assert people.column_names == ["@id", "age", "name"]
        assert sorted(people["name"].to_pylist()) == ["Ada", "Bob"]
        assert snapshot.dataset("Person").count_rows() == 2
        assert graph.branch().snapshot().dataset("Person").count_rows() == 1
        assert snapshot.to_arrow("MemberOf", "edge").column_names == [
            "@id",
            "@src",
            "@dst",
            "since",
        ]
        with pytest.raises(errors.TypeNotFoundError) as missing:
            snapshot.dataset("Persn")
        assert "Person" in str(missing.value.hint)


def test_a_snapshot_is_a_graph_of_networkx(tmp_path: Path) -> None:
    with company(fresh_uri(tmp_path / "org.omni")) as graph:
        snapshot = graph.branch().snapshot()
        whole = snapshot.to_networkx()
        assert ("Person", "Ada") in whole
        people = snapshot.to_networkx(types=["Person"])
        assert {type_name for type_name, _ in people} == {"Person"}
        assert len(people) == 2
        with pytest.raises(errors.TypeNotFoundError):
            snapshot.to_networkx(types=["Nobody"])
        with pytest.raises(errors.InvalidArgumentError):
            snapshot.to_networkx(types="Person")


def test_a_short_read_has_its_turn_from_before_it_is_compiled_and_a_search_has_none(
    tmp_path: Path,
) -> None:
    asked: list[bool] = []

    class Watch:
        limits_types = False

        def has_query_limits(self, _actor: str | None) -> bool:
            return False

        def find_row_limits(self, _actor: str | None, _act: Act) -> None:
            return None

        def list_requirements(self, _target: str) -> tuple[()]:
            return ()

        def check(self, _actor: str | None, _act: Act) -> None:
            asked.append(opened.branch().session.resources.reads.turns.queue.is_taken)

        check_some = check

    schema = "node Note { name: String @key  body: String @index }"
    with omnigraph.create(fresh_uri(tmp_path / "notes.omni"), schema=schema) as graph:
        graph.branch().mutate('query q() { insert Note { name: "a", body: "b" } }')
        with omnigraph.open(graph.uri, policy=Watch()) as opened:
            main = opened.branch()
            seen = {}
            for test in ('$n.name = "a"', 'search($n.body, "b")'):
                asked.clear()
                text = f"query q() {{ match {{ $n: Note {test} }} return {{ $n.name }} }}"
                for source in (*5 * (main,), *5 * (main.snapshot(),)):
                    source.query(text)
                seen[test] = [any(asked[:5]), any(asked[5:])]
    assert list(seen.values()) == [[True, True], [False, False]]
