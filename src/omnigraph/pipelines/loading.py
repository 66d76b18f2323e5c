"""Records of sources into a branch, on Spark: rows of each type, and one load of all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from omnigraph.engine.distributed import import_spark_module
from omnigraph.errors import TooFewRowsError, TooManyRejectedError
from omnigraph.pipelines.definition import Target

if TYPE_CHECKING:
    from omnigraph import Branch
    from omnigraph.engine import LoadResult
    from omnigraph.pipelines.origins.locating import OpenSource
    from omnigraph.schema.catalog import Catalog
    from omnigraph.writers.bulk.sources import LoadCounts


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """How a target is loaded: its key and message, and where records go that are left out."""

    target: Target
    key: str
    message: str
    rejects: str | None = None
    progress: Any = None  # Any: what the load of frames takes


def load_records(
    branch: Branch,
    sources: Mapping[str, OpenSource],
    terms: LoadRequest,
    *,
    staged: Callable[[], None],
) -> LoadResult:
    """Load the records of a target; `staged` is asked when all of them were read."""
    # Spark may not be needed, nor be there.
    from omnigraph.pipelines.frames import build_frames  # noqa: PLC0415
    from omnigraph.pipelines.origins.locating import RecordLocator  # noqa: PLC0415

    target = terms.target
    frames = {name: each.rows for name, each in sources.items()}
    result: LoadResult = import_spark_module("load").load_frames(
        branch,
        build_frames(target.mapping, catalog_of(branch), frames, mode=target.mode),
        mode=target.mode,
        key=terms.key,
        message=terms.message,
        on_error=target.on_error,
        rejects=terms.rejects,
        progress=terms.progress,
        staged=staged,
        locate=RecordLocator(tuple(sources.values())),
        accept=partial(require_reject_limit, target),
    )
    return result


def require_reject_limit(target: Target, counts: LoadCounts) -> None:
    """Refuse a load that leaves out more rows than a target tolerates, or that has too few."""
    rows = counts.written + counts.rejected
    if not target.max_rejected.allows_rejected(counts.rejected, rows):
        allowed = f"at most {target.max_rejected}"
        raise TooManyRejectedError(counts.rejected, rows, allowed=allowed, rejects=counts.rejects)
    if counts.written < target.min_rows:
        raise TooFewRowsError(counts.written, minimum=target.min_rows)


def catalog_of(branch: Branch) -> Catalog:
    """The schema in force on a branch."""
    return branch.snapshot().view.accepted.catalog
