"""Which record of a source a row was made of, and where that is.

In: records as a source gives them. Out: the same with two numbers beside each, which go through a
mapping with its rows; and for rows that cannot be written, the place and the text of their records.
Guarantee: the same place in every run of the same records. Rows that are written cost a few bytes
more; a source is read again only if rows are rejected.

    packing        how files become partitions, the same in all jobs
    numbering      the numbers of a record, by the kind of its source
    file_places    lines and rows of files
    locating       records that are looked for again
"""
