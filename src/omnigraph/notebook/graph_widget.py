"""The widget that draws a graph: its state is what it draws, and what is selected."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import anywidget
import traitlets

_FOLDER: Final = Path(__file__).parent


class GraphWidget(anywidget.AnyWidget):
    """Nodes and edges; `selected` is the node or edge that was clicked on."""

    _esm = _FOLDER / "graph_widget.js"
    _css = _FOLDER / "graph_widget.css"
    nodes = traitlets.List(traitlets.Dict()).tag(sync=True)
    edges = traitlets.List(traitlets.Dict()).tag(sync=True)
    note = traitlets.Unicode().tag(sync=True)
    height = traitlets.Int(420).tag(sync=True)
    selected = traitlets.Dict().tag(sync=True)
