"""A function that decides conflicts is asked the same of a graph on storage and on a server."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import errors
from omnigraph.engine import Graph
from omnigraph.server.server_boot import boot_graph
from served import make_tokens, serve

AGAIN = """
node P { k: String @key  e: String? @unique }
edge K: P -> P { note: String? }
"""
LINK = {"edge": "K", "from": "a", "to": "d", "id": "k1"}


def _conflict_in_rounds(graph: Graph) -> None:
    """A branch `review` that conflicts with main again when its conflicts are decided."""
    main = graph.branch()
    main.load([*_list_people(**{key: key for key in "abcdf"}), LINK], mode="append")
    review = graph.create_branch("review")
    noted = {**LINK, "data": {"note": "main"}}
    main.load([*_list_people(a="ours", b="taken", c="again"), noted], mode="merge")
    main.mutate('query q() { delete P where k = "f" }')
    review.load(_list_people(a="taken", f="again"), mode="merge")
    # Its edge ends with it.
    review.mutate('query q() { delete P where k = "d" }')


def _list_people(**values: str) -> list[dict[str, Any]]:
    return [{"type": "P", "data": {"k": key, "e": value}} for key, value in values.items()]


def _decide_in_rounds(graph: Graph) -> tuple[list[str], list[Any], list[str]]:
    """What a function is asked, the merged entities, and the decisions that are kept."""
    asked: list[str] = []

    def decide(conflict: errors.EntityConflict) -> object:
        asked.append(f"{conflict.kind} {conflict.entity_id}")
        match conflict.kind:
            case "orphan_edge":
                return "delete"
            case "unique_violation":
                is_first = asked.count(asked[-1]) == 1 and conflict.entity_id == "a"
                return {"value": {"e": "again" if is_first else None}}
            case _:
                return "ours" if conflict.entity_kind == "edge" else "theirs"

    main = graph.branch()
    main.merge("review", resolve=decide)
    rows = main.query("query q() { match { $p: P } return { $p.k, $p.e } order { $p.k } }")
    kept = [f"{each.entity_id}.{each.property} {each.take}" for each in main.head.decisions]
    return asked, [tuple(row.values()) for row in rows], [str(main.count("K")), *kept]


@pytest.mark.slow
def test_a_function_is_asked_about_what_its_decisions_bring_up(tmp_path: Path) -> None:
    found = []
    with omnigraph.create(tmp_path / "rounds.omni", schema=AGAIN, durable=False) as graph:
        _conflict_in_rounds(graph)
        shutil.copytree(tmp_path / "rounds.omni", tmp_path / "copy.omni")
        found.append(_decide_in_rounds(graph))
    uri, tokens = str(tmp_path / "copy.omni"), make_tokens()
    state = boot_graph(uri, graph_id="rounds", policy=None, tokens=tokens, is_open=True)
    with serve(state) as running, omnigraph.connect(f"{running.url}/graphs/rounds") as remote:
        found.append(_decide_in_rounds(remote))
    asked, rows, kept = found[0]
    assert asked == [
        "divergent_update a",
        "delete_vs_update f",
        "delete_vs_update k1",
        "orphan_edge k1",
        "unique_violation a",
        "unique_violation f",
        # What was answered first is held by another one.
        "unique_violation a",
    ]
    assert rows == [("a", None), ("b", "taken"), ("c", "again"), ("f", None)]
    assert kept == ["0", "a.e value", "f.None value", "k1.None delete"]
    assert found[1] == found[0]
