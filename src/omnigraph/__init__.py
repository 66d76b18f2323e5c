"""Omnigraph: a lakehouse graph database.

    graph = omnigraph.create("./org.omni", schema=text, actor="ada")
    main = graph.branch("main")
    main.load("people.jsonl", mode="append")
    print(main.query(queries, name="colleagues", params={"who": "Ada"}).to_pandas())

The names below load what they need when they are first used: the engine with its libraries (Arrow,
Lance), or the exceptions. Importing the package, compiling schemas and queries, and commands that
only read texts do not load the engine.

Packages and modules, from the public surface down to the leaves; each imports only from below:

    notebook        magics and a widget for notebooks
    cli             the command line
    connection      opens the graph of an address, wherever it is
    mcp             a graph as tools for agents
    client          graphs on servers, with the same classes
    pipelines       data pipelines as YAML, on Spark
    spark           bulk work as Spark tasks
    aio             graphs whose methods are awaited
    operator_config servers, profiles, defaults and credentials of a user
    templates       graphs with sample data, to begin with
    wire            the documents that servers and clients exchange, and the routes
    engine          graphs, branches and snapshots as programs use them
    exports         types as files for other programs
    networks        snapshots as graphs of other libraries
    inference       a draft of a schema from data files and frames
    bulk            loads of any size, cut into splits
    writers         loads, mutations, migrations and merges as transactions
    changes         the real changes between two commits
    execution       read plans, from the optimizer to the result
    rows            how entities lie in tables, and expressions over columns of values
    versioning      commits, branches, transactions and garbage collection
    storage         objects by path, and Lance tables by pinned version
    embedding       texts to vectors
    query           the query language
    schema          the schema language
    errors          every exception, in one tree
    lang            the lexer, cursor, printer and diagnostics that both languages share
    ids             ULIDs
    durations       time spans such as `15m`
    html_views      tables and documents as HTML for notebooks
    lru_cache       the bounded cache of every layer
    format_version  the version of the stored schema
    error_codes     the codes on which clients branch
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnigraph import errors
    from omnigraph.aio import (
        AsyncBaseline,
        AsyncBlob,
        AsyncBranch,
        AsyncDiff,
        AsyncGraph,
        AsyncProposal,
        AsyncProposalDraft,
        AsyncSnapshot,
    )
    from omnigraph.connection import connect, connect_async
    from omnigraph.engine import (
        Baseline,
        Blob,
        Branch,
        Cancellation,
        ChangesPage,
        CheckReport,
        CleanupReport,
        Commit,
        DialectName,
        Diff,
        EntityChange,
        EntityKind,
        EntityVersion,
        Explained,
        ExportFormatName,
        FeedPage,
        Graph,
        IndexBuildResult,
        IndexStatus,
        LoadEngineName,
        LoadModeName,
        LoadResult,
        MergePlan,
        MergeResult,
        MissingName,
        MutationResult,
        OnErrorName,
        OptimizeResult,
        ReadEngine,
        RepairReport,
        Result,
        SchemaResult,
        Snapshot,
        TableInfo,
        Tag,
        Text,
        UpgradeReport,
    )
    from omnigraph.engine import create_graph as create
    from omnigraph.engine import open_graph as open  # noqa: A004
    from omnigraph.engine.proposals import (
        Proposal,
        ProposalDraft,
        ProposalInfo,
        ProposalListing,
    )
    from omnigraph.inference import infer_schema
    from omnigraph.templates import create_from_template

# Here, because every later failure on such a platform would be an obscure one.
if sys.platform == "win32":
    from omnigraph.errors import UnsupportedPlatformError

    raise UnsupportedPlatformError(sys.platform)

__version__ = "0.1.0"

__all__ = [
    "AsyncBaseline",
    "AsyncBlob",
    "AsyncBranch",
    "AsyncDiff",
    "AsyncGraph",
    "AsyncProposal",
    "AsyncProposalDraft",
    "AsyncSnapshot",
    "Baseline",
    "Blob",
    "Branch",
    "Cancellation",
    "ChangesPage",
    "CheckReport",
    "CleanupReport",
    "Commit",
    "DialectName",
    "Diff",
    "EntityChange",
    "EntityKind",
    "EntityVersion",
    "Explained",
    "ExportFormatName",
    "FeedPage",
    "Graph",
    "IndexBuildResult",
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
    "Proposal",
    "ProposalDraft",
    "ProposalInfo",
    "ProposalListing",
    "ReadEngine",
    "RepairReport",
    "Result",
    "SchemaResult",
    "Snapshot",
    "TableInfo",
    "Tag",
    "Text",
    "UpgradeReport",
    "__version__",
    "cluster",
    "connect",
    "connect_async",
    "create",
    "create_from_template",
    "errors",
    "infer_schema",
    "open",
]

_ABOVE = {
    "connect": "omnigraph.connection",
    "connect_async": "omnigraph.connection",
    "create_from_template": "omnigraph.templates",
    # What `%load_ext omnigraph` of IPython calls.
    "load_ipython_extension": "omnigraph.notebook",
    "infer_schema": "omnigraph.inference",
} | {name: "omnigraph.aio" for name in __all__ if name.startswith("Async")}
_ABOVE |= {name: "omnigraph.engine.proposals" for name in __all__ if name.startswith("Proposal")}
_ENGINE = {name: name for name in (*__all__, *_ABOVE)} | {
    "create": "create_graph",
    "open": "open_graph",
}


def __getattr__(name: str) -> Any:  # whatever the engine has under the name
    if name == "errors":
        # A `from omnigraph import errors` would ask this function again.
        import omnigraph.errors  # noqa: PLC0415 — most programs meet no error

        return omnigraph.errors
    if name not in _ENGINE:
        raise AttributeError(f"module 'omnigraph' has no attribute {name!r}")
    if name in _ABOVE:
        # By name: packages that this module serves lie below those.
        return getattr(import_module(_ABOVE[name]), name)
    if name == "cluster":
        # By its name: the package is above others that import this one.
        module = import_module("omnigraph.clusters.applied_cluster")
        found = globals()[name] = module.open_cluster
        return found
    from omnigraph import engine  # noqa: PLC0415 — heavy: see above

    found = globals()[name] = getattr(engine, _ENGINE[name])
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
