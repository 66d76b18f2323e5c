"""Hostile reads: each answers or ends with a typed error soon after its time is over."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest

import omnigraph
from hostile_reads import HOSTILE, SCHEMA, fill, params_of
from omnigraph import Graph
from omnigraph.errors import CompileError, QueryTimeoutError, ResourceLimitError
from places import fresh_uri

TIMEOUT_S = 1.0
# The exact overshoot is what `benchmarks/hostile.py` prints; a machine of many tests is busy.
TOLERANCE_S = 2.0


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    uri = fresh_uri(tmp_path_factory.mktemp("hostile") / "hostile.omni")
    with omnigraph.create(uri, schema=SCHEMA, durable=False) as graph:
        fill(graph)
        yield graph


@pytest.mark.slow
@pytest.mark.parametrize(("name", "text"), HOSTILE.items(), ids=HOSTILE)
def test_a_hostile_read_keeps_to_its_time(graph: Graph, name: str, text: str) -> None:
    params = params_of(name)
    started = time.monotonic()
    with suppress(QueryTimeoutError, ResourceLimitError, CompileError):
        graph.branch().query(text, params=params, timeout=TIMEOUT_S)
    assert time.monotonic() - started < TIMEOUT_S + TOLERANCE_S


@pytest.mark.parametrize("is_valid", [True, False])
def test_the_collector_of_cycles_rests_while_a_text_is_compiled(
    tmp_path: Path, is_valid: bool
) -> None:
    kind = "Person" if is_valid else "Unknown"
    text = f"query q() {{ match {{ $p: {kind}  $p.name in [NAMES] }} return {{ $p.name }} }}"
    names = ", ".join(f'"n{number}"' for number in range(5_000))
    runs: list[str] = []
    schema = "node Person { name: String @key }"
    with omnigraph.create(fresh_uri(tmp_path / "g.omni"), schema=schema, durable=False) as graph:
        # The first read imports modules, which makes as many objects.
        with suppress(CompileError):
            graph.branch().query(text.replace("NAMES", '"n1"'))
        gc.callbacks.append(watch := lambda phase, _: runs.append(phase))
        try:
            with nullcontext() if is_valid else pytest.raises(CompileError):
                graph.branch().query(text.replace("NAMES", names))
        finally:
            gc.callbacks.remove(watch)
    assert gc.isenabled()
    # Ten thousand tokens alone would be fourteen of the default 700 objects.
    assert runs.count("start") < 10


def test_a_collector_that_the_program_turned_off_stays_off(graph: Graph) -> None:
    gc.disable()
    try:
        graph.branch().query("query q() { match { $p: Person } return { count($p) as n } }")
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_failed_compilation_leaves_little_for_the_collector_of_cycles(graph: Graph) -> None:
    names = ", ".join(f'"n{number}"' for number in range(20_000))
    text = f"query q() {{ match {{ $p: Unknown  $p.name in [{names}] }} return {{ $p.name }} }}"
    made: list[int] = []
    gc.callbacks.append(watch := lambda _phase, _info: made.append(gc.get_count()[0]))
    try:
        with pytest.raises(CompileError):
            graph.branch().query(text)
        gc.collect()
    finally:
        gc.callbacks.remove(watch)
    # A token of each name and comma alone would be forty thousand.
    assert max(made) < 5_000
