"""What the server serves at one moment: graphs under their policies, and tokens.

A state is frozen. A change of the cluster or of the tokens makes another one, which the server
takes by one assignment; a request keeps the state that it found at its door.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from omnigraph.embedding.embedder import EmbedMode
from omnigraph.engine import Graph
from omnigraph.errors import PolicyDeniedError
from omnigraph.lang.quoting import sanitize_text
from omnigraph.policy.acts import Act, Action
from omnigraph.policy.requirements import Requirement
from omnigraph.server.bearer_tokens import BearerTokens
from omnigraph.server.exchange import RequestRefusedError
from omnigraph.server.request_failures import refuse_for_now, refuse_unknown_graph

if TYPE_CHECKING:
    from omnigraph.clusters.cluster_world import Site
    from omnigraph.clusters.dashboard import Dashboard
    from omnigraph.engine.gate import Gate
    from omnigraph.engine.graph_session import Session
    from omnigraph.operations.stored_queries import QueryCatalogue


class AuthMode(StrEnum):
    """Who may do what, by what there is of tokens and policies."""

    OPEN = "open"
    DEFAULT_DENY = "default_deny"
    POLICY_ENABLED = "policy_enabled"


class DefaultDeny:
    """The gate of a graph without a policy, where tokens are known: it allows to read."""

    limits_types = False

    def has_query_limits(self, actor: str | None) -> bool:
        """Never: it names none."""
        del actor
        return False

    def find_row_limits(self, actor: str | None, act: Act) -> None:
        """None: it has no conditions."""
        del actor, act

    def list_requirements(self, target: str) -> tuple[Requirement, ...]:
        """None: it has no rules."""
        del target
        return ()

    def check(self, actor: str | None, act: Act) -> None:
        """Raise `PolicyDeniedError` for everything but a read."""
        if act.action is not Action.READ:
            message = f"policy denies {act} to actor '{actor}': no policy is applied to this graph"
            raise PolicyDeniedError(message, actor=actor, action=act.action)

    def check_some(self, actor: str | None, act: Act) -> None:
        """The same of an act on some types."""
        self.check(actor, act)


class UnusableGate:
    """The gate of a policy that is in force and cannot be verified: it decides nothing."""

    limits_types = False

    def has_query_limits(self, actor: str | None) -> bool:
        """Never: it names none."""
        del actor
        return False

    def find_row_limits(self, actor: str | None, act: Act) -> None:
        """None: it has no conditions."""
        del actor, act

    def list_requirements(self, target: str) -> tuple[Requirement, ...]:
        """None: it has no rules."""
        del target
        return ()

    def check(self, actor: str | None, act: Act) -> None:
        """Refuse the request until the policy can be used."""
        del actor, act
        raise refuse_for_now("the policy of the server cannot be used now")

    def check_some(self, actor: str | None, act: Act) -> None:
        """The same of an act on some types."""
        self.check(actor, act)


@dataclass(frozen=True, slots=True)
class ServedGraph:
    """One graph of a state: a generation of it.

    The session is shared by all generations, with its caches; the policy and the stored queries
    are those of one revision.
    """

    graph_id: str
    uri: str
    session: Session
    gate: Gate | None
    queries: QueryCatalogue
    dashboards: Mapping[str, Dashboard] = field(default_factory=dict)
    # Whether a cluster brings its schema into force, and nothing else may.
    is_managed: bool = False
    # The bundle that its gate was compiled from, and the provider that its graph was opened with.
    policy_digest: str | None = None
    embedding_profile: Mapping[str, str] | None = None
    embed: EmbedMode = EmbedMode.NEVER
    # One export at a time reads all of it.
    export_slot: threading.Lock = field(default_factory=threading.Lock)
    # Whether its newest commit is found without a network.
    is_local: bool = True

    def open_for(self, actor: str | None) -> Graph:
        """The graph for an actor; nothing is opened for it."""
        return Graph(self.session.guard_by(self.gate).act_as(actor))

    def open_unguarded(self, actor: str | None) -> Graph:
        """The graph for a check that shows its outcome alone, after the policy was asked."""
        return Graph(self.session.act_as(actor))


@dataclass(frozen=True, slots=True)
class ClusterPosition:
    """The revision of the cluster that is served."""

    number: int
    digest: str


@dataclass(frozen=True, slots=True)
class ServerState:
    """Everything that a request may see."""

    graphs: Mapping[str, ServedGraph]
    tokens: BearerTokens
    mode: AuthMode
    # The policy of the cluster, which decides who may list its graphs.
    server_gate: Gate | None = None
    server_policy_digest: str | None = None
    # Why a graph is not served; its id answers as an unknown one does.
    quarantined: Mapping[str, str] = field(default_factory=dict)
    # Graphs whose new policy cannot be used, so that nothing may be served of them.
    unavailable: frozenset[str] = frozenset()
    position: ClusterPosition | None = None
    # Where the cluster lives, to which configurations can be applied.
    site: Site | None = None
    # The newest revision that was seen, and since when it could not be activated.
    newest_revision: int | None = None
    stale_since: float | None = None

    @property
    def is_closed(self) -> bool:
        """Whether something is not served because its policy cannot be verified."""
        return bool(self.unavailable) or isinstance(self.server_gate, UnusableGate)

    @property
    def needs_token(self) -> bool:
        """Whether requests need a token."""
        return self.mode is not AuthMode.OPEN

    def authorize_list(self, actor: str | None) -> None:
        """Raise unless the policy of the cluster lets an actor list its graphs."""
        act = Act(Action.GRAPH_LIST)
        if self.server_gate is None:
            message = f"policy denies {act}: no policy is applied to the server"
            raise PolicyDeniedError(message, actor=actor, action=act.action)
        self.server_gate.check(actor, act)


@dataclass(slots=True)
class Serving:
    """The state of now, which is replaced as a whole."""

    state: ServerState
    is_draining: bool = False


# What a graph may be called, and names that routes have.
_GRAPH_ID: Final = re.compile(r"[a-zA-Z0-9-]{1,64}", re.ASCII)
_RESERVED: Final = frozenset({"policies", "healthz", "openapi", "graphs"})


def is_graph_id(text: str) -> bool:
    """Whether a text may be the id of a served graph."""
    return _GRAPH_ID.fullmatch(text) is not None and text not in _RESERVED


def find_graph(state: ServerState, graph_id: str) -> ServedGraph:
    """The graph of an id; one that is quarantined is as unknown as one that never was."""
    if not is_graph_id(graph_id):
        raise RequestRefusedError(400, f"'{sanitize_text(graph_id)}' is not the id of a graph")
    if graph_id in state.unavailable:
        raise refuse_for_now(f"the policy of graph '{graph_id}' cannot be used now")
    found = state.graphs.get(graph_id)
    if found is None:
        raise refuse_unknown_graph(graph_id)
    return found
