"""The schema language, `.pg`.

In: a schema text. Out: a `Catalog`, the checked schema that queries, writers and planners read; the
text in one style; and, against the schema in force, identities and a migration plan. Guarantee:
pure functions of their input. Any text ends in diagnostics with exact positions; a catalog exists
exactly when none of them is an error.

    schema_compiler        the whole way from a text to a catalog
    schema_parser          text to tree
    schema_reader          the cursor of the parser: words, literals, recovery
    schema_dialect_hints   hints for what other languages spell differently
    ast                    the tree
    check                  the rules that the grammar cannot express
    property_types         the types of property values
    property_values        values as both languages spell them
    catalog                the checked schema
    type_sets              sets of node types, by name
    schema_printer         tree to text, in one style
    schema_shape           the canonical form of a catalog, and its hash
    schema_identity        numbers for types, properties and tables, kept across renames
    accepted_schema        the schema in force: a catalog with those numbers
    accepted_decoder       the stored form of an accepted schema, decoded
    migration              the steps from one schema to another
    identity_map           which types and properties of two schemas are the same
    merging                the schema of two branches
"""

from omnigraph.schema.accepted_schema import AcceptedSchema
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.migration import MigrationPlan, plan_migration
from omnigraph.schema.schema_compiler import CompiledSchema, compile_schema, load_catalog
from omnigraph.schema.schema_identity import Acceptance, Evolution, accept_schema, evolve_schema
from omnigraph.schema.schema_parser import ParsedSchema, parse_schema
from omnigraph.schema.schema_printer import format_schema, print_schema
from omnigraph.schema.schema_shape import encode_shape, hash_shape

__all__ = [
    "Acceptance",
    "AcceptedSchema",
    "Catalog",
    "CompiledSchema",
    "Evolution",
    "MigrationPlan",
    "ParsedSchema",
    "accept_schema",
    "compile_schema",
    "encode_shape",
    "evolve_schema",
    "format_schema",
    "hash_shape",
    "load_catalog",
    "parse_schema",
    "plan_migration",
    "print_schema",
]
