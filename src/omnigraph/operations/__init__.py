"""What HTTP, MCP and the command line do with a graph, once.

In: a graph that is open for its actor, and a request of `wire`. Out: the documents of `wire`, as
plain data, or what is streamed. Guarantee: every way to a graph answers the same, and asks the
policy of the graph before it reads, writes or shows that something exists.

    graph_reads      queries, snapshots, schemas and blobs of a state
    graph_writes     mutations, loads, schema changes, and branches
    history_reads    commits, and what they changed
    proposal_actions proposals, from their opening to their merge
    stored_queries   the stored queries of a graph, calls of them, and dashboards
    deployments      plans and applies of the cluster, by its own policy
    service_health   that a program is alive, and its versions
"""
