"""Text predicates by the index of a field, compared with the model."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from model import search as model
from omnigraph.errors import ExecutionError
from omnigraph.execution.search import (
    FieldRef,
    field_cache_of,
    find_text_candidates,
    search_nodes,
    share_memory,
    text_filter,
)
from omnigraph.execution.sources.topology.memory_cache import MemoryCache
from omnigraph.query import typed_tree
from omnigraph.query.ast import TextFunction
from omnigraph.rows.text_search import TextQuery, match_texts
from omnigraph.schema.property_types import Scalar, make_scalar_type
from unit.execution.model_views import view_of
from unit.execution.search.searched import WORDS, documents, graph_of, sources_of

I64 = make_scalar_type(Scalar.I64)
PHRASES = ("sea bat", "bat sea", "the sea", "sea of the", "sea the bat", "s", "Bo")


def predicate(function: TextFunction, query: str | None, edits: int | None) -> typed_tree.TextMatch:
    return typed_tree.TextMatch(
        function,
        "d",
        "t",
        typed_tree.Constant(query, typed_tree.STRING),
        None if edits is None else typed_tree.Constant(edits, I64),
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("function", "edits", "meant"),
    [
        (TextFunction.SEARCH, None, 0),
        (TextFunction.MATCH_TEXT, None, 0),
        (TextFunction.FUZZY, None, 2),
        (TextFunction.FUZZY, 1, 1),
        (TextFunction.FUZZY, 0, 0),
        (TextFunction.FUZZY, 2**32 - 1, 2**32 - 1),
        (TextFunction.ALL_WORDS, None, 0),
        (TextFunction.PHRASE, None, 0),
        (TextFunction.PREFIX, None, 0),
    ],
)
def test_a_predicate_holds_where_the_model_says(
    function: TextFunction, edits: int | None, meant: int, seed: int
) -> None:
    random = Random(seed)
    graph = graph_of(documents(random, 50))
    view = view_of(graph)
    ids = random.sample(list(graph.nodes["Doc"]), 30)
    texts = [graph.nodes["Doc"][id_]["t"] for id_ in ids]
    for query in (None, "", "the", "Zebra", *(random.choice(WORDS) for _ in range(4)), *PHRASES):
        match = predicate(function, query, edits)
        expected = [model.matches(function, text, query, meant) for text in texts]
        if query is not None:
            wanted = TextQuery(function, query, meant)
            assert match_texts(pa.array(texts, pa.utf8()), wanted).to_pylist() == expected
        for source in sources_of(view):
            nodes = source.get_nodes("Doc")
            asked = FieldRef(view, "Doc", "t")
            for is_stemmed in (True, False):
                field_cache_of(view).get_texts(replace(asked, is_stemmed=is_stemmed))
            found = search_nodes(asked, match, {}, nodes, nodes.find(pa.array(ids)))
            assert found is not None
            assert found.to_pylist() == expected


@pytest.mark.parametrize("seed", range(3))
def test_candidates_satisfy_every_text_predicate(seed: int) -> None:
    random = Random(seed)
    graph = graph_of(documents(random, 60))
    view = view_of(graph)
    other = typed_tree.IsNull(typed_tree.PropertyValue("d", "n", I64), is_negated=True)
    asked = FieldRef(view, "Doc", "t")
    assert find_text_candidates(view, "Doc", [other], {}) == (None, [other])
    assert not field_cache_of(view).has_field(asked), "nothing is made for nothing"
    for edits in (0, 1):
        first, second = (random.choice(WORDS) for _ in range(2))
        matches_both = [predicate(TextFunction.FUZZY, each, edits) for each in (first, second)]
        row_ids, left = find_text_candidates(
            view, "Doc", [typed_tree.AllOf((*matches_both, other))], {}
        )
        assert left == [other]
        assert row_ids is not None
        for source in sources_of(view):
            nodes = source.get_nodes("Doc")
            found = nodes.fetch_ids(nodes.find_by_row_ids(row_ids)).to_pylist()
            assert sorted(found) == sorted(
                id_
                for id_, node in graph.nodes["Doc"].items()
                if all(
                    model.matches(TextFunction.FUZZY, node["t"], each, edits)
                    for each in (first, second)
                )
            )


@pytest.mark.parametrize("few", [0, 1_000])
def test_nodes_are_searched_by_the_field_if_they_are_many_or_it_is_there(
    few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_filter, "FEW_TEXTS", few)
    graph = graph_of(documents(Random(4), 30))
    view = view_of(graph)
    match, asked = predicate(TextFunction.SEARCH, "sea", None), FieldRef(view, "Doc", "t")
    for source in sources_of(view):
        nodes = source.get_nodes("Doc")
        numbers = nodes.list_all()
        texts = nodes.fetch_values("t", numbers).to_pylist()
        expected = [model.matches(TextFunction.SEARCH, text, "sea", 0) for text in texts]
        share_memory(view.tables, MemoryCache())
        found = search_nodes(asked, match, {}, nodes, numbers)
        assert (found is None) == (few > 0)
        field_cache_of(view).get_texts(asked)
        found = search_nodes(asked, match, {}, nodes, numbers)
        assert found is not None
        assert found.to_pylist() == expected


def test_no_rows_satisfy_nothing() -> None:
    view = view_of(graph_of([]))
    match = predicate(TextFunction.SEARCH, "sea", None)
    asked = FieldRef(view, "Doc", "t")
    field_cache_of(view).get_texts(asked)
    for source in sources_of(view):
        nodes = source.get_nodes("Doc")
        found = search_nodes(asked, match, {}, nodes, np.empty(0, np.int32))
        assert found is not None
        assert found.to_pylist() == []
    query = TextQuery(TextFunction.FUZZY, "sea", 1)
    assert match_texts(pa.array([], pa.utf8()), query).to_pylist() == []
    assert match_texts(pa.array([None, None], pa.utf8()), query).to_pylist() == [None, None]


@pytest.mark.parametrize("edits", [-1, 2**32])
def test_a_bad_option_is_refused_even_without_rows(edits: int) -> None:
    view = view_of(graph_of([]))
    match = predicate(TextFunction.FUZZY, "sea", edits)
    with pytest.raises(ExecutionError, match="search option"):
        find_text_candidates(view, "Doc", [match], {})


def test_texts_may_come_in_chunks_and_repeat() -> None:
    texts = pa.chunked_array([["sea", "cat"], [], ["sea", None, "the Seas"]], pa.utf8())
    found = match_texts(texts, TextQuery(TextFunction.SEARCH, "sea"))
    assert found.to_pylist() == [True, False, True, None, True]
