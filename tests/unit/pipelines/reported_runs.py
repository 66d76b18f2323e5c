"""Runs of one row, or of a failure, for tests of what is reported of them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import omnigraph
from omnigraph import Branch
from omnigraph.engine import LoadResult
from omnigraph.pipelines.config.definition import Pipeline, Target
from omnigraph.pipelines.config.secret_resolver import Resolver
from omnigraph.pipelines.ledger.run_ledger import Ledger, Run
from omnigraph.pipelines.run.pipeline_run import RunContext, RunOptions
from omnigraph.pipelines.run.run_slot import Slot
from omnigraph.pipelines.run.target_attempt import LoadRequest
from omnigraph.pipelines.sources import SourceState
from unit.pipelines.definitions import SCHEMA

HIDDEN = "s3cr3t-token"
TOKENS = {"TOKEN": HIDDEN}


class Rows:
    """One row, or a failure."""

    def __init__(self, failure: BaseException | None = None) -> None:
        self._failure = failure

    def load(self, branch: Branch, terms: LoadRequest) -> LoadResult:
        """Load it."""
        if self._failure is not None:
            raise self._failure
        row = {"type": "Person", "data": {"handle": "ada", "name": "Ada", "level": "senior"}}
        return branch.load([row], mode="merge", key=terms.key, message=terms.message)

    def count_rows(self, target: Target) -> int | None:
        """One."""
        del target
        return 1

    def retain(self) -> None:
        """It stays."""

    def discard(self) -> None:
        """It stays."""


def run_once(
    pipeline: Pipeline,
    failure: BaseException | None = None,
    *,
    slot: str = "s",
    environment: Mapping[str, str] = TOKENS,
) -> Run:
    """Run a slot of a pipeline whose source is not read."""
    uri = pipeline.graphs["company"].uri
    if not Path(uri).exists():
        omnigraph.create(uri, schema=SCHEMA).close()
    resolver = Resolver.from_environment(pipeline, environment)
    ledger = Ledger.open(resolver.resolve_ledger(), pipeline.name)
    with ExitStack() as stack:
        running = RunContext(pipeline, RunOptions(), resolver, ledger, stack)
        work = Slot(slot, {"source": SourceState({"kind": "files"})})
        return running.run_slot(work, running.open_graphs(), Rows(failure))
