"""One changed entity, and what everybody needs who tells of changes: diffs, feeds and histories.

In: two states of a graph, and the words of a caller. Out: changes as data, and which of them are
wanted. Guarantee: nothing here reads a table.

    change    what happened to one entity
    filters   which changes are wanted
    states    a commit between the state of its parent and its own
"""

from omnigraph.engine.entity_change.change import EntityChange
from omnigraph.engine.entity_change.filters import BoundFilters, Filters, parse_filters
from omnigraph.engine.entity_change.states import CommitStates, load_commit_states

__all__ = [
    "BoundFilters",
    "CommitStates",
    "EntityChange",
    "Filters",
    "load_commit_states",
    "parse_filters",
]
