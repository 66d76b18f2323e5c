"""Tools for agents: a graph as a server of the Model Context Protocol.

In: a graph that is open for its actor, its stored queries, and what of them is exposed. Out: tools,
resources and their answers, over standard input and output or over HTTP. Guarantee: a tool that an
actor may not call, one that is not exposed and one that does not exist look the same; an answer is
never larger than its bound; the policy of the graph decides each call again.

    exposure           which tools a graph offers, and how much one answers with
    read_only_gate     the policy of a graph that agents only read
    tool_scope         what the tools of one caller work on
    agent_tool         one tool: its schema, the check of its arguments, and its answer as text
    row_pages          rows within bounds, and cursors to go on
    schema_summary     a schema in so few characters that it fits a context
    graph_tools        the tools that every graph has
    proposal_tools     proposals: opened by agents, and reviewed where that is asked for
    write_tools        those that change it
    stored_query_tools a tool for each stored query
    toolbox            the tools and resources of a graph, or of a server, for one caller
    tool_server        the protocol: lists, calls, and failures
    http_endpoint      the protocol over HTTP, to be mounted by a server
    list_watch         notices that the tools changed, while a client is connected
    stdio_process      the protocol over standard input and output
    tool_sources       the graph, the queries and the policy that a command names
"""
