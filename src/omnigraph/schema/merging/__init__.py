"""The schema of two branches that changed theirs separately.

In: three schemas of one graph, each as its text and its accepted form: the last common one, ours
and theirs. Out: the merged text, which is ours with the additions of theirs and our comments, and
the merged schema with its numbers; or every conflict. Guarantee: pure and deterministic. What only
one branch changed is as that branch has it; what ours numbered keeps its number, and every other
number that an element ever had is an alias of it.

    schema_merge          the whole merge, and the identities of the result
    schema_sides          names turned into identities, on all three sides
    merged_declarations   which types and members the result has
    declaration_pieces    a declaration as comparable parts
    three_way_choice      the three-way rule and its conflicts
    merged_tree           the chosen parts as a tree
    schema_text_edit      the tree as an edit of our text
"""

from omnigraph.schema.merging.merged_declarations import DroppedElement, UntouchedTypes
from omnigraph.schema.merging.schema_merge import NewNumbers, SchemaMerge, merge_written_schemas
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
