"""How far the vectors of a branch are, and filling them on request."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.embedding.text_vectors import AskedVectors
from omnigraph.engine.graph_session import Session
from omnigraph.engine.vector_builder import AskEach, FillOutcome, VectorFiller
from omnigraph.errors import EmbeddingUnavailableError
from omnigraph.html_views import HtmlDocument
from omnigraph.policy.acts import Act, Action
from omnigraph.schema.schema_shape import JsonObject
from omnigraph.versioning import Stream
from omnigraph.writers.pending_vectors import VectorCounts, count_vectors, find_pending

# How long a fill that waits for its provider pauses, at first and at most.
_PAUSE_FIRST_S: Final = 1.0
_PAUSE_MAX_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class PropertyVectors:
    """The vectors of one property.

    `ready` entities have one, `pending` wait for one, and `failed` ones of these had their text
    refused by the provider, with the last `reason`.
    """

    type_name: str
    property: str
    model: str
    ready: int
    pending: int
    failed: int = 0
    reason: str | None = None

    def to_json(self) -> JsonObject:
        """The document of a property."""
        return {
            "type": self.type_name,
            "property": self.property,
            "model": self.model,
            "ready": self.ready,
            "pending": self.pending,
            "failed": self.failed,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True, repr=False)
class VectorStatus(HtmlDocument):
    """The vectors of a branch, by property; `reason` is why the last fill ended early."""

    uri: str
    branch: str
    properties: tuple[PropertyVectors, ...]
    reason: str | None = None

    @property
    def ready(self) -> int:
        """How many vectors there are."""
        return sum(each.ready for each in self.properties)

    @property
    def pending(self) -> int:
        """How many texts wait for a vector, those that were refused with them."""
        return sum(each.pending for each in self.properties)

    @property
    def failed(self) -> int:
        """How many texts the provider refused."""
        return sum(each.failed for each in self.properties)

    def __repr__(self) -> str:
        counts = f"ready={self.ready}, pending={self.pending}, failed={self.failed}"
        return f"VectorStatus({self.branch!r}, {counts})"

    def to_json(self) -> JsonObject:
        """The document of a status."""
        return {
            "uri": self.uri,
            "branch": self.branch,
            "ready": self.ready,
            "pending": self.pending,
            "failed": self.failed,
            "reason": self.reason,
            "properties": [each.to_json() for each in self.properties],
        }


@dataclass(frozen=True, slots=True, repr=False)
class EmbedResult(HtmlDocument):
    """What a fill did: the vectors it committed, and the texts that the provider refused."""

    uri: str
    branch: str
    filled: int
    failed: int
    reason: str | None
    commits: tuple[str, ...]

    def __repr__(self) -> str:
        return f"EmbedResult({self.branch!r}, filled={self.filled}, failed={self.failed})"

    def to_json(self) -> JsonObject:
        """The document of a fill."""
        return {
            "uri": self.uri,
            "branch": self.branch,
            "filled": self.filled,
            "failed": self.failed,
            "reason": self.reason,
            "commits": list(self.commits),
        }


def read_status(session: Session, stream: Stream) -> VectorStatus:
    """How far the vectors of a branch are."""
    session.authorize(Act(Action.READ, stream.branch), None)
    view = session.open_view(session.read_head(stream))
    failures: dict[tuple[str, str], tuple[int, str]] = {}
    if session.resources.environment.embed is not None:
        for found in find_pending(view):
            encoded = found.texts.dictionary_encode()
            texts = encoded.dictionary.to_pylist()
            known = session.resources.find_failures(texts, found.column.dimension)
            if known:
                refused = pc.is_in(encoded.indices, value_set=pa.array([*known], pa.int32()))
                name = (str(found.type_key), found.column.column)
                failures[name] = refused.true_count, known[max(known)]
    properties = tuple(_describe(each, failures) for each in count_vectors(view))
    error = session.resources.vector_builder.last_error
    reason = None if error is None else error.message
    return VectorStatus(session.uri, stream.branch, properties, reason)


def _describe(
    counts: VectorCounts, failures: dict[tuple[str, str], tuple[int, str]]
) -> PropertyVectors:
    name = (str(counts.type_key), counts.column.column)
    failed, reason = failures.get(name, (0, None))
    property_ = counts.column.property
    model = "" if property_.embed is None else property_.embed.model or ""
    return PropertyVectors(
        counts.type_key.name, property_.name, model, counts.ready, counts.pending, failed, reason
    )


def fill_vectors(
    session: Session,
    stream: Stream,
    *,
    waits: bool = False,
    ask: AskEach | None = None,
    types: Collection[str] | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> EmbedResult:
    """Make the vectors that are pending, and return when none but refused ones are.

    A fill that waits goes on when its provider is down.
    """
    session.authorize(Act(Action.CHANGE, stream.branch))
    resources = session.resources

    def ask_again(texts: list[str], dimension: int) -> AskedVectors:
        return resources.texts.embed_each(texts, dimension, retries_failed=True)

    filler = VectorFiller(
        resources, stream, ask or ask_again, actor=session.actor, types=types, progress=progress
    )
    total, pause = FillOutcome(), _PAUSE_FIRST_S
    while True:
        try:
            found = filler.run()
        except EmbeddingUnavailableError:
            if not waits:
                raise
            time.sleep(pause)
            pause = min(pause * 2, _PAUSE_MAX_S)
            continue
        total.filled += found.filled
        total.commits += found.commits
        return EmbedResult(
            session.uri,
            stream.branch,
            total.filled,
            found.failed,
            found.reason,
            tuple(total.commits),
        )
