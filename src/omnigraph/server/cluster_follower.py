"""Follows a cluster and its tokens while they are served: nothing drains, nothing restarts."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from omnigraph.clusters.applied_cluster import open_cluster
from omnigraph.engine import Graph
from omnigraph.errors import CredentialsError, OmnigraphError
from omnigraph.server.bearer_tokens import read_tokens
from omnigraph.server.cluster_serving import Quarantine, build_state
from omnigraph.server.lanes import Lane, Lanes
from omnigraph.server.server_state import AuthMode, ServedGraph, ServerState, Serving

if TYPE_CHECKING:
    from omnigraph.server.bearer_tokens import BearerTokens

_log = logging.getLogger(__name__)


class ClusterFollower:
    """Replaces the state of a server when the revision, the tokens or a sick graph changed."""

    def __init__(
        self, root: str | None, serving: Serving, quarantined: dict[str, Quarantine]
    ) -> None:
        self._root = root
        self._serving = serving
        self._quarantined = quarantined
        self._wake = asyncio.Event()
        self._last_problem: str | None = None

    def wake(self) -> None:
        """Look now."""
        self._wake.set()

    async def run(self, lanes: Lanes, *, every_s: float) -> None:
        """Look for changes until the task is cancelled; without a period, when it is woken."""
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), every_s or None)
            self._wake.clear()
            try:
                removed = self._activate(await lanes.run(Lane.READ, self.look))
                # Closing waits for a compaction that is under way.
                await lanes.run(Lane.STREAM, partial(_close, removed))
            except Exception as error:  # noqa: BLE001 — what is served goes on being served
                self._report_problem(error)

    def look(self) -> ServerState:
        """The state as it should be now; the one that is served, if nothing changed."""
        state = self._serving.state
        tokens = self._read_tokens(state.tokens)
        if tokens != state.tokens:
            # At once: a revoked token must not go on while the cluster cannot be read.
            state = self._serving.state = replace(state, tokens=tokens)
        if self._root is None:
            return state
        cluster = open_cluster(self._root)
        assert state.position is not None, "a cluster has a revision"
        is_same = cluster.cas == state.position.digest
        is_due = any(each.retry_at <= time.monotonic() for each in self._quarantined.values())
        if is_same and not is_due and not state.is_closed:
            is_stale = any(name in state.graphs for name in self._quarantined)
            is_known = is_stale or state.stale_since is None
            return state if is_known else replace(state, stale_since=None)
        mode = AuthMode.POLICY_ENABLED if cluster.has_policy() else _without_policy(state, tokens)
        found, quarantined = build_state(
            cluster, tokens, mode, before=state, waiting=self._quarantined
        )
        self._quarantined = quarantined
        return replace(found, newest_revision=cluster.revision)

    def _read_tokens(self, known: BearerTokens) -> BearerTokens:
        """The tokens of now; a bad file keeps those that are known."""
        if not known:
            return known
        try:
            found = read_tokens(os.environ)
            if not found:
                raise CredentialsError("there is no token any more")
        except CredentialsError as error:
            self._report_problem(error)
            return known
        return found

    def _activate(self, state: ServerState) -> list[ServedGraph]:
        """Take a new state: one assignment; the graphs that are not served any more.

        A graph that was opened again is not one: requests that are under way still read it.
        """
        before = self._serving.state
        if state is before:
            return []
        self._serving.state = state
        self._last_problem = None
        number = None if state.position is None else state.position.number
        _log.info("state activated", extra={"fields": {"revision": number}})
        known = state.graphs.keys() | state.unavailable
        return [served for name, served in before.graphs.items() if name not in known]

    def _report_problem(self, error: Exception) -> None:
        """Log a problem once, and note since when the state is old."""
        reason = error.message if isinstance(error, OmnigraphError) else repr(error)
        if reason != self._last_problem:
            _log.error("state not activated", extra={"fields": {"reason": reason}})
        self._last_problem = reason
        state = self._serving.state
        if state.stale_since is None and not isinstance(error, CredentialsError):
            self._serving.state = replace(state, stale_since=time.monotonic())


def _close(removed: Iterable[ServedGraph]) -> None:
    for served in removed:
        Graph(served.session).close()


def _without_policy(state: ServerState, tokens: BearerTokens) -> AuthMode:
    """Who may do what where no policy is applied any more: never more than tokens allow."""
    if tokens:
        return AuthMode.DEFAULT_DENY
    return AuthMode.OPEN if state.mode is AuthMode.OPEN else AuthMode.POLICY_ENABLED
