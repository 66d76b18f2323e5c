"""The rules of the schema language that its grammar cannot express.

In: declarations of a syntax tree and a `Collector`. Out: drafts of properties and constraints, from
which `omnigraph.schema.schema_compiler` builds the catalog. Guarantee: every broken rule is
reported at its position; a name that a grammar error may have swallowed is not reported as unknown;
what is built from a text without errors needs no further checks.

    property_drafts      properties: names, types, annotations, inheritance
    schema_annotations   which annotation may stand where, and what it means
    schema_constraints   the constraints of one type
    merge_rules          which properties may have which merge rule
    property_defaults    which properties may have a default
"""
