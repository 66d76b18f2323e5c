"""Evaluation of plans and conditions over the tables of a snapshot.

In: a view (a snapshot with its schema and tables), a plan or conditions, and parameters. Out:
results and rows in Arrow, and exports. Guarantee: answers depend on the snapshot alone, never on
how rows lie in files, on an index, or on what a table filters by itself.

`view` opens a snapshot and `columns` says how its types lie in tables; `entity_ids` and `fresh_ids`
name entities, and `distinct` tells by `hashing` whether texts differ. A read runs by `read`, within
`options` and a `budget`, which bounds a `timed_embedder` too: `access` says where it gets nodes and
edges from. That is a `source`, one of the `sources` of the graph: whole types in memory
(`topology`) or what the read meets (`lookups`); or it is `scanned` straight from the table of its
only type. As a `reading`, a plan goes through `planner`, which chooses an order; `pattern` matches
it to rows, each a `batch` of numbers, `search` ranks them, and `tail` makes them a `result`: it
groups (`groups`, `sums`), sorts (`order`) and gives values their types (`result_types`) and JSON
(`json_values`).

`scan` reads the rows of one type: it finds the ids that conditions name (`pinned`), lets the table
filter what it can (`pushdown`) and evaluates the rest (`expressions`, on `exact`, `membership` and
`text_predicates`). `export` writes entities as lines of `json_text`, `type_dataset` gives a type to
other programs, and `networks` a snapshot to networkx. `text` analyses text the way full-text search
sees it; every engine that searches uses it, so that the presence of an index never changes an
answer.
"""
