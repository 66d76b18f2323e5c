"""The difference between two states of a graph, for programs and for people.

In: two commits, named in any way, and filters. Out: a `Diff`: counts per type, every changed entity
with its values before and after, and the changed schema lines. Guarantee: the same two commits have
the same diff at any time; values are read on demand, a bounded number at a time.

    graph_diff    the diff
    diff_format   its lines for people, and its HTML for browsers and notebooks
"""

from omnigraph.engine.diff.graph_diff import COLUMNS, Diff, TypeSummary, compute_diff

__all__ = ["COLUMNS", "Diff", "TypeSummary", "compute_diff"]
