"""Pipelines as code: records from sources become entities of graphs, on Spark.

In: a definition, which is a YAML file, and the secrets of its environment. Out: for each target one
commit, and events in a ledger. Guarantee: a slot of a pipeline is written once to each target,
wherever a process ends and however often it runs, because the idempotency key of the load is in the
record of its commit. A slot is skipped only while the target still holds its load.

    config    definitions: YAML to data, secrets, validation
    sources   records from files, PostgreSQL, HTTP, Kafka and graphs, as Spark frames
    mapping   records to rows of types, as Spark SQL
    run       slots, runs, targets, schedules and streams
    reports   hooks, metrics and lineage events of runs
    ledger    the events of runs, and the loads that a target has
"""

from omnigraph.errors.query_errors import require_extra

with require_extra("pipelines"):
    from omnigraph.pipelines.config.definition import Pipeline
    from omnigraph.pipelines.config.definition_reader import read_pipeline
    from omnigraph.pipelines.ledger.run_ledger import Run, TargetRun
    from omnigraph.pipelines.run.pipeline_run import RunOptions, run_pipeline

__all__ = ["Pipeline", "Run", "RunOptions", "TargetRun", "read_pipeline", "run_pipeline"]
