"""What changed between two commits, by the ids that their records name and the images of those.

In: two views and their lineage. Out: per type the entities that were inserted, updated or deleted,
with their rows before and after. Guarantee: only real changes; the cost follows what was written
between the two commits, never the tables, and vectors and blobs are read only where nothing else
decides.

    pairing      which types and columns of two schemas are the same ones
    writes       the ids that records name, and the candidates of two views
    rows         rows of ids at a view
    equality     which values of two columns differ
    comparison   which rows of two tables differ
    changed      the real changes of one type, and of all types in order
    texts        images as JSON text
"""
