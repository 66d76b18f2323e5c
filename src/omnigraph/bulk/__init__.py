"""Bulk writes, cut into units that run in this process or on Spark.

In: files, staged tables or texts, and a view. Out: one transaction for the publisher. Guarantee:
that of a load in one process, in its words, for an input of any size. A unit may be run more than
once: what it writes is seen by nobody until the driver, which takes one answer of each, commits it.

    runner         who runs the units
    sources        what a load reads, and what has to be staged for that
    units          the parts into which files are cut
    stores         the graph as a worker sees it
    notes          what tasks leave for each other
    attending      the units that are under way, and what they have written
    streams        the bytes and batches of a unit
    unit_reading   a unit read by the readers of every load
    rows           rows identified, and without those that break a rule by themselves
    heads          what is wrong with table files, before their rows are read
    writing        the task that reads, checks and writes a unit, and notes the hashes of its rows
    hashes         sorted files of hashes
    comparing      the task that compares the hashes of all units
    probing        the tasks that look through committed rows
    examining      a load compared with itself and with what is committed
    gathering      the task that reads suspected rows back
    explaining     suspected rows judged by the rules of every write
    staged_load    what the units wrote
    places         where records are
    problems       what is wrong with single records
    raw_texts      the task that reads bad records again
    origins        the records that rows were made of, for sources that know them
    rejects        bad records as an error, and as a file
    publication    a valid load as a transaction
    load           all of it in order
"""
