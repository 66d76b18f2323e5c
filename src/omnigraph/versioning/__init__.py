"""Commits, branches and time travel: tables become one graph with a history.

In: transactions, which are effects on tables, the changes they make and what they depend on. Out:
records and snapshots. Guarantee: a commit is visible on all its tables or on none, from the moment
its record exists; of two writes that meet, the later one is prepared again or refused; a crash at
any step needs no repair; no commit that was acknowledged is lost.

    idset         sets of ids, small or large
    fields        our JSON objects, read with their format and damage checked
    record        commits, change sets and streams as data
    codec         records as bytes
    changes       change sets too large for their record
    snapshot      a schema and a pin per type; checkpoints
    entry_cache   records that were read lately
    log           the records of a stream: found, read, folded
    footprint     what a write depends on, and whether a commit changed it
    effects       what a commit does to tables, as data, and the function that applies it
    floors        how far back the commits of a branch can be read
    sweeps        which files a collector may be removing
    transaction   a write as data, with what it depends on and what it requires
    puts          a record put at its place, and what became of it
    committer     stage, publish, rebase: the only module that creates records
    names         what may be the name of a branch or a tag
    events        what happens to names, append only
    tags          names for commits, which keep them
    holders       who holds a commit, asked before and after it is referred to
    holds         what keeps a commit while another one is made from it
    branches      names that stand for streams
    first_parents  the line of a commit
    lineage       how commits descend from each other
    history       commits and snapshots by branch, id, version and time
    publisher     one queue per branch and process, which groups waiting writes
    compaction    small fragments joined after commits
    collect       lets go of old commits and removes what nothing refers to
"""

from omnigraph.versioning.auto_compaction import Compactor, compact
from omnigraph.versioning.branches import Branches
from omnigraph.versioning.commit_history import History
from omnigraph.versioning.committer import Committer
from omnigraph.versioning.effects import (
    AddColumns,
    Adopt,
    Append,
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
