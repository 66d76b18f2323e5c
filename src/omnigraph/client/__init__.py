"""Graphs on servers, with the classes of graphs on storage.

In: the URL of a graph and a token. Out: a `Graph` whose branches and snapshots are requests, the
same results, and the same errors. Guarantee: a request is sent again only if it did nothing, or if
it has a key; no redirect is followed, so a token goes to the address that it belongs to only.

    remote_graph       graphs, and their stored queries
    remote_branch      branches: reads, writes and merges
    remote_snapshot    reads of one commit, blobs and exports
    remote_diff        diffs of two states
    remote_merges      merges, reverts and cherry-picks, and their plans
    remote_proposal    proposals
    proposal_decoding  documents of proposals as data
    remote_feed        change feeds and baselines
    remote_states      how states are named in requests, and what only storage can do
    served_cluster     plans and applies of a folder at a server
    load_bodies        sources of loads as JSON lines
    record_parameters  lists of records as JSON
    result_columns     columns of results by their Arrow types
    document_decoding  documents as results
    error_decoding     failures as errors
    http_transport     requests, retries and streams
    cancellable_connections  requests that another thread may end
"""
