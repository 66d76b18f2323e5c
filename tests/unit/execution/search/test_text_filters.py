"""Text predicates as filters: by the index of a field, and by a look at every text."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

import omnigraph
from model import search as model
from omnigraph import Branch
from omnigraph.engine.graph import open_on
from omnigraph.engine.resources import Environment
from omnigraph.execution import type_scan as scan_module
from omnigraph.execution.query_budget import Access
from omnigraph.execution.search import field_cache as fields_module
from omnigraph.execution.search import field_cache_of, text_filter
from omnigraph.execution.sources import source_cache as sources_module
from omnigraph.query.ast import TextFunction
from places import fresh_uri, storage_of
from unit.execution.search.searched import WORDS, some_text

SCHEMA = """
node Doc { k: String @key  t: String?  kind: String  n: I64 }
edge Cites: Doc -> Doc
"""
CHANGES = """
query rewrite($k: String, $t: String?) { update Doc set { t: $t } where k = $k }
query remove($k: String) { delete Doc where k = $k }
"""
ODD = [
    "",
    " ",
    None,
    "sea sea sea",
    "SEA",
    "se\u0301a",
    "ŞEA",
    "sea\u0000cat",
    "東京 sea",
    "x" * 50,
]
QUERIES = ["sea", "cats running", "the", "", "東京", "x1", "cafe", "zebra", "strasse"]
PREDICATES = {
    "search($d.t, $q)": 0,
    "match_text($d.t, $q)": 0,
    "fuzzy($d.t, $q)": 2,
    "fuzzy($d.t, $q, 1)": 1,
}

Docs = dict[str, dict[str, Any]]


@pytest.fixture(params=["few rows by index", "many rows by index", "no index"])
def is_indexed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """With texts that are kept however few they are, or never."""
    is_kept = bool(request.param != "no index")
    if request.param == "many rows by index":
        monkeypatch.setattr(scan_module, "FEW_IDS", 0)
    monkeypatch.setattr(text_filter, "FEW_TEXTS", 0)
    monkeypatch.setattr(fields_module, "TEXTS_SHARE", 0.5 if is_kept else -1.0)
    return is_kept


@pytest.fixture(params=[*Access, "scan"])
def branch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Branch]:
    """An empty graph, read in every way."""
    if request.param == "scan":
        monkeypatch.setattr(sources_module, "SMALL_ROWS", -1)
    access = Access.AUTO if request.param == "scan" else request.param
    environment = Environment(access=access)
    with (
        omnigraph.create(fresh_uri(), schema=SCHEMA, durable=False) as created,
        open_on(storage_of(created.uri), environment=environment) as graph,
    ):
        yield graph.branch()


def load(branch: Branch, random: Random, docs: Docs, keys: list[str]) -> None:
    """Write documents, new ones or again."""
    for key in keys:
        text = random.choice(ODD) if random.random() < 0.3 else some_text(random)
        kind = random.choice(["a", "b"])
        docs[key] = {"k": key, "t": text, "kind": kind, "n": random.randrange(4)}
    branch.load([{"type": "Doc", "data": docs[key]} for key in keys], mode="merge")


def has_words(text: str | None, query: str, edits: int) -> bool:
    return model.matches(TextFunction.FUZZY, text, query, edits) is True


def found(branch: Branch, clauses: str, query: str, variable: str = "$d") -> list[str]:
    text = f"query q($q: String) {{ match {{ {clauses} }} return {{ {variable}.k as k }} }}"
    return sorted(row["k"] for row in branch.query(text, params={"q": query}).to_json_rows())


def assert_agrees(branch: Branch, docs: Docs) -> None:
    """Filters keep what the model says, alone and with other conditions."""
    for query in QUERIES:
        for predicate, edits in PREDICATES.items():
            held = {k for k, doc in docs.items() if has_words(doc["t"], query, edits)}
            assert found(branch, f"$d: Doc {predicate}", query) == sorted(held)
            others = {k for k, doc in docs.items() if doc["t"] is not None} - held
            assert found(branch, f"$d: Doc (false or not {predicate})", query) == sorted(others)
        held = {k for k, doc in docs.items() if has_words(doc["t"], query, 0)}
        ones = [k for k in held if docs[k]["kind"] == "a" and docs[k]["n"] > 1]
        text = "search($d.t, $q)"
        assert found(branch, f'$d: Doc {{ kind: "a" }} {text} $d.n > 1', query) == sorted(ones)
        both = [k for k in held if has_words(docs[k]["t"], "cat", 2)]
        assert found(branch, f'$d: Doc {text} fuzzy($d.t, "cat")', query) == sorted(both)
        one = min(docs)
        assert found(branch, f'$d: Doc {{ k: "{one}" }} {text}', query) == [one] * (one in held)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_an_index_keeps_the_rows_that_a_look_at_every_text_keeps(
    branch: Branch, is_indexed: bool, seed: int
) -> None:
    random, docs = Random(seed), dict[str, Any]()
    keys = [f"d{number}" for number in range(40)]
    load(branch, random, docs, keys)
    assert_agrees(branch, docs)
    # Changed, gone, and new rows.
    for key in random.sample(keys, 5):
        docs[key]["t"] = random.choice(WORDS)
        params = {"k": key, "t": docs[key]["t"]}
        branch.mutate(CHANGES, name="rewrite", params=params)
    for key in random.sample(keys, 5):
        del docs[key]
        branch.mutate(CHANGES, name="remove", params={"k": key})
    assert_agrees(branch, docs)
    load(branch, random, docs, [f"d{number}" for number in range(30, 50)])
    assert_agrees(branch, docs)
    fields = field_cache_of(branch.snapshot().view)
    assert bool(fields._parts.names) == is_indexed


def test_text_predicates_hold_at_the_ends_of_edges_and_in_blocks(
    branch: Branch, is_indexed: bool
) -> None:
    random, docs = Random(3), dict[str, Any]()
    load(branch, random, docs, [f"d{number}" for number in range(25)])
    cites = [(f"d{random.randrange(25)}", f"d{random.randrange(25)}") for _ in range(60)]
    branch.load([{"edge": "Cites", "from": a, "to": b} for a, b in cites], mode="append")
    for query in QUERIES:
        held = {k for k, doc in docs.items() if has_words(doc["t"], query, 0)}
        pairs = sorted({(a, b) for a, b in cites if b in held})
        clauses = "$d: Doc  $d cites $o  search($o.t, $q)"
        assert found(branch, clauses, query) == sorted(a for a, _ in pairs)
        assert found(branch, clauses, query, "$o") == sorted(b for _, b in pairs)
        clauses = "$d: Doc  not { $d cites $o  search($o.t, $q) }"
        assert found(branch, clauses, query) == sorted(docs.keys() - {a for a, _ in pairs})
    assert bool(field_cache_of(branch.snapshot().view)._parts.names) == is_indexed


def test_a_filter_says_that_it_looks_words_up(branch: Branch, is_indexed: bool) -> None:
    load(branch, Random(4), {}, ["d1", "d2"])
    plan = 'query q() { match { $d: Doc search($d.t, "sea") } return { $d.k } }'
    (scan,) = [row for row in branch.explain(plan).rows if row.operator == "Scan"]
    assert (scan.access == "words") == is_indexed
    assert (scan.index == "Doc.t") == is_indexed
