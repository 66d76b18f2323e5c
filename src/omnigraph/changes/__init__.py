"""The real changes between two commits.

In: two views and the lineage that connects them. Out: per type, the entities that were inserted,
updated or deleted, with their rows before and after. Guarantee: an entity whose values are equal on
both sides is not reported. The cost follows what was written between the two commits, not the size
of the tables; vectors and blobs are read only where no other column decides.

    type_pairs          which types and columns of two schemas are the same
    change_candidates   the ids that change sets name, which may have changed
    rows_by_id          the rows of those ids at a view
    row_comparison      which rows of two tables differ
    type_difference     the changes of one type, and of all types in order, with images as JSON
"""
