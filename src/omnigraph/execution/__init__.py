"""Evaluation of plans and conditions over the tables of a snapshot.

In: a view (a snapshot with its schema and tables), a plan or conditions, and parameters. Out:
results and rows in Arrow, and exports. Guarantee: answers depend on the snapshot alone, never on
how rows lie in files, on an index, or on what a table filters by itself.

`view` opens a snapshot and `columns` says how its types lie in tables; `entity_ids` and `fresh_ids`
name entities, and `distinct` tells whether texts differ. A read runs by `read`: it takes rows from
`scan`, which finds the ids that conditions name (`pinned`), lets the table filter what it can
(`pushdown`) and evaluates the rest (`expressions`, on `exact`, `membership` and
`text_predicates`); then it groups (`groups`), sorts (`order`) and gives a `result` its types
(`result_types`) and JSON (`json_values`). `export` writes entities as lines of `json_text`. `text`
analyses text the way full-text search sees it; every engine that searches uses it, so that the
presence of an index never changes an answer.
"""
