"""Clusters: graphs, stored queries, policies and providers as configuration, applied as one.

In: a folder with `cluster.yaml`, and a storage root. Out: documents of verbs, and revisions in the
root. Guarantee: one put commits an apply. What adds is done before it and is unreachable until it;
what destroys is done after it; so a run that ends anywhere is continued by the next one. Plans and
revisions are frozen data.

    control_plane       the verbs
    cluster_config      `cluster.yaml` and its files to the desired state, or every problem
    cluster_schema      the sections of `cluster.yaml`
    embed_rules         whether the vectors of a graph can be made when its config says so
    blob_bases          where the external blobs of a graph may be
    policy_files        the policy bundles, from their files
    pipeline_files      the pipelines and the providers of their sources, from their files
    dashboard           panels over stored queries, read from a text and checked
    dashboard_files     the dashboards, from their files
    query_files         the stored queries of one graph, from its files
    query_registry      the catalogue of stored queries, and queries as JSON Schema
    desired             resources with digests and dependencies
    addresses           addresses of resources
    cluster_plan        the difference to a revision, and what an apply does with each change
    cluster_grants      who gains and who loses what by a change of policies
    migration_preview   what a change of a schema does to the live graph
    approvals           consent to changes that destroy data
    cluster_apply       executes a plan, and computes the next revision
    cluster_world       the five effects of an apply
    cluster_observe     looks at graphs and payloads
    observed_runs       the last run of a pipeline, for status
    revision            a revision, as data and as bytes
    revision_decoder    bytes to a revision, strictly read
    stored_documents    the kinds of fields of what is stored
    cluster_ledger      the revisions of a root
    cluster_history     history, checkout and clean-up
    saved_plan          a plan that was saved, compared with the plan of now
    cluster_lock        who is at work, for people
    cluster_layout      every path that a cluster writes
    cluster_findings    findings with codes
    cluster_documents   what verbs answer
    applied_cluster     an applied cluster as programs use it
    applied_pipelines   its pipelines, and the worker that runs them
"""
