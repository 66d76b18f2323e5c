"""Upgrades: a graph of an older format gets the current one, in place, with its whole history.

In: the objects and tables of a graph. Out: a report of what was changed, or would be. Guarantee:
a crash at any step leaves a graph of the older format that reads as before, and the next upgrade
goes on; the new format is stated last, after everything that it says is true. Nothing that a reader
sees changes, and readers and writers of this program may work meanwhile. Programs that are older
than what the graph gains may not write to it any more.

    graph_upgrade   the ordered list of upgrades, and the function that runs those that are left
    move_tags       tags that have events of their own join the events of branches
    seal_objects    objects, pins and change sets get the digests that they were written without
"""

from omnigraph.versioning.upgrade.graph_upgrade import (
    FinishedStep,
    UpgradeReport,
    upgrade_graph,
)

__all__ = ["FinishedStep", "UpgradeReport", "upgrade_graph"]
