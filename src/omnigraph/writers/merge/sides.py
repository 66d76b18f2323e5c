"""The three views of a merge, and which of them lie on one line."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from omnigraph.execution.view import View
from omnigraph.versioning.lineage import Lineage, is_on_line


@dataclass(frozen=True)
class Sides:
    """A base, ours that is merged into, and theirs that is merged.

    Of a merge the base is an ancestor of both; with `is_pick` ours may be of any other line.
    """

    base: View
    ours: View
    theirs: View
    lineage: Lineage
    is_pick: bool = False

    @cached_property
    def do_theirs_descend(self) -> bool:
        """Whether the base is one of the first parents of theirs.

        Then every table of theirs was made from that of the base, and a row id that both have
        means the same copy of the same entity.
        """
        return is_on_line(self.theirs.snapshot, self.base.snapshot.ref)

    @cached_property
    def do_ours_descend(self) -> bool:
        """The same of ours."""
        return is_on_line(self.ours.snapshot, self.base.snapshot.ref)

    @property
    def are_strangers(self) -> bool:
        """Whether ours may know by name only what the base and theirs know by number."""
        return self.is_pick and not self.do_ours_descend
