from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from omnigraph.schema import load_catalog
from omnigraph.storage.objects.faults import SimulatedCrash, Steps, iter_faults
from omnigraph.writers.schema_migration import SchemaText, create_initial_tables
from unit.writers.plain_graph import ADA, PEOPLE, created, ids, opened


def _text(source: str) -> SchemaText:
    return SchemaText(source, load_catalog(source))


def test_a_new_graph_has_an_empty_table_for_each_node_and_edge_type(tmp_path: Path) -> None:
    graph = opened(tmp_path / "graph")
    source = f"interface Named {{ title: String }}  node Book implements Named {{}}{PEOPLE}"
    made = create_initial_tables(_text(source), tables=graph.tables, schemas=graph.schemas)
    assert sorted(made.pins) == ["edge:LivesIn", "node:Book", "node:City", "node:Person"]
    for key, pin in made.pins.items():
        assert re.fullmatch(rf"t/{key.partition(':')[2]}-[0-9a-f]{{8}}\.lance", pin.path)
        assert graph.tables.open(pin).scan().num_rows == pin.rows == 0
    columns = graph.tables.open(made.pins["edge:LivesIn"]).schema.names
    assert columns[:3] == ["__id", "__src", "__dst"]
    assert len(columns) == 4
    assert graph.reopened().schemas.get(made.schema.digest).source == source


def test_every_table_has_a_life_of_its_own(tmp_path: Path) -> None:
    graph = opened(tmp_path / "graph")
    first, second = (
        create_initial_tables(_text(PEOPLE), tables=graph.tables, schemas=graph.schemas)
        for _ in range(2)
    )
    assert not {pin.path for pin in first.pins.values()} & {
        pin.path for pin in second.pins.values()
    }


def test_a_crash_while_a_graph_is_made_leaves_garbage_only(tmp_path: Path) -> None:
    def make(folder: Path, steps: Steps) -> None:
        graph = opened(folder).with_faults(steps)
        made = create_initial_tables(_text(PEOPLE), tables=graph.tables, schemas=graph.schemas)
        graph.committer.create_graph(schema=made.schema.digest, pins=made.pins)

    faults = list(iter_faults(lambda steps: make(tmp_path / "counted", steps)))
    assert len(faults) >= 12
    for fault in faults:
        steps = fault.create_steps()
        with suppress(SimulatedCrash):
            make(tmp_path / str(fault), steps)
        assert steps.has_fired
        graph = opened(tmp_path / str(fault))
        if graph.log.read("main.0", 0) is None:
            graph = created(graph.uri, PEOPLE)
        graph.insert("node:Person", ADA)
        assert ids(graph, "node:Person") == ["ada"], fault
