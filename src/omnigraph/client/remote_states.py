"""How states of a graph are named in requests, and what a handle of a server lacks."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any, NoReturn

from omnigraph.client.http_transport import HttpTransport, Query
from omnigraph.engine.arguments import require_text
from omnigraph.engine.commit import Commit
from omnigraph.engine.graph_session import Session
from omnigraph.engine.refs import BranchLike, SnapshotLike, StateRef
from omnigraph.errors import InvalidArgumentError, RemoteUnsupportedError
from omnigraph.versioning import Snapshot as VersionedSnapshot


class RemoteHandle:
    """What all handles of a graph on a server share.

    They have no session: whatever a class of the engine does on storage, and no request can do,
    asks for the session first and is refused there.
    """

    transport: HttpTransport

    @property
    def _session(self) -> Session:
        """What works on storage asks for this first."""
        self._refuse()

    @property
    def at(self) -> VersionedSnapshot:
        """The schema and the pins of a state, which only storage has."""
        self._refuse()

    def _refuse(self, what: str = "this") -> NoReturn:
        raise RemoteUnsupportedError(self.transport.url, what)


def format_state(argument: str, given: StateRef) -> str:
    """The text that names a state in a request."""
    match given:
        case str():
            return require_text(argument, given)
        case Commit():
            return given.id
        case datetime():
            return given.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case int() if not isinstance(given, bool):
            return str(given)
        case BranchLike():
            return given.name
        case SnapshotLike() if isinstance(found := getattr(given, "commit", None), Commit):
            return found.id
        case _:
            raise InvalidArgumentError(
                argument,
                f"a {type(given).__name__} is not a state of a graph",
                hint="pass a branch, a snapshot, a commit, a name, an id, a version or a time",
            )


def build_query(**fields: object) -> Query:
    """A query string: what is None is left out, and a list is a field that is repeated."""
    found: list[tuple[str, str]] = []
    for name, value in fields.items():
        if value is None:
            continue
        values = value if isinstance(value, list | tuple) else [value]
        found += [(name.rstrip("_"), _format_field(each)) for each in values]
    return found


def _format_field(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def build_entity(
    type_name: object, entity_id: object, kind: object
) -> dict[str, Any]:  # Any: JSON values
    """An entity by the names that requests have for it."""
    given = {"type": require_text("type_name", type_name)}
    given["id"] = require_text("entity_id", entity_id)
    return given if kind is None else {**given, "kind": require_text("kind", kind)}


def build_filters(
    kinds: Collection[str] | None, types: Collection[str] | None, ops: Collection[str] | None
) -> dict[str, list[str]]:
    """Filters of changes by the names that requests have for them."""
    given = {"kind": kinds, "type": types, "op": ops}
    return {name: [*map(str, words)] for name, words in given.items() if words is not None}
