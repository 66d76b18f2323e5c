"""The HTTP server: graphs, of a cluster or a single one, for many clients.

In: requests. Out: the documents of `wire`. Guarantee: a request sees one state of the server, from
its token to its answer; a write that was acknowledged is committed, and one that was admitted goes
on when its client goes away; a failure shows no path, token or rule.

    server_command        the command `omnigraph-server`
    server_run            a server from its start to its end
    server_workers        several processes on one socket
    server_settings       bounds and addresses, from flags and the environment
    bearer_tokens         whose a token is
    server_boot           how a server starts, and with what it does not
    cluster_serving       the graphs of a revision, opened and under their policies
    cluster_follower      follows revisions and tokens
    server_state          what is served at one moment
    http_process          the socket, the signals, and bounds on connections
    http_app              the path of a request
    route_matching        routes by the raw path
    route_table           every route with its handler
    route_bindings        how a route is served
    request_reader        bodies and query strings as their models
    admission_control     how many writes of an actor are under way
    lanes                 where the work of a request runs
    answer_sender         whole answers, and streams
    exchange              a request as handlers see it, and answers
    query_routes          reads
    stored_query_routes   stored queries and dashboards
    write_routes          writes
    change_routes         changes, exports and baselines
    pipeline_routes       runs of pipelines
    proposal_routes       proposals
    blob_routes           blobs
    agent_routes          agents, by the Model Context Protocol
    deployment_routes     plans and applies of the cluster
    service_routes        the server itself
    web_routes            the web interface
    request_failures      failures as answers
    server_metrics        counts and times, for Prometheus
    request_tracing       spans, for OpenTelemetry
    server_log            the log
"""
