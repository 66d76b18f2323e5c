"""The three views of a merge, and which of them lie on one line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from omnigraph.errors import HistoryGoneError
from omnigraph.rows.view import View
from omnigraph.storage.tables.pins import Pin
from omnigraph.versioning import change_sets
from omnigraph.versioning.first_parents import is_on_line
from omnigraph.versioning.id_sets import IdSet
from omnigraph.versioning.lineage import Lineage
from omnigraph.versioning.record import Changed, Maintenance, Record
from omnigraph.versioning.shared_history import WeighedSnapshot, compute_shared_sum
from omnigraph.writers.merge.conflict_kinds import MergeAction

# More records of ours than this cost more to read than the look into its table that they save.
_RECORDS_MAX: Final = 64


@dataclass(frozen=True)
class MergeSides:
    """A base, ours that is merged into, and theirs that is merged.

    Of a merge the base is an ancestor of both; otherwise ours may be of any other line.
    """

    base: View
    ours: View
    theirs: View
    lineage: Lineage
    action: MergeAction = MergeAction.MERGE

    @property
    def commits(self) -> tuple[str, str, str]:
        """The ids of the commits of all three."""
        base, ours, theirs = (each.snapshot for each in (self.base, self.ours, self.theirs))
        return base.commit, ours.commit, theirs.commit

    @cached_property
    def do_theirs_descend(self) -> bool:
        """Whether the base is one of the first parents of theirs.

        Then a table of theirs that the base has too was made from that, and a row id that both have
        means the same copy of the same entity.
        """
        return is_on_line(self.theirs.snapshot, self.base.snapshot.ref)

    @cached_property
    def do_ours_descend(self) -> bool:
        """The same of ours."""
        return is_on_line(self.ours.snapshot, self.base.snapshot.ref)

    @cached_property
    def shared_states(self) -> tuple[WeighedSnapshot, ...] | None:
        """The commits that both sides have, as a sum; None if not known, and of no merge."""
        if self.action is not MergeAction.MERGE:
            return None
        return compute_shared_sum(self.lineage, self.ours.snapshot, self.theirs.snapshot)

    @property
    def is_crossed(self) -> bool:
        """Whether there is no single state that has everything that both sides share."""
        is_merge = self.action is MergeAction.MERGE
        return is_merge and (self.shared_states is None or len(self.shared_states) > 1)

    def find_written_ids(self, path: str) -> IdSet | None:
        """The ids that ours wrote in a table of the base: all others lie as the base has them.

        None where it is not so, or dear to know. A table that a merge brought may have given an
        entity, which holds what it held, another row; bulk loads list no ids. Maintenance moves
        rows, and each keeps its row id.
        """
        if self._own_records is None:
            return None
        log, found = self.lineage.log, []
        for record in self._own_records:
            keys = [key for key, pin in record.pins.items() if pin.path == path]
            for change in (record.changes[key] for key in keys if key in record.changes):
                if isinstance(change, Maintenance):
                    continue
                loaded = change_sets.load_change_set(log.objects, change)
                if not isinstance(loaded, Changed):
                    return None
                found += [loaded.inserted, loaded.updated, loaded.deleted]
        return IdSet.union_of(found)

    @cached_property
    def _own_records(self) -> list[Record] | None:
        """The records of ours since the base, if they are few and none of them is a merge."""
        ours, start = self.ours.snapshot, self.base.snapshot.seq
        if not self.do_ours_descend or ours.seq - start > _RECORDS_MAX:
            return None
        try:
            records = self.lineage.read_between(ours, start)
        except HistoryGoneError:
            return None
        return None if any(record.merged is not None for record in records) else records

    def may_adopt_table(self, pin: Pin) -> bool:
        """Whether a type that is new on ours may begin with a table of theirs.

        Not with an older version of one that the line of ours has had: the next rows would get the
        row ids of rows that it had then.
        """
        if self._last_pins is None:
            return False
        return self._last_pins.get(pin.path, pin) == pin

    @cached_property
    def _last_pins(self) -> Mapping[str, Pin] | None:
        """The newest version of each table that ours has had since the lines of both parted.

        None if it is not known. Tables that were gone by then need no look: a line that has
        one again has it as it was, or made from that.
        """
        ours = self.ours.snapshot
        try:
            start = self.lineage.find_last_shared(ours, self.theirs.snapshot)
            records = self.lineage.read_between(ours, start.seq)
        except HistoryGoneError:
            return None
        found = [start.pins, *(record.pins for record in records), ours.pins]
        return {pin.path: pin for pins in found for pin in pins.values()}

    @property
    def is_matched_by_name(self) -> bool:
        """Whether ours may know by name only what the base and theirs know by number."""
        return self.action is not MergeAction.MERGE and not self.do_ours_descend
