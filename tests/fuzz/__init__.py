"""Random graphs and random queries, compared with the model.

In: nothing. Out: a difference between the engine and the model, as small as it can be made.
`world` has the schema and its values, `pen` draws choices, `values` writes operands and
conditions, `patterns` the clauses of a match, `stages` what is before the last of them and reads
that are combined, `reads` whole queries, `lives` graphs that change between them. `agreement` runs
a life on the engine and on the model, with `small_bounds` or usual ones; `shorten` makes a failing
life short, and `queries` runs many.
"""
