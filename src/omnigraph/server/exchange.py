"""A request as handlers see it, and what they answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from omnigraph.error_codes import ErrorCode
from omnigraph.operations.graph_reads import ReadBounds
from omnigraph.wire.json_rows import encode_document
from omnigraph.wire.protocol_names import JSON, LINES

if TYPE_CHECKING:
    from omnigraph.engine import Graph
    from omnigraph.policy.acts import Act
    from omnigraph.server.server_state import ServedGraph, ServerState

Headers = list[tuple[bytes, bytes]]

JSON_TYPE: Final = JSON.encode()
LINES_TYPE: Final = LINES.encode()


class RequestRefusedError(Exception):
    """A request that ends before the engine: its status, and what its document says."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: ErrorCode | None = ErrorCode.BAD_REQUEST,
        detail: Mapping[str, Any] | None = None,  # Any: a JSON document
        headers: tuple[tuple[bytes, bytes], ...] = (),
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.detail = detail or {}
        self.headers = headers


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer."""

    status: int = 200
    body: bytes = b""
    content_type: bytes | None = JSON_TYPE
    headers: tuple[tuple[bytes, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class StreamedAnswer:
    """An answer that is sent as it is made; `release` is called at its end, however that comes."""

    chunks: Iterator[bytes]
    release: Callable[[], None]
    content_type: bytes = LINES_TYPE
    headers: tuple[tuple[bytes, bytes], ...] = ()
    status: int = 200


@dataclass(frozen=True, slots=True)
class WriteAct:
    """What a write asks of the policy, and how many bytes it counts for.

    Without an act, the graph asks once it knows what the write is about.
    """

    act: Act | None
    nbytes: int


@dataclass(slots=True)
class Call:
    """One request: what was sent, who sent it, and the state of the server that it sees."""

    method: str
    raw_path: bytes
    query_string: bytes
    headers: Headers
    request_id: str
    state: ServerState
    actor: str | None = None
    path: Mapping[str, str] = field(default_factory=dict)
    served: ServedGraph | None = None
    # The body as the route wants it: a model, or its bytes.
    body: Any = None  # Any: the model differs from route to route
    body_bytes: int = 0
    # The query string, as the model of the route.
    query: Any = None  # Any: the same
    is_draining: bool = False
    # What a read may use, and what stops it when its client has gone.
    bounds: ReadBounds = ReadBounds()  # noqa: RUF009 — frozen

    @property
    def graph_id(self) -> str:
        """The graph of a route that has one."""
        return self.path["graph_id"]

    @property
    def target(self) -> ServedGraph:
        """The graph of a route that has one, as it is served now."""
        assert self.served is not None, "the route has a graph"
        return self.served

    def open_graph(self) -> Graph:
        """The graph for the actor of the request."""
        return self.target.open_for(self.actor)

    def find_header(self, name: bytes) -> str | None:
        """The value of a header; of several, the first."""
        return next(iter(self.list_headers(name)), None)

    def list_headers(self, name: bytes) -> list[str]:
        """The values of a header that may be repeated."""
        return [value.decode("latin-1") for known, value in self.headers if known == name]


def answer_json(document: Any, status: int = 200) -> Answer:  # Any: a JSON document
    """A JSON document as an answer."""
    return Answer(status, encode_document(document))
