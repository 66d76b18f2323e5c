"""Checks a merge with decisions, as often as they bring up conflicts that are decided, too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from omnigraph.errors import EntityConflict
from omnigraph.writers.merge.conflict_decisions import Resolution, parse_resolution
from omnigraph.writers.merge.merge_choices import MergeChoices
from omnigraph.writers.merge.merge_commit import CheckedMerge
from omnigraph.writers.merge.resolver_answers import ResolverAnswers

_Check: TypeAlias = Callable[[MergeChoices], CheckedMerge]


def check_decided_merge(
    check: _Check, commits: tuple[str, str, str], chosen: MergeChoices
) -> CheckedMerge:
    """A merge between the base, ours and theirs, with what lines or a function decide."""
    if chosen.resolve is None:
        return check(chosen)
    conflicts = check(replace(chosen, prefer={})).conflicts.listed
    if isinstance(chosen.resolve, Resolution):
        return _check_lines(check, commits, chosen, conflicts)
    answers, asked, checked = ResolverAnswers(chosen.resolve), conflicts, None
    while answers.ask(asked):
        lines = parse_resolution(answers.iter_lines())
        checked = _check_lines(check, commits, replace(chosen, resolve=lines), conflicts)
        asked = checked.conflicts.listed
    return checked or check(chosen)


def _check_lines(
    check: _Check,
    commits: tuple[str, str, str],
    chosen: MergeChoices,
    conflicts: Sequence[EntityConflict],
) -> CheckedMerge:
    """A merge with decisions on its conflicts, and on those that come up with them."""
    chosen = chosen.decide(commits, conflicts)
    checked = check(chosen)
    while chosen.others:
        chosen = chosen.decide_others(checked.conflicts.listed)
        checked = check(chosen)
    return checked
