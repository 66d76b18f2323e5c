"""Both sources of a snapshot say the same, whatever they are asked and in whatever order."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.execution.sources.index.index_source import IndexSource
from omnigraph.execution.sources.source_cache import SourceCache
from unit.execution.model_views import view_of
from unit.execution.sources.index.walks import Told, random_graph, random_question


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32))
def test_both_sources_give_the_same_answers(seed: int) -> None:
    random = Random(seed)
    graph = random_graph(random)
    view = view_of(graph)
    lookups, topology = Told(IndexSource(view)), Told(SourceCache().get_topology(view))
    for _ in range(12):
        method, arguments, options = random_question(random, graph)
        answer = getattr(lookups, method)(*arguments, **options)
        expected = getattr(topology, method)(*arguments, **options)
        assert answer == expected, (method, arguments, options)
