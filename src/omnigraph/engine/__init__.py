"""The engine: graphs, branches and snapshots as programs use them.

In: addresses, texts, and data in any form. Out: commits, results and snapshots. Guarantee: every
operation sees one snapshot; a write is one commit or none; a graph may be used from many threads
and many processes at once. Start other processes with `spawn` and let each open the graph itself: a
forked child has none of the threads its parent's store works with, and waits for them for ever.

    graph         create, open, branches, time travel
    session       one opened graph: who writes, and what it shares with others
    resources     what all handles of a process on one graph share
    background    work after commits, which nobody waits for
    plans         compiled queries, kept by text and schema
    arguments     values of Python as values of the language
    branch        a line of commits: everything that writes
    writing       a write from its snapshot to its commit
    merging       merges, cherry-picks and reverts; `merge_results` are what they answer
    maintenance   indexes and fragments, which change no answer
    bulk_loading  loads of every size, and which engine makes them
    operations    what a load, a mutation and a schema change prepare
    snapshot      a graph as of one commit: everything that reads
    reads         a read from what is asked to what runs
    blobs         the bytes of one property, in ranges
    commit        a commit as data
    diff          what is different between two states
    entity_change one change, which changes are wanted, and the states around a commit
    feed          what commits changed, in pages, behind cursors
    history       one entity through time
    remembered    large arrays that the next request is likely to ask for
    results       what writes answer
    statements    texts that are statements: branches, settings, plans
    variables     what a process looks at in its environment
    check         every structural invariant of a graph, verified
    upkeep        clean-up and tags, which keep commits
    janitor       clean-up by itself, if it is turned on
    repair        what others wrote to the tables, and derived objects that are stale
"""

from omnigraph.engine.blob_reader import Blob
from omnigraph.engine.branch import Branch
from omnigraph.engine.check.graph_check import CheckReport
from omnigraph.engine.commit import Commit
from omnigraph.engine.diff import Diff
from omnigraph.engine.entity_changes import EntityChange
from omnigraph.engine.entity_history import EntityVersion
from omnigraph.engine.feed import Baseline, Block, Cause, ChangesPage, FeedPage
from omnigraph.engine.graph import Graph, connect, create_graph, open_graph
from omnigraph.engine.optimize import IndexBuildResult, OptimizeResult
from omnigraph.engine.repair import RepairReport
from omnigraph.engine.retention import CleanupReport, Tag
from omnigraph.engine.snapshot import Snapshot
from omnigraph.engine.write_results import (
    LoadResult,
    MergePlan,
    MergeResult,
    MutationResult,
    SchemaResult,
    TableInfo,
)
from omnigraph.execution.query_budget import Cancellation
from omnigraph.writers.maintain import IndexState, IndexStatus

__all__ = [
    "Baseline",
    "Blob",
    "Block",
    "Branch",
    "Cancellation",
    "Cause",
    "ChangesPage",
    "CheckReport",
    "CleanupReport",
    "Commit",
    "Diff",
    "EntityChange",
    "EntityVersion",
    "FeedPage",
    "Graph",
    "IndexBuildResult",
    "IndexState",
    "IndexStatus",
    "LoadResult",
    "MergePlan",
    "MergeResult",
    "MutationResult",
    "OptimizeResult",
    "RepairReport",
    "SchemaResult",
    "Snapshot",
    "TableInfo",
    "Tag",
    "connect",
    "create_graph",
    "open_graph",
]
