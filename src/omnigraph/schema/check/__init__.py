"""The rules of the schema language that its grammar cannot say.

In: declarations of a syntax tree and a `Collector`. Out: drafts of properties and constraints from
which `omnigraph.schema.schema_compiler` makes the catalog. Guarantee: every broken rule is reported where it
stands, a name that a grammar error may have swallowed is not called unknown, and what is built from
a text without errors needs no further checks.

Modules, in order of control flow: `declarations` (names of types, ends and cardinality of edges),
`drafts` (a property being checked), `types` (written types to property types), `annotations`,
`properties` (names, types and annotations together), `interfaces` (properties a node gets from
them), `fitness` (which constraint fits which type), `constraints`.
"""
