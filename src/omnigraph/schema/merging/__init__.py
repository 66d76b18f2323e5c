"""Merging: the schema of two branches that changed theirs separately.

In: three schemas of one graph, each as its text and what it was accepted as: the last one both
branches had, ours and theirs. Out: the merged text, which is ours with what theirs adds and our
comments, the merged schema with its numbers, or every conflict. Guarantee: pure and deterministic;
what only one branch changed is as that branch has it; what ours numbered keeps its number, and
every other number that an element ever had is an alias of it.

Modules, in order of control flow: `merge` (the whole of it), `sides` (names turned into
identities), `pieces` (a declaration as comparable parts), `choice` (the three-way rule and its
conflicts), `declarations` (which types and members there will be), `rebuilding` (chosen parts to a
tree), `text` (a tree as an edit of our text), `numbering` (identities of the result).
"""

from omnigraph.schema.merging.merged_declarations import DroppedElement, UntouchedTypes
from omnigraph.schema.merging.merged_identities import NewNumbers
from omnigraph.schema.merging.schema_merge import SchemaMerge, merge_written_schemas
from omnigraph.schema.merging.schema_sides import WrittenSchema
from omnigraph.schema.merging.three_way_choice import SchemaConflict

__all__ = [
    "DroppedElement",
    "NewNumbers",
    "SchemaConflict",
    "SchemaMerge",
    "UntouchedTypes",
    "WrittenSchema",
    "merge_written_schemas",
]
