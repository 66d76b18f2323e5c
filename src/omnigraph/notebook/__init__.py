"""Omnigraph in notebooks: magics for cells, and a widget that draws.

In: `%load_ext omnigraph`, and what queries and diffs return. Out: results that the notebook shows,
and a widget whose state holds what it draws. Guarantee: nothing is fetched from another machine,
and what is not drawn is counted.

    cell_magics      `%%gq` and `%%pg`
    cell_programs    what a cell does: runs its queries, checks or applies its schema
    drawings         nodes and edges of a result, a diff or a neighbourhood, up to a bound
    graph_widget     the widget, with its module of JavaScript and its style
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omnigraph.errors.query_errors import require_extra

if TYPE_CHECKING:
    from omnigraph.notebook.graph_widget import GraphWidget

__all__ = ["draw", "load_ipython_extension"]

_EXTRA = "notebook"


def draw(thing: Any, *args: Any, **kwargs: Any) -> GraphWidget:
    """A widget that draws a result, a diff, or the neighbourhood of an entity.

    `draw(result)`, `draw(diff)`, `draw(snapshot, "Person", "ada", steps=2)`; a branch is drawn as
    its newest state.
    """
    from omnigraph.notebook.drawings import build_drawing  # noqa: PLC0415 — see below

    with require_extra(_EXTRA):
        # The library of widgets is optional.
        from omnigraph.notebook.graph_widget import GraphWidget  # noqa: PLC0415

    drawing = build_drawing(thing, *args, **kwargs)
    return GraphWidget(nodes=drawing.nodes, edges=drawing.edges, note=drawing.note)


def load_ipython_extension(ipython: Any) -> None:  # Any: the shell of IPython
    """Add `%%gq` and `%%pg` to a notebook: what `%load_ext omnigraph` calls."""
    from omnigraph.notebook.cell_magics import GraphMagics  # noqa: PLC0415 — only for IPython

    magics = GraphMagics(ipython)
    ipython.register_magic_function(magics.run_query_cell, "cell", "gq")
    ipython.register_magic_function(magics.run_schema_cell, "cell", "pg")
