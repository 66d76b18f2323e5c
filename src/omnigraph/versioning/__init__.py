"""Commits, branches and time travel: tables become one graph with a history.

In: transactions, which are effects on tables, the changes they make and what they depend on. Out:
records and snapshots. Guarantee: a commit is visible on all its tables or on none, from the moment
its record exists; of two conflicting writes, the later one is prepared again or refused; a crash at
any step needs no repair; no acknowledged commit is lost.

    transaction        a write as data, with its dependencies and requirements
    footprint          what a write depends on, and whether a commit changed it
    effects            what a commit does to tables, as data, and the function that applies it
    publisher          one queue per branch and process, which groups waiting writes
    committer          stage, put, rebase: the only module that creates records
    puts               puts a record and determines the outcome
    commit_clock       times of commits, which rise along a branch
    record             commits, change sets and streams as data
    record_codec       records as bytes, and a cache of decoded ones
    graph_format       the format of a whole graph: a number and the names of features
    json_fields        our JSON objects, with their format and digest checked
    change_sets        change sets that are too large for their record
    id_sets            sets of ids, small or large
    log                the records of a stream: found, read, folded
    log_snapshot       a snapshot: a schema and a pin per type; checkpoints
    schema_store       accepted schemas by the hash of their content
    ref_events         the append-only events of branch and tag names
    branches           names that stand for streams
    proposals          requests to merge a branch, as events and their fold
    tag_events         tags as data, and the event that creates one
    separate_tags      tags of graphs that were not upgraded, apart from branches
    tags               names for commits, which retain them
    retention_roots    what retains a commit, and leases while another commit is made from it
    first_parents      the first-parent line of a commit
    lineage            common ancestors, and the records between two commits
    shared_history     what two commits share, as a sum of commits
    commit_history     commits and snapshots by branch, id, version and time
    auto_compaction    joins small fragments after commits
    retention_floors   how far back the commits of a branch can be read
    sweeps             which files a collector may be removing
    upgrade            brings a graph of an older format to the current one
    gc                 releases old commits and removes what nothing refers to
"""

from omnigraph.versioning.auto_compaction import Compactor, compact
from omnigraph.versioning.branches import Branches
from omnigraph.versioning.commit_history import History
from omnigraph.versioning.committer import Committer
from omnigraph.versioning.effects import (
    AddColumns,
    Adopt,
    Append,
    ConvertColumns,
    Drop,
    Effect,
    LocatedRows,
    Maintain,
    Overwrite,
    Register,
    Rename,
    Replace,
)
from omnigraph.versioning.footprint import WHOLE, Footprint, ReadSet, make_mark
from omnigraph.versioning.id_sets import IdSet
from omnigraph.versioning.lineage import Lineage
from omnigraph.versioning.log import Log
from omnigraph.versioning.log_snapshot import Head, Snapshot
from omnigraph.versioning.publisher import Publisher, Publishers
from omnigraph.versioning.record import (
    MAIN,
    Bulk,
    Changed,
    ChangeSet,
    CommitRef,
    Maintenance,
    Record,
    Signature,
    Spilled,
    Stream,
)
from omnigraph.versioning.transaction import (
    BranchAt,
    PrepareAgain,
    Requirement,
    Retained,
    Settings,
    Transaction,
)

__all__ = [
    "MAIN",
    "WHOLE",
    "AddColumns",
    "Adopt",
    "Append",
    "BranchAt",
    "Branches",
    "Bulk",
    "ChangeSet",
    "Changed",
    "CommitRef",
    "Committer",
    "Compactor",
    "ConvertColumns",
    "Drop",
    "Effect",
    "Footprint",
    "Head",
    "History",
    "IdSet",
    "Lineage",
    "LocatedRows",
    "Log",
    "Maintain",
    "Maintenance",
    "Overwrite",
    "PrepareAgain",
    "Publisher",
    "Publishers",
    "ReadSet",
    "Record",
    "Register",
    "Rename",
    "Replace",
    "Requirement",
    "Retained",
    "Settings",
    "Signature",
    "Snapshot",
    "Spilled",
    "Stream",
    "Transaction",
    "compact",
    "make_mark",
]
