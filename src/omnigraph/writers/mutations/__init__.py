"""The parts of a mutation: what is assigned, what is written, what is deleted.

In: the statements of a checked mutation, with parameters, and a view. Out: the changes of the types
they touch, how many entities each touched, and what they read. Guarantee: a statement sees what the
ones before it did; an entity that is written twice is one row, an entity that is deleted twice
counts once.

    assigned    the constants of a statement as values of their properties
    pending     the rows written to one type so far, seen by later statements
    deletions   the entities deleted so far, and the edges that go with them
    looking     the committed rows that statements are about, read together where they can be, and
                what their conditions depend on
    budget      how much of them may be in memory
"""
