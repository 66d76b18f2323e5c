"""A graph of a million nodes: how it opens, builds its topology and answers, and in what memory."""

from __future__ import annotations

import multiprocessing
import random
import resource
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

from queries_report import Line, limited, time_ms
from social_engines import Ours
from social_network import generate
from social_queries import NINE, Question

PEOPLE: Final = 1_000_000
FOLLOWS: Final = 10_000_000
ASKED: Final = 50
MEMORY_GIB_MAX: Final = 4.0

THREE_HOPS: Final = Question(
    "3 hops",
    "how many are three steps away",
    """query three($who: String) {
  match { $p: Person { slug: $who } $p follows{3,3} $f }
  return { count($f) as n }
}""",
    "",
    "",
)

# A question about all edges: it cannot be answered before the topology is there.
ALL_PATHS: Final = next(each for each in NINE if each.name == "q8")


def scale_lines(folder: Path) -> Iterator[Line]:
    """Each step in a process of its own, so that one does not pay for the memory of another."""
    place = folder / "large.omni"
    context = multiprocessing.get_context("spawn")
    found = []
    for work in (load, build, ask):
        with ProcessPoolExecutor(1, mp_context=context) as executor:
            found.append(executor.submit(work, place).result())
    loaded, built, again = found
    yield Line("load", measured=f"{loaded['load_s']:.1f} s, peak {loaded['gib']:.2f} GiB")
    yield limited("open, build the topology, count 2-hop paths", built["all_s"], "s", budget=10.0)
    yield Line("open it again, 3 hops from one node", measured=f"{again['first_ms']:.0f} ms")
    yield limited("3 hops from one node, warm", again["warm_ms"], "ms", budget=10.0)
    memory = max(built["gib"], again["gib"])
    yield limited("peak memory of a reader", memory, "GiB", budget=MEMORY_GIB_MAX)


def load(place: Path) -> dict[str, float]:
    """Write the graph."""
    network = generate(people=PEOPLE, follows=FOLLOWS)
    began = time.perf_counter()
    Ours(place, network).close()
    return {"load_s": time.perf_counter() - began, "gib": _peak_gib()}


def build(place: Path) -> dict[str, float]:
    """Open the graph and ask about all of it."""
    began = time.perf_counter()
    engine = Ours(place)
    engine.prepared(ALL_PATHS)({})
    all_s = time.perf_counter() - began
    engine.close()
    return {"all_s": all_s, "gib": _peak_gib()}


def ask(place: Path) -> dict[str, float]:
    """Open the graph and ask about single persons."""
    asked = random.Random(3).sample(range(PEOPLE), ASKED)
    began = time.perf_counter()
    engine = Ours(place)
    three_hops = engine.prepared(THREE_HOPS)
    three_hops({"who": asked[0]})
    first_ms = (time.perf_counter() - began) * 1000
    times = [time_ms(partial(three_hops, {"who": who})) for who in asked]
    engine.close()
    return {"first_ms": first_ms, "warm_ms": statistics.median(times), "gib": _peak_gib()}


def _peak_gib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
