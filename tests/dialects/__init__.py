"""The two JSON dialects of a load, and values as JSON: text to records, one plain object each.

`values` converts single values, `records` reads whole texts, `export` writes them.
"""

from dialects.export import export_text
from dialects.records import Record, RecordReader
from dialects.values import each, from_json, graph_rows, stored, to_json

__all__ = [
    "Record",
    "RecordReader",
    "each",
    "export_text",
    "from_json",
    "graph_rows",
    "stored",
    "to_json",
]
