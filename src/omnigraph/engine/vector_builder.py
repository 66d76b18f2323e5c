"""Makes the vectors of texts that wait for them, after commits and on request.

Each piece of the work is a commit of its own. A process that ends early leaves what it has
committed, and what a provider made since then is in the cache of the user.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.embedding.model_identity import require_model
from omnigraph.embedding.text_vectors import AskedVectors
from omnigraph.errors import (
    BranchRefusedError,
    ConflictError,
    EmbeddingError,
    OmnigraphError,
)
from omnigraph.ids import generate_ulid
from omnigraph.rows.view import open_view
from omnigraph.versioning import Record, Signature, Snapshot, Stream, Transaction
from omnigraph.versioning.record import FILL_OPERATIONS
from omnigraph.writers.pending_vectors import PendingTexts, build_vector_commit, find_pending
from omnigraph.writers.row_staging import RowStaging

if TYPE_CHECKING:
    from omnigraph.engine.resources import Resources

# So many texts get their vectors in one commit: one write rarely waits for more.
COMMIT_ROWS_MAX: Final = 8_192
MESSAGE: Final = "vectors of texts"
# From distinct texts and a dimension to their vectors, as far as there are any.
AskEach: TypeAlias = Callable[[list[str], int], AskedVectors]


@dataclass(slots=True)
class FillOutcome:
    """What one fill did: its vectors and commits, and the texts that have none, with a reason."""

    filled: int = 0
    commits: list[str] = field(default_factory=list)
    failed: int = 0
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class VectorFiller:
    """One fill of a branch; `has_time` says between two pieces whether there is time for more."""

    resources: Resources
    stream: Stream
    ask: AskEach
    has_time: Callable[[], bool] = lambda: True
    actor: str | None = None
    types: Collection[str] | None = None
    progress: Callable[[int], None] = lambda _: None

    def run(self) -> FillOutcome:
        """Fill until nothing waits but texts that the provider refuses."""
        outcome = FillOutcome()
        while True:
            before, outcome.failed = outcome.filled, 0
            for pending in self._find_pending():
                self._fill(pending, outcome)
            # What other writes brought meanwhile is found by another look.
            if outcome.filled == before or not self.has_time():
                return outcome

    def _find_pending(self) -> Iterator[PendingTexts]:
        resources = self.resources
        snapshot = resources.log.read_head(self.stream).snapshot
        view = open_view(snapshot, resources.schemas, resources.storage.tables)
        for found in find_pending(view, self.types):
            require_model(found.column.property, resources.texts.embedder)
            for start in range(0, len(found.ids), COMMIT_ROWS_MAX):
                if not self.has_time():
                    return
                yield found.select(start, COMMIT_ROWS_MAX)

    def _fill(self, pending: PendingTexts, outcome: FillOutcome) -> None:
        encoded = pending.texts.dictionary_encode()
        dimension = pending.column.dimension
        asked = self.ask(encoded.dictionary.to_pylist(), dimension)
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        is_there = asked.is_there[codes]
        outcome.failed += int((~is_there).sum())
        if asked.reasons:
            outcome.reason = asked.reasons[max(asked.reasons)]
        kept = pa.array(np.flatnonzero(is_there))
        if not len(kept):
            return
        found = PendingTexts(
            pending.type_key, pending.column, pending.ids.take(kept), pending.texts.take(kept)
        )
        record = self._publish(found, asked, codes[is_there])
        if record is not None:
            change = record.changes.get(str(pending.type_key))
            outcome.filled += len(kept) if change is None else _count_updated(change)
            outcome.commits.append(record.commit)
            self.progress(outcome.filled)

    def _publish(
        self, pending: PendingTexts, asked: AskedVectors, codes: np.ndarray
    ) -> Record | None:
        resources = self.resources
        staging = RowStaging(resources.storage.tables)
        operation = f"{FILL_OPERATIONS}{generate_ulid()}"
        signature = Signature(self.actor, MESSAGE, operations=(operation,))

        def prepare(snapshot: Snapshot) -> Transaction | None:
            view = open_view(snapshot, resources.schemas, resources.storage.tables)
            found = (pending, asked.vectors[codes])
            return build_vector_commit(
                view, resources.keys, found, staging=staging, signature=signature
            )

        try:
            transaction = prepare(resources.log.read_head(self.stream).snapshot)
            if transaction is None:
                return None
            publisher = resources.publishers.get_publisher(self.stream)
            return publisher.publish(transaction, prepare_again=prepare)
        except OmnigraphError:
            staging.abandon()
            raise


def _count_updated(change: object) -> int:
    updated = getattr(change, "updated", 0)
    return updated if isinstance(updated, int) else len(updated)


class VectorBuilder:
    """Fills branches in the background, one after the other: no writer waits for it."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._lock = threading.Lock()
        # The branches that are being filled, and whether more was written meanwhile.
        self._running: dict[str, bool] = {}
        # Why the last fill ended early, or why a text has no vector.
        self.last_error: OmnigraphError | None = None
        self.last_reason: str | None = None

    def consider(self, stream: Stream) -> None:
        """Fill a branch some time soon."""
        with self._lock:
            is_running = stream.id in self._running
            self._running[stream.id] = is_running
        if is_running:
            return
        try:
            self._resources.fills.submit(self._run, stream)
        except RuntimeError:
            # The graph is being closed: the next process that writes goes on.
            self._finish_if_idle(stream)

    def _run(self, stream: Stream) -> None:
        resources = self._resources
        try:
            while True:
                texts = resources.texts
                has_time = lambda: resources.fills.has_time(False)  # noqa: E731 — a default
                filler = VectorFiller(resources, stream, texts.embed_each, has_time)
                outcome = filler.run()
                self.last_error, self.last_reason = None, outcome.reason
                if self._finish_if_idle(stream):
                    return
        except (ConflictError, BranchRefusedError):
            pass  # A busy or deleted branch: a later write asks again.
        except EmbeddingError as error:
            self.last_error, self.last_reason = error, error.message
        except OmnigraphError as error:
            self.last_error = error
        finally:
            with self._lock:
                self._running.pop(stream.id, None)

    def _finish_if_idle(self, stream: Stream) -> bool:
        with self._lock:
            if self._running.get(stream.id):
                self._running[stream.id] = False
                return False
            self._running.pop(stream.id, None)
            return True
