"""Random branches, merged in every way, compared with the model.

In: nothing. Out: a difference between the engine and the model, or a law of merges that does not
hold. `world` has the first schema and draws records and mutations for any schema, `edits` are the
steps by which a schema changes, `both` does everything twice and compares, `laws` are what holds
for every two branches. `operations` are the rows and columns of the generated table of merges;
`machine` lives random lives, and `lives` many of them.
"""
