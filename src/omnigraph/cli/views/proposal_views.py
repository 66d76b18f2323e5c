"""Proposals for people and programs: a list, and one with its reviews, checks and comments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from omnigraph.cli.views.output_streams import align_columns, format_time
from omnigraph.lang.quoting import escape_unprintable

if TYPE_CHECKING:
    from omnigraph.engine.proposals import ProposalComment, ProposalInfo, ProposalListing

JsonObject = dict[str, Any]  # Any: a JSON document


@dataclass(frozen=True, slots=True)
class Proposals:
    """Some proposals, the newest first."""

    listed: Sequence[ProposalListing]

    def to_json(self) -> JsonObject:
        """The document of `proposal list`."""
        return {"proposals": [each.to_json() for each in self.listed]}

    def to_lines(self) -> Iterable[str]:
        """A proposal per line: number, status, title, branches, author."""
        rows = [
            (
                f"#{each.number}",
                each.status,
                each.title,
                f"{each.source} -> {each.target}",
                each.author or "",
            )
            for each in self.listed
        ]
        return align_columns(rows, right={0}) if rows else ["no proposals"]


@dataclass(frozen=True, slots=True)
class OneProposal:
    """A proposal."""

    info: ProposalInfo

    def to_json(self) -> JsonObject:
        """The document of `proposal show`."""
        return self.info.to_json()

    def to_lines(self) -> Iterator[str]:
        """What is known of it, a line each."""
        yield from map(escape_unprintable, self._iter_lines())

    def _iter_lines(self) -> Iterator[str]:
        info = self.info
        yield f"proposal {info.number}: {info.title}"
        author = f", by {info.author}" if info.author else ""
        yield f"{info.status}: {info.source} into {info.target}{author}"
        if info.head is not None:
            yield f"commit: {info.head}"
        yield from (info.body or "").splitlines()
        for review in info.reviews:
            stale = ", of an earlier commit" if review.is_stale else ""
            said = f": {review.text}" if review.text else ""
            verdict = "approves" if review.verdict == "approve" else "requests changes"
            yield f"{review.actor or 'an unnamed actor'} {verdict}{stale}{said}"
        for check in info.checks:
            stale = ", of an earlier commit" if check.is_stale else ""
            link = f" ({check.link})" if check.link else ""
            yield f"check {check.name}: {check.outcome}{stale}{link}"
        for comment in info.comments:
            yield from _iter_comment(comment)
        for unmet in info.unmet:
            yield from (f"missing for rule {unmet.rule}: {each}" for each in unmet.missing)
        yield from self._iter_end()

    def _iter_end(self) -> Iterator[str]:
        info = self.info
        by = f" by {info.ended_by}" if info.ended_by else ""
        at = "" if info.ended_at is None else f" at {format_time(info.ended_at)}"
        if info.merge_commit is not None:
            yield f"merged{by}{at}: commit {info.merge_commit}"
        elif info.status == "closed":
            yield f"closed{by}{at}{f': {info.reason}' if info.reason else ''}"


@dataclass(frozen=True, slots=True)
class ChangedProposal:
    """A proposal after something was done with it; `sentence` says what."""

    info: ProposalInfo
    sentence: str

    def to_json(self) -> JsonObject:
        """The document of the proposal."""
        return self.info.to_json()

    def to_lines(self) -> Iterable[str]:
        """The sentence, with the proposal that it is about."""
        info = self.info
        return [escape_unprintable(f"{self.sentence} proposal {info.number}: {info.title}")]


def _iter_comment(comment: ProposalComment) -> Iterator[str]:
    about = ""
    if comment.about is not None:
        named = comment.about["property"]
        entity = f"{comment.about['type_name']} {comment.about['entity_id']}"
        state = "resolved" if comment.is_resolved else "open"
        about = f" on {entity}{f'.{named}' if named else ''} ({state})"
    elif comment.thread != comment.number:
        about = f" to {comment.thread}"
    first, *rest = comment.text.splitlines() or ["resolves the thread"]
    yield f"comment {comment.number} of {comment.actor or 'an unnamed actor'}{about}: {first}"
    yield from (f"  {line}" for line in rest)
