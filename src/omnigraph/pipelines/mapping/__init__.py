"""Mappings: records of a source become rows of types, as Spark SQL.

In: the mapping of a target, the schema of its graph, and frames of records. Out: one Spark frame
per type. Guarantee: a mapping is checked against the columns of its sources and the schema of its
target before a row is read; an expression that fails for a record rejects that record and does not
end the job.

    mapping_checks   the mapping against the schema of its target
    mapping_frames   the frames of all types, resolved and checked
    mapping_sql      the rules of a mapping as SQL steps
    arrow_rules      rules that tasks evaluate on the records they read, without Spark SQL
    arrow_expressions    their expressions: columns, casts, constants, conditions
    arrow_casts      casts with the results of Spark
    row_guards       expressions that reject a record instead of failing the job
    record_ids       the numbers that identify a record in every read of its source
"""
