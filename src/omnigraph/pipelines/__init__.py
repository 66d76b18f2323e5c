"""Pipelines as code: records from sources become entities of graphs, on Spark.

In: a definition, which is a YAML file, and the secrets of its environment. Out: for each target one
commit, and events in a ledger that tell what became of it. Guarantee: a slot of a pipeline is
written once to each target, wherever a process ends and however often it is run, because the key of
the load is on the record of its commit; and it is skipped only while the target still has it.

    places, fields, shapes        what a definition may hold, and reading that strictly
    definition, mapping           definitions as data
    reading, read_sources, read_mappings     YAML to data, with the place of every problem
    secrets, resolving            `${NAME}`, and definitions with their values
    check                         mappings against the schemas of their targets
    sql, guards, frames           mappings as Spark SQL, records they refuse, rows of each type
    sources                       where records come from
    origins, loading              which record a row was made of, and loads of rows
    ledger, slots                 what runs did, and what a run stands for
    load_history, once            which load a target has, and what is noted of each
    targets, run                  one target, and all of them
    schedule, due, stream         when: by the clock, or as files come
    validation                    all that is wrong with a definition, at once
    review                        looking at pipelines without running them
"""

from omnigraph.pipelines.config.definition import Pipeline
from omnigraph.pipelines.config.definition_reader import read_pipeline
from omnigraph.pipelines.ledger.run_ledger import Run, TargetRun
from omnigraph.pipelines.run.pipeline_run import RunOptions, run_pipeline

__all__ = ["Pipeline", "Run", "RunOptions", "TargetRun", "read_pipeline", "run_pipeline"]
