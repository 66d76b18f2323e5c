"""What servers and clients exchange.

In: results of the engine. Out: the documents of requests and answers, and rows as JSON bytes. The
same documents are printed by the command line with `--json`. Guarantee: a member that the contract
has is always present, or absent, or null as the contract says; a test compares every document with
its model.

    protocol_names  media types, headers, and the version of the contract
    json_rows       the rows of a read as JSON bytes
    wire_model      the base classes of requests and answers
    wire_enums      closed lists of words
    wire_requests   the bodies and query strings of requests
    wire_answers    the bodies of answers
    wire_proposals  bodies of requests and answers about proposals
    wire_cluster    bodies about dashboards, plans and deployments
    wire_changes    the bodies of answers about changes
    wire_failures   the bodies of failures
    wire_routes     every route as data
    openapi         the OpenAPI document of the routes
"""
