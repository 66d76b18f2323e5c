"""The schema language, `.pg`.

In: a schema text. Out: a `Catalog`, the checked schema that queries, writers and planners read; the
text in one style; and, against the schema in force, identities and a migration plan. Guarantee:
pure functions of their input; any text ends in diagnostics, all of them with exact places; a
catalog exists exactly when none of them is an error.

Modules, in order of control flow: `types` and `values` (what properties hold), `ast`, `habits`
(hints for what other languages spell differently), `reader` and `parser` (text to tree), `check`
(the rules, one concern per module), `build` (tree to `catalog`), `compile` (all of it), `printer`
(tree to text), `shape` (the canonical form and its hash), `accepted`, `resolution` and `identity`
(numbers that outlive names), `accepted_reader` (the stored form), `migration` (what must happen to
a graph), `continuity` (what two schemas share) and `merging` (the schema of two branches).
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
