"""Proposals of a graph on a server."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from omnigraph.client.document_decoding import decode_merge, decode_plan
from omnigraph.client.http_transport import Call
from omnigraph.client.proposal_decoding import decode_proposal
from omnigraph.client.remote_diff import RemoteDiff, compute_remote_diff
from omnigraph.client.remote_states import RemoteHandle, build_filters
from omnigraph.engine import arguments
from omnigraph.engine.entity_changes import parse_filters
from omnigraph.engine.proposals import Proposal, ProposalInfo
from omnigraph.engine.proposals.proposal import build_anchor
from omnigraph.engine.write_results import MergePlan, MergeResult
from omnigraph.execution.query_budget import Cancellation

if TYPE_CHECKING:
    from omnigraph.client.remote_graph import RemoteGraph


class RemoteProposal(RemoteHandle, Proposal):  # type: ignore[override]  # see RemoteHandle
    """The same as a proposal of a graph on storage; the server checks what is sent."""

    def __init__(self, graph: RemoteGraph, number: int) -> None:
        self.graph = graph
        self.transport = graph.transport
        self._number = arguments.require_count("number", number)

    def read(self) -> ProposalInfo:
        """What is known of it now, with what the policy still requires of it."""
        return decode_proposal(self.transport.get("proposals", str(self._number)))

    def comment(
        self,
        text: str | None = None,
        *,
        about: tuple[str, str] | None = None,
        property: str | None = None,  # noqa: A002
        side: str | None = None,
        replies_to: int | None = None,
        resolves: int | None = None,
    ) -> ProposalInfo:
        """Say something; see `Proposal.comment`."""
        # Any: JSON values
        document: dict[str, Any] = {"text": text, "replies_to": replies_to, "resolves": resolves}
        anchor = build_anchor(about, property, side)
        if anchor is not None:
            document["about"] = {k: each for k, each in asdict(anchor).items() if each is not None}
        return self._send("comments", document)

    def approve(self, text: str | None = None, *, head: str | None = None) -> ProposalInfo:
        """Approve of the newest commit of the branch, which must be `head` if that is given."""
        return self._send("reviews", {"verdict": "approve", "text": text, "head": head})

    def request_changes(self, text: str, *, head: str | None = None) -> ProposalInfo:
        """Ask for changes, which blocks until the same actor reviews it again."""
        return self._send("reviews", {"verdict": "request_changes", "text": text, "head": head})

    def report_check(
        self, name: str, outcome: str, *, head: str | None = None, link: str | None = None
    ) -> ProposalInfo:
        """Report how a check of the newest commit ended: `pass` or `fail`."""
        document = {"name": name, "outcome": outcome, "head": head, "link": link}
        return self._send("checks", document)

    def edit(
        self, *, title: str | None = None, body: str | None = None, target: str | None = None
    ) -> ProposalInfo:
        """Give it another title or body, or another branch to be merged into."""
        return self._send("edit", {"title": title, "body": body, "target": target})

    def close(self, reason: str | None = None) -> ProposalInfo:
        """Say that it will not be merged; one that is closed stays as it is."""
        return self._send("close", {"reason": reason})

    def diff(
        self,
        *,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
        timeout: float | None = None,
        cancel: Cancellation | None = None,
    ) -> RemoteDiff:
        """What it asks to merge, or has merged, as long as that history is kept."""
        parse_filters(kinds, types, ops)
        return compute_remote_diff(
            self.transport,
            {},
            build_filters(kinds, types, ops),
            segments=("proposals", str(self._number), "diff"),
            timeout=timeout,
            cancel=cancel,
        )

    def plan(self) -> MergePlan:
        """What its merge would do now, with every conflict; nothing is written."""
        call = Call("GET", ("proposals", str(self._number), "plan"))
        return decode_plan(self.transport.send(call).read_json())

    def sync_branch(self, *, message: str | None = None) -> MergeResult:
        """Merge the target into its branch, which makes the reviews stale."""
        return decode_merge(self._write("sync", {"message": message}))

    def merge(
        self,
        *,
        head: str | None = None,
        message: str | None = None,
        delete_branch: bool = False,
    ) -> MergeResult:
        """Merge the newest commit of its branch, once; see `Proposal.merge`."""
        document = {"head": head, "message": message, "delete_branch": delete_branch}
        return decode_merge(self._write("merge", document))

    def _send(self, verb: str, document: dict[str, Any]) -> ProposalInfo:  # Any: JSON values
        return decode_proposal(self._write(verb, document))

    def _write(self, verb: str, document: dict[str, Any]) -> dict[str, Any]:  # Any: JSON values
        given = {name: value for name, value in document.items() if value is not None}
        # A merge that is repeated answers with the same commit.
        call = Call(
            "POST",
            ("proposals", str(self._number), verb),
            document=given,
            is_write=True,
            is_repeatable=verb == "merge",
        )
        return self.transport.send_write(call)
