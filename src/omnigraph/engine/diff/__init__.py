"""What is different between two states of a graph, for programs and for people.

In: two commits, however they are named, and which changes are wanted. Out: a `Diff`: counts per
type, every entity that changed with its images before and after, and the changed schema lines.
Guarantee: the same two commits have the same diff for ever; images are read only when somebody
looks at them, a bounded number at a time.

    places   the commit that a branch, a name, an id, a version or a time stands for
    diff     the diff itself
    lines    the view for people
    page     the view for browsers and notebooks
"""

from omnigraph.engine.diff.graph_diff import Diff, TypeSummary, compute_diff
from omnigraph.engine.refs import StateRef, resolve_name, resolve_ref

__all__ = ["Diff", "StateRef", "TypeSummary", "compute_diff", "resolve_name", "resolve_ref"]
