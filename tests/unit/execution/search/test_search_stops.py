"""Every kind of search asks, again and again, whether it has to stop."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.execution.search import FieldCache, FieldRef, field_cache_of, search_nodes
from omnigraph.execution.search.bm25 import score_bm25
from omnigraph.execution.search.text_filter import match_rows
from omnigraph.query import typed_tree
from omnigraph.query.ast import TextFunction
from omnigraph.rows.evaluator import RequestParams
from omnigraph.rows.kernels.function_call import FunctionCall
from omnigraph.rows.kernels.highlight_kernel import mark_texts
from omnigraph.rows.text_search import TextQuery, match_texts
from omnigraph.rows.view import View
from unit.execution.model_views import view_of
from unit.execution.search.searched import documents, graph_of, sources_of

Check = Callable[[], None]
TEXTS = pa.array(["the sea", "war at sea"])
NOTHING = pa.scalar(None, pa.utf8())


class Stopped(Exception):
    pass


def stop() -> None:
    raise Stopped


def ask(view: View, name: str, check: Check) -> object:
    asked, query = FieldRef(view, "Doc", "t"), "sea"
    match name:
        case "texts are read":
            return FieldCache().get_texts(asked, check=check)
        case "vectors are read":
            return FieldCache().get_vectors(FieldRef(view, "Doc", "v"), check=check)
        case "new rows are read":
            return asked.read_rows(np.array([0], np.uint64), check=check)
        case "bm25":
            return score_bm25(field_cache_of(view).get_texts(asked), query, check)
        case "highlight":
            arguments = (TEXTS, pa.scalar(query), NOTHING, NOTHING, pa.scalar(None, pa.int64()))
            return mark_texts(FunctionCall("highlight", arguments, 2, pa.utf8(), check))
        case "phrase by index":
            phrase = typed_tree.Constant("sea", typed_tree.STRING)
            match_ = typed_tree.TextMatch(TextFunction.PHRASE, "d", "t", phrase)
            nodes = sources_of(view)[0].get_nodes("Doc")
            field_cache_of(view).get_texts(asked)
            return search_nodes(asked, match_, RequestParams({}, check), nodes, nodes.list_all())
        case _:
            function = TextFunction(name.partition(" ")[0])
            wanted = TextQuery(function, query, 1 if function is TextFunction.FUZZY else 0)
            if name.endswith("by index"):
                return match_rows(field_cache_of(view).get_texts(asked), wanted, check)
            return match_texts(TEXTS, wanted, check)


@pytest.mark.parametrize(
    "name",
    [
        "texts are read",
        "vectors are read",
        "new rows are read",
        "bm25",
        "highlight",
        "phrase by index",
        "search by index",
        "fuzzy by index",
        "all_words by index",
        *TextFunction,
    ],
)
def test_what_a_check_raises_ends_a_search(name: str) -> None:
    view = view_of(graph_of(documents(Random(1), 30)))
    assert ask(view, name, lambda: None) is not None
    with pytest.raises(Stopped):
        ask(view, name, stop)
