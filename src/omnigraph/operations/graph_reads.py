"""Reads of a state: the newest one of a branch, or a commit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from omnigraph.engine.read_requests import ReadRequest, build_read_request
from omnigraph.errors import EntityNotFoundError, InvalidArgumentError
from omnigraph.policy.acts import Act, Action
from omnigraph.versioning.record import MAIN_BRANCH

if TYPE_CHECKING:
    from omnigraph.engine import Graph, Result, Snapshot
    from omnigraph.engine.snapshot import EntityKind
    from omnigraph.execution.query_budget import Cancellation
    from omnigraph.wire.wire_enums import EntityKindOutput
    from omnigraph.wire.wire_requests import ExplainRequest, ExportRequest, ImageQuery, QueryRequest

JsonObject = dict[str, Any]  # Any: a JSON document


@dataclass(frozen=True, slots=True)
class ReadBounds:
    """What a read may use at most, whatever it asks for; and how it is stopped."""

    timeout_s: float | None = None
    memory_bytes: int | None = None
    cancel: Cancellation | None = None

    def build_request(self, asked: QueryRequest) -> ReadRequest:
        """The request of a read within these bounds; its time starts here."""
        return build_read_request(
            asked.query,
            name=asked.name,
            params=asked.params,
            timeout=choose_smaller(asked.timeout, self.timeout_s),
            memory=choose_smaller(asked.memory, self.memory_bytes),
            settings=asked.settings,
            cancel=self.cancel,
        )


def choose_smaller(asked: Any, allowed: Any) -> Any:  # Any: seconds or bytes
    """What is asked for, or what is allowed if that is less."""
    if asked is None or allowed is None:
        return allowed if asked is None else asked
    return min(asked, allowed)


@dataclass(frozen=True, slots=True)
class ReadAnswer:
    """The result of a read, and what it was read from."""

    query_name: str
    branch: str | None
    snapshot: str | None
    commit_id: str
    result: Result

    def describe(self) -> JsonObject:
        """The document of the read without its rows; without columns, it has none."""
        names = [column.name for column in self.result.columns]
        return {
            "query_name": self.query_name,
            "target": {"branch": self.branch, "snapshot": self.snapshot},
            "row_count": len(self.result),
            **({"columns": names} if names else {}),
            **self.result.describe_page(),
            "graph_commit_id": self.commit_id,
        }

    def to_json(self) -> JsonObject:
        """The document of the read: ReadOutput."""
        return self.describe() | {"rows": self.result.to_json_rows()}


@dataclass(frozen=True, slots=True)
class SelectedState:
    """A state and how it was asked for; one of the two is None."""

    snapshot: Snapshot
    branch: str | None
    commit: str | None


def select_state(graph: Graph, *, branch: str | None, snapshot: str | None) -> SelectedState:
    """The newest state of a branch, by default of main; or that of a commit."""
    if snapshot is None:
        name = MAIN_BRANCH if branch is None else branch
        require_read(graph, name)
        return SelectedState(graph.branch(name).snapshot(), name, None)
    if branch is not None:
        raise InvalidArgumentError("snapshot", "it excludes 'branch'", hint="give one of the two")
    return SelectedState(graph.snapshot(snapshot), None, snapshot)


def require_read(graph: Graph, branch: str | None) -> None:
    """Ask the policy before it shows whether a branch exists."""
    graph.authorize(Act(Action.READ, branch))


def run_read(state: SelectedState, asked: QueryRequest, bounds: ReadBounds) -> ReadAnswer:
    """Run a read on a state."""
    name, result = state.snapshot.answer_named(bounds.build_request(asked))
    commit_id = result.commit_id or state.snapshot.at.commit
    return ReadAnswer(name, state.branch, state.commit, commit_id, result)


def explain_read(state: SelectedState, asked: ExplainRequest, bounds: ReadBounds) -> JsonObject:
    """How a read of a state is answered; to analyze it, it is run: ExplainOutput."""
    request = bounds.build_request(asked)
    name, explained = state.snapshot.describe(request, analyze=asked.analyze)
    return {
        "query_name": name,
        "target": {"branch": state.branch, "snapshot": state.commit},
        "operators": explained.to_dicts(),
        "graph_commit_id": state.snapshot.at.commit,
    }


def read_schema(
    graph: Graph, *, branch: str | None = None, snapshot: str | None = None
) -> JsonObject:
    """The schema in force, by default on main: SchemaOutput."""
    if branch is None and snapshot is None:
        require_read(graph, None)
        return {"schema_source": graph.branch().schema}
    state = select_state(graph, branch=branch, snapshot=snapshot)
    return {"schema_source": state.snapshot.schema}


def list_indexes(graph: Graph, branch: str | None) -> JsonObject:
    """The declared indexes of a branch: IndexListOutput."""
    name = MAIN_BRANCH if branch is None else branch
    require_read(graph, name)
    return {"branch": name, "indexes": [each.to_json() for each in graph.index_status(name)]}


def read_entity(graph: Graph, asked: ImageQuery) -> JsonObject:
    """The values of one entity: EntityImageOutput."""
    state = select_state(graph, branch=asked.branch, snapshot=asked.snapshot)
    found = state.snapshot.entity(asked.type, asked.id, kind=name_kind(asked.kind))
    if found is None:
        raise EntityNotFoundError(asked.type, asked.id)
    return found


def name_kind(kind: EntityKindOutput | None) -> EntityKind | None:
    """A kind as the engine calls it."""
    return None if kind is None else kind.value


def begin_export(graph: Graph, asked: ExportRequest) -> Iterator[bytes]:
    """The lines of an export; the state, its types and the policy are checked before the first."""
    state = select_state_to_export(graph, branch=asked.branch, snapshot=asked.snapshot)
    for name in asked.type_names or ():
        state.type_key(name)
    return state.export(types=asked.type_names)


def select_state_to_export(graph: Graph, *, branch: str | None, snapshot: str | None) -> Snapshot:
    """The state of an export, whose policy is another one than that of reads."""
    if snapshot is not None:
        return select_state(graph, branch=branch, snapshot=snapshot).snapshot
    name = MAIN_BRANCH if branch is None else branch.strip()
    graph.authorize(Act(Action.EXPORT, name))
    return graph.branch(name).snapshot()
