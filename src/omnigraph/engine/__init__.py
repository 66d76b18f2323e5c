"""The engine: graphs, branches and snapshots as programs use them.

In: addresses, texts, and data in any form. Out: commits, results and snapshots. Guarantee: every
operation sees one snapshot; a write is one commit or none; threads and processes may share a graph.
Start other processes with `spawn` and open the graph in each: a forked child has none of the
threads of its parent's store, and waits for them forever.

    graph              create and open graphs; branches, tags, snapshots, statements
    graph_statements   statements of texts: branches, settings and plans
    graph_session      one opened graph: its actor and its shared resources
    resources          what all handles of a process on one graph share
    graph_caches       compiled queries and large arrays, in bounded caches
    background         threads for the work after commits, and for tables written in parallel
    noun_views         graphs, branches and snapshots as HTML for notebooks
    env_settings       the environment variables that a process reads
    arguments          checks and converts the arguments of callers
    refs               a branch, snapshot, name, id, version or time, resolved to a commit
    snapshot           a graph as of one commit: every read
    read_requests      a read, from its arguments to a prepared plan
    read_cursors       where the next page of a read begins
    opaque_texts       documents as texts that callers keep and give back
    visible_rows       rows of limited types, for reads other than queries
    blob_reader        the bytes of one property, in ranges
    branch             a named line of commits: every write
    branch_reads       reads of the newest state of a branch
    branch_maintenance indexes and fragments of a branch, on request
    branch_merges      merges, reverts and cherry-picks of a branch
    branch_log         the commits of a branch, as pipelines look for them
    retries            writes that others overtook, tried again
    commit_loop        a write, from its snapshot to its commit
    write_operations   what a load, a mutation and a schema change prepare
    load_dispatch      which engine makes a load, and the bulk load as an operation
    spark_bridge       imports `omnigraph.spark`, an optional package above this one
    merge_operations   what merges, cherry-picks and reverts prepare
    merger             merges, cherry-picks and reverts, and plans of them
    graph_proposals    what a graph offers of its proposals
    proposals          requests to merge a branch, with reviews, checks and one merge
    write_results      what writes return
    commit             a commit as data
    entity_changes     one change, filters of changes, and the states around a commit
    diff               the difference between two states
    feed               what commits changed, in pages, with cursors
    entity_history     one entity through time, and blame
    vector_builder     makes the vectors of texts that wait for them, in commits of their own
    vector_status      how far the vectors of a branch are, and filling them on request
    optimize           index builds and compaction on request
    retention          clean-up, repair and tags
    auto_cleanup       clean-up after commits, if the environment turns it on
    repair             foreign writes to tables, and stale derived objects
    check              verifies every structural invariant of a graph
"""

from omnigraph.engine.blob_reader import Blob
from omnigraph.engine.branch import Branch
from omnigraph.engine.check.graph_check import CheckReport
from omnigraph.engine.commit import Commit
from omnigraph.engine.diff import Diff
from omnigraph.engine.entity_changes import EntityChange
from omnigraph.engine.entity_history import EntityVersion
from omnigraph.engine.feed import Baseline, Block, Cause, ChangesPage, FeedPage
from omnigraph.engine.graph import Graph, create_graph, open_graph
from omnigraph.engine.load_dispatch import (
    DialectName,
    LoadEngineName,
    LoadModeName,
    MissingName,
    OnErrorName,
)
from omnigraph.engine.optimize import IndexBuildResult, OptimizeResult
from omnigraph.engine.read_requests import ReadEngine
from omnigraph.engine.repair import RepairReport
from omnigraph.engine.retention import CleanupReport, Tag
from omnigraph.engine.snapshot import EntityKind, ExportFormatName, Snapshot
from omnigraph.engine.vector_status import EmbedResult, VectorStatus
from omnigraph.engine.write_results import (
    LoadResult,
    MergePlan,
    MergeResult,
    MutationResult,
    SchemaResult,
    TableInfo,
)
from omnigraph.execution.optimizer.explain_plan import Explained
from omnigraph.execution.query_budget import Cancellation
from omnigraph.execution.result import Result
from omnigraph.versioning.upgrade import UpgradeReport
from omnigraph.writers.inputs import Text
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
    "DialectName",
    "Diff",
    "EmbedResult",
    "EntityChange",
    "EntityKind",
    "EntityVersion",
    "Explained",
    "ExportFormatName",
    "FeedPage",
    "Graph",
    "IndexBuildResult",
    "IndexState",
    "IndexStatus",
    "LoadEngineName",
    "LoadModeName",
    "LoadResult",
    "MergePlan",
    "MergeResult",
    "MissingName",
    "MutationResult",
    "OnErrorName",
    "OptimizeResult",
    "ReadEngine",
    "RepairReport",
    "Result",
    "SchemaResult",
    "Snapshot",
    "TableInfo",
    "Tag",
    "Text",
    "UpgradeReport",
    "VectorStatus",
    "create_graph",
    "open_graph",
]
