"""What the ten best documents cost beside LanceDB: by vector, by words, and by both.

Words as a filter, which LanceDB has not, are there to be looked at: ten rows in the order of years.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from queries_report import Line, print_lines, take_turns, within
from search_documents import DIMENSION, Documents, Wanted, generate, load, nearest

from omnigraph import Graph

# Lance warns about columns that its own client selects.
os.environ.setdefault("LANCEDB_LOG", "error")

OURS: Final = "omnigraph"
THEIRS: Final = "LanceDB"
BEST: Final = 10
ROUNDS: Final = 2
RECALL_MIN: Final = 0.95
BUDGET: Final = 1.2
TOPIC: Final = "topic 7"
# Of the settings of LanceDB, the fastest that finds nearly all of the nearest.
_PROBES, _REFINE = 20, 20

QUERIES: Final = f"""
query by_vector($v: Vector({DIMENSION})) {{
  match {{ $d: Doc }}
  return {{ $d.slug as slug }}
  order {{ nearest($d.vec, $v) }}
  limit {BEST}
}}
query by_words($q: String) {{
  match {{ $d: Doc }}
  return {{ $d.slug as slug }}
  order {{ bm25($d.body, $q) }}
  limit {BEST}
}}
query by_both($q: String, $v: Vector({DIMENSION})) {{
  match {{ $d: Doc }}
  return {{ $d.slug as slug }}
  order {{ rrf(nearest($d.vec, $v), bm25($d.body, $q)) }}
  limit {BEST}
}}
query in_topic($v: Vector({DIMENSION}), $topic: String) {{
  match {{ $d: Doc {{ topic: $topic }} }}
  return {{ $d.slug as slug }}
  order {{ nearest($d.vec, $v) }}
  limit {BEST}
}}
query having_words($q: String) {{
  match {{ $d: Doc  search($d.body, $q) }}
  return {{ $d.slug as slug }}
  order {{ $d.year desc, $d.slug }}
  limit {BEST}
}}
query having_nearly($q: String) {{
  match {{ $d: Doc  fuzzy($d.body, $q) }}
  return {{ $d.slug as slug }}
  order {{ $d.year desc, $d.slug }}
  limit {BEST}
}}
"""

Search = Callable[[Wanted], list[str]]


def main() -> None:
    """Measure and print."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    with tempfile.TemporaryDirectory() as name:
        print_lines("ten best of 100,000 documents", (OURS, THEIRS), _lines(Path(name)))


def _lines(folder: Path) -> Iterator[Line]:
    documents = generate()
    graph = load(documents, folder / "docs.omni")
    graph.branch().ensure_indices()
    ours, theirs = _ours(graph), _theirs(folder / "lancedb", documents)
    wanted = documents.wanted
    exact = [nearest(documents, each, BEST) for each in wanted]
    for name in ours:
        engines = {OURS: ours[name], THEIRS: theirs[name]}
        # Both are warm when they are timed.
        found = {engine: [search(each) for each in wanted] for engine, search in engines.items()}
        works = {
            engine: [partial(search, each) for each in wanted] for engine, search in engines.items()
        }
        yield within(name, take_turns(works, rounds=ROUNDS), OURS, budget=BUDGET)
        if name == "by vector":
            for engine, answers in found.items():
                share = _shared(exact, answers)
                verdict = f">= {RECALL_MIN}", share >= RECALL_MIN
                yield Line(f"recall of {engine}", {}, f"{share:.3f}", *verdict)
        else:
            share = _shared(found[OURS], found[THEIRS])
            yield Line(f"{name}: found by both", {}, f"{share:.3f}")
    for name, search in _filters(graph).items():
        works = {OURS: [partial(search, each) for each in wanted]}
        yield Line(name, take_turns(works, rounds=ROUNDS))
    graph.close()


def _shared(expected: Sequence[Sequence[str]], found: Sequence[Sequence[str]]) -> float:
    """How much of what was expected was found, on average."""
    shares = [
        len(set(a) & set(b)) / len(a) if a else 1.0 for a, b in zip(expected, found, strict=True)
    ]
    return sum(shares) / len(shares)


def _asking(graph: Graph) -> Callable[..., list[str]]:
    snapshot = graph.branch().snapshot()

    def search(name: str, **params: object) -> list[str]:
        found = snapshot.query(QUERIES, name=name, params=params).to_arrow()
        slugs: list[str] = found["slug"].to_pylist()
        return slugs

    return search


def _filters(graph: Graph) -> dict[str, Search]:
    search = _asking(graph)
    return {
        "filter: search": lambda wanted: search("having_words", q=wanted.words.split()[0]),
        "filter: fuzzy": lambda wanted: search("having_nearly", q=wanted.words.split()[0]),
    }


def _ours(graph: Graph) -> dict[str, Search]:
    search = _asking(graph)
    return {
        "by vector": lambda wanted: search("by_vector", v=wanted.vector),
        "by words": lambda wanted: search("by_words", q=wanted.words),
        "by both": lambda wanted: search("by_both", q=wanted.words, v=wanted.vector),
        "by vector in a topic": lambda wanted: search("in_topic", v=wanted.vector, topic=TOPIC),
    }


def _theirs(folder: Path, documents: Documents) -> dict[str, Search]:
    import lancedb  # noqa: PLC0415 — after its logging is set
    from lancedb.index import FTS, BTree, IvfPq  # noqa: PLC0415
    from lancedb.rerankers import RRFReranker  # noqa: PLC0415

    table = lancedb.connect(str(folder)).create_table("doc", documents.rows)
    # Fewer rounds of training than by default: they cost minutes here, and no recall.
    table.create_index("vec", config=IvfPq(distance_type="l2", max_iterations=10, sample_rate=64))
    table.create_index("body", config=FTS())
    table.create_index("topic", config=BTree())
    fuse = RRFReranker()

    def slugs(query: Any) -> list[str]:  # Any: the builders of LanceDB have many types
        columns = ["slug"]
        found: list[str] = query.limit(BEST).select(columns).to_arrow()["slug"].to_pylist()
        return found

    def near(query: Any) -> Any:  # Any: as above
        return query.nprobes(_PROBES).refine_factor(_REFINE)

    def vector(wanted: Wanted) -> Any:  # Any: as above
        return near(table.search(wanted.vector, vector_column_name="vec"))

    def both(wanted: Wanted) -> list[str]:
        query = table.search(query_type="hybrid", vector_column_name="vec")
        return slugs(near(query.vector(wanted.vector).text(wanted.words)).rerank(fuse))

    return {
        "by vector": lambda wanted: slugs(vector(wanted)),
        "by words": lambda wanted: slugs(table.search(wanted.words, query_type="fts")),
        "by both": both,
        "by vector in a topic": lambda wanted: slugs(
            vector(wanted).where(f"topic = '{TOPIC}'", prefilter=True)
        ),
    }


if __name__ == "__main__":
    main()
