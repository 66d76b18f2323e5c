"""A graph on a server, with the methods of one on storage."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from omnigraph.client import document_decoding as decoding
from omnigraph.client.http_transport import Call, HttpTransport
from omnigraph.client.proposal_decoding import decode_listing
from omnigraph.client.remote_branch import RemoteBranch
from omnigraph.client.remote_diff import RemoteDiff, compute_remote_diff
from omnigraph.client.remote_proposal import RemoteProposal
from omnigraph.client.remote_snapshot import RemoteSnapshot, run_read
from omnigraph.client.remote_states import (
    RemoteHandle,
    build_filters,
    build_query,
    format_state,
)
from omnigraph.engine import arguments, feed
from omnigraph.engine.commit import Commit
from omnigraph.engine.entity_changes import parse_filters
from omnigraph.engine.graph import Graph
from omnigraph.engine.graph_statements import execute_statement
from omnigraph.engine.proposals import ProposalListing
from omnigraph.engine.refs import StateRef
from omnigraph.engine.retention import Tag
from omnigraph.errors import StoredQueryNotFoundError
from omnigraph.execution.query_budget import Cancellation
from omnigraph.execution.result import Result
from omnigraph.lang.lexer import Mode
from omnigraph.query.query_settings import SettingValue
from omnigraph.versioning.record import MAIN_BRANCH
from omnigraph.wire.protocol_names import IF_COMMIT_HEADER
from omnigraph.writers.maintain import IndexStatus

JsonObject = dict[str, Any]  # Any: a JSON document


def open_remote(url: str, *, token: str | None = None) -> RemoteGraph:
    """The graph at the URL of a server, such as `https://host/graphs/kb`; no request is made."""
    return RemoteGraph(HttpTransport(url, token))


class RemoteGraph(RemoteHandle, Graph):  # type: ignore[override]  # see RemoteHandle
    """A graph on a server; safe to share between threads. Who writes is decided by the token."""

    def __init__(self, transport: HttpTransport) -> None:
        self.transport = transport

    @property
    def uri(self) -> str:
        """Its address."""
        return self.transport.url

    @property
    def actor(self) -> str | None:
        """The actor of the newest write of this object, which the server knows by the token."""
        return self.transport.actor

    def branch(self, name: str = MAIN_BRANCH) -> RemoteBranch:
        """A branch; whether it exists shows when it is used."""
        return RemoteBranch(self, arguments.require_text("name", name))

    def branches(self) -> list[str]:
        """The names of all branches: main first, then by name."""
        found: list[str] = self.transport.get("branches")["branches"]
        return sorted(found, key=lambda name: (name != MAIN_BRANCH, name))

    def create_branch(self, name: str, *, source: StateRef = MAIN_BRANCH) -> RemoteBranch:
        """Start a branch at another one, or at any other state that `snapshot` takes."""
        arguments.require_text("name", name)
        document = {"name": name, "from": format_state("source", source)}
        self.transport.send_write(Call("POST", ("branches",), document=document, is_write=True))
        return RemoteBranch(self, name)

    def delete_branch(self, name: str) -> None:
        """End a branch; what other branches started from it keeps its commits."""
        arguments.require_text("name", name)
        self.transport.send_write(Call("DELETE", ("branches", name), is_write=True))

    def tag(self, name: str, at: StateRef = MAIN_BRANCH) -> Tag:
        """Name a commit, which keeps it readable for good: the head of a branch, or any other."""
        document = {"name": arguments.require_text("name", name), "at": format_state("at", at)}
        call = Call("POST", ("tags",), document=document, is_write=True)
        return decoding.decode_tag(self.transport.send_write(call))

    def tags(self) -> list[Tag]:
        """Every tag, by name."""
        return [decoding.decode_tag(each) for each in self.transport.get("tags")["tags"]]

    def delete_tag(self, name: str) -> None:
        """Free the name of a tag; its commit stays only as long as its branch keeps it."""
        arguments.require_text("name", name)
        self.transport.send_write(Call("DELETE", ("tags", name), is_write=True))

    def proposals(self, *, status: str | None = None) -> list[ProposalListing]:
        """The proposals, the newest first: all of them, or those of a status."""
        found = self.transport.get("proposals", query=build_query(status=status))
        return [decode_listing(each) for each in found["proposals"]]

    def proposal(self, number: int) -> RemoteProposal:
        """A proposal by its number; whether it exists shows when it is used."""
        return RemoteProposal(self, number)

    def open_proposal(
        self,
        source: str,
        *,
        title: str,
        target: str = MAIN_BRANCH,
        body: str | None = None,
        key: str | None = None,
    ) -> RemoteProposal:
        """Propose to merge a branch into another one; see `Graph.open_proposal`."""
        fields = {"source": source, "title": title, "target": target, "body": body}
        fields["key"] = arguments.require_optional_key(key)
        given = {name: value for name, value in fields.items() if value is not None}
        call = Call(
            "POST", ("proposals",), document=given, is_write=True, is_repeatable=key is not None
        )
        return RemoteProposal(self, self.transport.send_write(call)["number"])

    def snapshot(self, at: StateRef, *, branch: str = MAIN_BRANCH) -> RemoteSnapshot:
        """The graph as of a branch, a commit, a version of main, or a time on it."""
        if branch != MAIN_BRANCH:
            self._refuse("a version or a time of another branch than main")
        commit = self.commit(at)
        return RemoteSnapshot(self.transport, commit, commit.branch)

    def commit(self, at: StateRef) -> Commit:
        """The commit of a state: by its id, or by anything else that `snapshot` takes."""
        return decoding.decode_commit(self.transport.get("commits", format_state("at", at)))

    def commit_changes(
        self,
        commit: StateRef,
        *,
        limit: int | None = None,
        page_token: str | None = None,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
    ) -> feed.ChangesPage:
        """A page of what a commit changed, relative to its first parent, with images."""
        parse_filters(kinds, types, ops)
        feed.parse_limits(limit)
        query = build_query(limit=limit, page_token=page_token, **build_filters(kinds, types, ops))
        name = format_state("commit", commit)
        return decoding.decode_changes_page(
            self.transport.get("commits", name, "changes", query=query)
        )

    def diff(  # noqa: PLR0913 — one keyword for each decision of the caller
        self,
        old: StateRef,
        new: StateRef,
        *,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
        timeout: float | None = None,
        cancel: Cancellation | None = None,
    ) -> RemoteDiff:
        """What changed from one state to another, of any branches; see `Graph.diff`."""
        parse_filters(kinds, types, ops)
        document = {"old": format_state("old", old), "new": format_state("new", new)}
        filters = build_filters(kinds, types, ops)
        return compute_remote_diff(
            self.transport, document, filters, timeout=timeout, cancel=cancel
        )

    def execute(
        self,
        text: str,
        *,
        branch: str = MAIN_BRANCH,
        settings: Mapping[str, SettingValue] | None = None,
    ) -> list[JsonObject]:
        """Run a statement, such as `branch list`; it is read here, and done by requests."""
        arguments.require_text("text", text)
        arguments.require_text("branch", branch)
        return execute_statement(self, text, mode=Mode.LENIENT, branch=branch, settings=settings)

    def queries(self) -> list[JsonObject]:
        """The stored queries that the server has for the graph, with their parameters."""
        found: list[JsonObject] = self.transport.get("queries")["queries"]
        return found

    def run_query(
        self,
        name: str,
        *,
        params: JsonObject | None = None,
        branch: str | None = None,
        snapshot: StateRef | None = None,
        timeout: float | None = None,
    ) -> Result:
        """Run a stored query that reads; one that writes is refused: see `invoke_query`."""
        document = {
            "params": arguments.normalize_parameters(params),
            "branch": branch,
            "snapshot": None if snapshot is None else format_state("snapshot", snapshot),
            "expect_mutation": False,
            "timeout": timeout,
        }
        with _name_query(name):
            return run_read(self.transport, ("queries", name), document, "")

    def invoke_query(
        self, name: str, document: JsonObject, *, if_commit: str | None = None
    ) -> JsonObject:
        """The document that a stored query answers, which reads or writes.

        `document` is the body of the request: `params`, and `branch`, `key`, `timeout` and `memory`
        where they are needed.
        """
        conditional = () if if_commit is None else ("if-graph-commit",)
        headers = {} if if_commit is None else {IF_COMMIT_HEADER: if_commit}
        call = Call(
            "POST",
            ("queries", name, *conditional),
            document=document,
            headers=headers,
            is_write=document.get("expect_mutation") is not False,
            is_repeatable=document.get("key") is not None,
            timeout_s=document.get("timeout"),
        )
        with _name_query(name):
            return self.transport.send_write(call)

    def index_status(self, branch: str = MAIN_BRANCH) -> list[IndexStatus]:
        """Every index that the schema of a branch declares, and how much of its type it covers."""
        query = build_query(branch=arguments.require_text("branch", branch))
        found = self.transport.get("indexes", query=query)
        return [decoding.decode_index(each) for each in found["indexes"]]

    def close(self) -> None:
        """Give connections back; closing twice is allowed."""
        self.transport.close()

    def __enter__(self) -> RemoteGraph:
        return self


@contextmanager
def _name_query(name: str) -> Iterator[None]:
    """Around a call: the refusal of a server has to be the same for every name."""
    try:
        yield
    except StoredQueryNotFoundError:
        raise StoredQueryNotFoundError(name) from None
