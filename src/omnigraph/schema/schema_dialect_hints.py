"""What people who know other languages write in a schema, and what to write instead."""

from __future__ import annotations

_COMMENT = "a comment starts with '//', or stands between '/*' and '*/'"

# Wherever something else is expected.
SCHEMA_HINTS = {
    "#": _COMMENT,
    "--": _COMMENT,
    "'": "a text stands in double quotes",
    "extends": "a node takes over interfaces with 'implements'",
}
# Where a declaration may start.
DECLARATION_HINTS = {
    "config": "a schema holds types only: interface, node, edge",
    "import": "a schema is one file; there is no 'import'",
    "include": "a schema is one file; there is no 'include'",
    "type": "write 'node' or 'edge'",
    "enum": "an enum has no name of its own: write property: enum(a, b)",
}
# Where a property may start.
MEMBER_HINTS = {
    "@": "annotations directly follow the type of their property",
    "=": "a default follows the type, before annotations: property: Type = value",
    "!": "a property is required unless its type ends in '?'",
    "|": "a property has one type; a choice of words is enum(a, b)",
}
# Inside a type.
TYPE_HINTS = {
    "?": "the elements of a list are never null; write '?' after the bracket: [String]?",
    "[": "a list cannot hold lists",
}
# Names of types, in lower case; parameters of queries have the same types.
TYPE_NAME_HINTS = {
    **dict.fromkeys(("int", "integer", "i8", "i16", "short"), "write I32 or I64"),
    **dict.fromkeys(("long", "bigint"), "write I64"),
    **dict.fromkeys(("uint", "u8", "u16"), "write U32 or U64"),
    **dict.fromkeys(("float", "number", "decimal", "numeric", "real"), "write F32 or F64"),
    "double": "write F64",
    **dict.fromkeys(("text", "varchar", "char", "uuid", "id", "json"), "write String"),
    **dict.fromkeys(("timestamp", "time"), "write DateTime"),
    **dict.fromkeys(("bytes", "binary"), "write Blob"),
    **dict.fromkeys(("list", "array"), "a list is written with brackets: [String]"),
}
