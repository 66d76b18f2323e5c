"""From accepted schemas and rows to what the tables of a graph hold.

In: an accepted schema, and Arrow rows of one type under their physical column names. Out: the
shape of the type's table, and the ids of its entities. Guarantee: a column keeps its name for life,
and an id is, character for character, the one `omnigraph.schema.values` gives for the same values.
Errors are `UnusableKey`.

    columns       how a type lies in a table
    entity_ids    the ids of keyed entities, a column at a time
"""

from omnigraph.writers.columns import TableShape, arrow_type, table_shape
from omnigraph.writers.entity_ids import canonical_texts, entity_ids

__all__ = ["TableShape", "arrow_type", "canonical_texts", "entity_ids", "table_shape"]
