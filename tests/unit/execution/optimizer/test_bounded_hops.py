"""Several hops from one node, compared with the model."""

from __future__ import annotations

import pytest

from omnigraph.execution.operators import traversal_hops
from unit.execution.optimizer.planned import planned
from unit.execution.optimizer.random_reads import world


@pytest.mark.parametrize("bounds", ["{1,1}", "{1,2}", "{2,2}", "{1,3}", "{3,4}"])
@pytest.mark.parametrize("edge", ["knows", "<knows>"])
@pytest.mark.parametrize("factor", [0, 10**9])
def test_nodes_at_their_shortest_distance_are_found(
    bounds: str, edge: str, factor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traversal_hops, "_SPARSE_FACTOR", factor)
    for seed in (3, 5, 7, 9):
        graph, view = world(seed)
        for number in range(4):
            text = (
                f'query q() {{ match {{ $a: Person {{ name: "p{number}" }} $a {edge}{bounds} $b }}'
                " return { $b.name } }"
            )
            planned(graph, view, text)


def test_conditions_at_the_end_of_hops_hold() -> None:
    graph, view = world(5)
    text = (
        'query q() { match { $a: Person { name: "p1" } $a knows{1,3} $b $b.age > 0'
        " $b lives $c } return { $b.name, count($c) as n } }"
    )
    planned(graph, view, text)
