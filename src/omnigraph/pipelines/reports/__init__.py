"""Reports of runs to other systems: hooks, metrics and lineage events.

In: a run, as the ledger has it, and what its definition says about reports. Out: documents for
commands and services. Guarantee: a report is bounded in time, holds no secret, and never changes
the result of a run; one that fails is a warning of the run in the ledger.

    run_reports        what is reported when a run starts and ends, and warnings of what fails
    run_hooks          commands and webhooks
    run_metrics        metrics in the format of Prometheus
    lineage_events     runs as events of OpenLineage
    dataset_names      what these call sources and targets
    lineage_transport  where these go: the definition, or the environment, says it
    report_sender      one report over HTTP
"""
