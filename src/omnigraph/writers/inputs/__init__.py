"""Inputs of a load: files, texts, records, tables and frames become rows by type.

In: a source, the accepted schema, and the options. Out: an `Input`, the rows of each type with the
place each of them came from. Guarantee: every value has the form its property needs, or a typed
error names file, line, property, value and rule, for up to 20 records and with a count. Nothing is
read twice, and memory holds the rows and one block of the source. No rule of the schema but the
form of values is checked here.

    read           what kind of source it is
    files          paths, folders and patterns of files
    json_input     JSON records of both dialects, block by block
    lines          a stream cut into blocks of lines
    many_records   most lines, by Arrow; what is in doubt is left over
    json_reading   what is left over, as plain objects
    records        records one by one: the authority, and its words
    value_reading  single values of records
    csv_files      CSV files: tables of texts
    csv_records    where the records of a CSV file are
    csv_ranges     a CSV file cut into ranges of bytes
    tables         tables and frames of one type
    arrow_values   columns to columns, by casts
    temporal_texts columns of date texts
    fitted         values and which of them are bad
    reading        rows, places and refusals so far
    required       values that must be there
    legacy_ids     old ids of keyed nodes
    data           the result
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
