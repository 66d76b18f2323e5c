"""The cells of the page on notebooks, run by a kernel."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

PAGE = Path(__file__).parents[3] / "docs" / "guide" / "notebooks.md"
CELLS = re.findall(r"^```ipython\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
STATES = "application/vnd.jupyter.widget-state+json"


def run_cells(cells: list[str], folder: Path) -> Any:
    """The notebook of some cells after they ran."""
    v4: Any = nbformat.v4  # its functions have no types
    notebook = v4.new_notebook(cells=[v4.new_code_cell(each) for each in cells])
    client = NotebookClient(notebook, timeout=120, kernel_name="python3")
    return client.execute(cwd=str(folder))


def find_output(cell: Any, kind: str) -> str:
    """The output of a kind that a cell has."""
    (found,) = [each["data"][kind] for each in cell.outputs if kind in each.get("data", {})]
    return str(found)


@pytest.mark.slow
def test_the_cells_of_the_page_show_rows_and_draw_graphs(tmp_path: Path) -> None:
    extra = [
        "hired",
        "schema",
        "neighbourhood.selected = {'id': 'Person:eve'}",
        "pairs.show(2)",
        "%%gq\nquery one() { return { 1 as n } }\nquery two() { return { 2 as n } }",
        "%%pg graph --plan\nnode Person { handle: String @key  name: String @index }",
    ]
    found = run_cells([*CELLS, *extra], tmp_path)
    cells = {cell.source: cell for cell in found.cells}
    for start, shown in {
        "%load_ext": "<td>WorksAt</td>",
        "%%gq graph\nquery friends": "<td>Kim Park</td>",
        "hired": "<th>affected_nodes</th><td>1</td>",
        "pairs.show": "13 rows, of which the first 2 are shown",
        "%%pg graph": "<b>MigrationPlan</b>",
    }.items():
        (cell,) = [each for source, each in cells.items() if source.startswith(start)]
        assert shown in find_output(cell, "text/html")
    assert "node City" in find_output(cells["schema"], "text/plain")
    two = [each["data"]["text/plain"] for each in cells[extra[4]].outputs]
    assert [text.splitlines()[2] for text in two] == ["1", "2"]
    states = [each["state"] for each in found.metadata["widgets"][STATES]["state"].values()]
    around, changes, pairs = [each for each in states if "edges" in each]
    assert around["note"] == "11 nodes, 16 edges"
    assert around["selected"] == {"id": "Person:eve"}
    assert {node["label"] for node in around["nodes"]} >= {"Eve Lindqvist", "Kim Park"}
    assert [(node["id"], node["op"]) for node in changes["nodes"]] == [
        ("Person:zoe", "insert"),
        ("Person:eve", ""),
    ]
    ((source, target, op),) = [(e["source"], e["target"], e["op"]) for e in changes["edges"]]
    assert (source, target, op) == ("Person:zoe", "Person:eve", "insert")
    assert len(pairs["edges"]) == 13
    assert "export default" in around["_esm"]
    assert "http" not in around["_esm"] + around["_css"]


@pytest.mark.slow
def test_a_mistake_in_a_cell_is_a_message_with_its_place(tmp_path: Path) -> None:
    cells = [CELLS[0], "%%gq graph\nmatch { $p: Persn } return { $p.name }"]
    with pytest.raises(CellExecutionError) as failure:
        run_cells(cells, tmp_path)
    text = str(failure.value)
    assert "UsageError" in text
    assert "shell:1:13" in text
    assert "unknown node type 'Persn'" in text
    assert "cell_magics.py" not in text
