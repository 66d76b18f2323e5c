"""Inputs of a load: files, texts, records, tables and frames become rows by type.

In: a source, the accepted schema, and the options. Out: an `Input`: the rows of each type with the
place each of them came from. Guarantee: every value has the form that its property needs, or a
typed error names file, line, property, value and rule, for up to 20 records and with a count.
Nothing is read twice; memory holds the rows and one block of the source. Of the rules of the
schema, only the form of values is checked here.

    input_reader      what kind of source it is
    json_reader       JSON records of both dialects, block by block
    line_blocks       a stream cut into blocks of lines
    arrow_json        most lines, by Arrow's reader; doubtful lines are left to `exact_json`
    exact_json        records one by one: the authority on records and its messages
    value_coercion    single values of records as property values
    csv_reader        CSV files: columns of texts
    csv_records       where the records of a CSV file start and end
    csv_ranges        a CSV file cut into ranges of bytes
    list_texts        lists and vectors that are JSON in CSV and GraphML
    graphml_reader    GraphML documents: the types, ids and values of their elements
    graphml_parser    the elements of a document
    input_tables      tables and frames of one type
    record_tables     lists of records and dicts of columns as tables
    coerced_columns   columns as columns of property values, by casts
    row_sink          collects rows, places and rejected records from all readers
    parameter_records lists of records among the parameters of a mutation
    required_values   values that must be present
    input_rows        the result
"""

from omnigraph.writers.inputs.input_reader import InputSource, read_input
from omnigraph.writers.inputs.input_rows import (
    Dialect,
    FileOrigins,
    IncomingRows,
    Input,
    InputOptions,
    Progress,
    Text,
)

__all__ = [
    "Dialect",
    "FileOrigins",
    "IncomingRows",
    "Input",
    "InputOptions",
    "InputSource",
    "Progress",
    "Text",
    "read_input",
]
