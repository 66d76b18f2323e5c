"""A schema made from data that people have: files, tables, frames and records.

In: a source for each type, or files that name their types. Out: the text of a `.pg` file that
accepts the rows that were read. Guarantee: a type is chosen only if the readers of a load make
every value that was read of it; what cannot be a property is a typed error that names the column.
A schema is a draft: the first rows say nothing of the others, and people know more than the data.

    schema_inference   types, keys and ends of edges from samples; the text
    column_types       the type of a property from the values of a column
    source_samples     the first rows of a source, by type
"""

from omnigraph.inference.schema_inference import infer_schema

__all__ = ["infer_schema"]
