"""Errors of pipelines: a definition, secret, source or run that fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from omnigraph.errors.base_error import OmnigraphError
from omnigraph.errors.config_errors import ConfigInvalidError


class PipelineInvalidError(ConfigInvalidError):
    """A definition or mapping that cannot be run; `problems` are all of them."""

    code = "pipeline_invalid"


class PipelineNotFoundError(OmnigraphError):
    """No definition of that name is there."""

    code = "pipeline_not_found"

    def __init__(self, name: str, *, hint: str | None = None) -> None:
        super().__init__(f"pipeline '{name}' not found", hint=hint)
        self.name = name


class PipelineRunNotFoundError(OmnigraphError):
    """No run of that id is in the ledger, or it has no such target."""

    code = "pipeline_run_not_found"


class SecretMissingError(OmnigraphError):
    """A value that a definition takes from the environment is not set; `names` are its names."""

    code = "secret_missing"

    def __init__(self, names: Sequence[str]) -> None:
        unset = ", ".join(f"${{{name}}}" for name in names)
        super().__init__(f"not set: {unset}", hint="set it in the environment, or in the env_file")
        self.names = tuple(names)


class SourceFailedError(OmnigraphError):
    """A source that could not be read this time; later it may be."""

    code = "source_failed"
    retryable = True


class SourceRefusedError(OmnigraphError):
    """A source that does not hold what the definition says."""

    code = "source_refused"


class UncompiledValueError(OmnigraphError):
    """A value that a mapping without Spark does not judge: the load is made by Spark then."""

    code = "uncompiled_value"


class TooManyRejectedError(OmnigraphError):
    """A run that would leave out more rows than its target tolerates; nothing was committed.

    `rejects` is the file with the reasons.
    """

    code = "too_many_rejected"

    def __init__(self, rejected: int, rows: int, *, allowed: str, rejects: str | None) -> None:
        reasons = "" if rejects is None else f"reasons in {rejects}; "
        super().__init__(
            f"{rejected} of {rows} rows were rejected, and {allowed} may be",
            hint=f"{reasons}mend the records, or raise 'max_rejected'",
        )
        self.rejected = rejected
        self.rows = rows
        self.rejects = rejects


class TooFewRowsError(OmnigraphError):
    """A run that would load fewer rows than its target expects; nothing was committed."""

    code = "too_few_rows"

    def __init__(self, rows: int, *, minimum: int) -> None:
        super().__init__(
            f"the run would load {rows} rows, and 'min_rows' expects {minimum}",
            hint="look whether the source is complete, or lower 'min_rows'",
        )
        self.rows = rows
        self.minimum = minimum


class TooManyDeletedError(OmnigraphError):
    """A run that would delete more entities than a rule allows; nothing was committed."""

    code = "too_many_deleted"

    def __init__(self, type_name: str, missing: int, entities: int, *, allowed: str) -> None:
        super().__init__(
            f"{type_name}: the source lacks {missing} of {entities} entities, and {allowed} may be"
            " deleted",
            hint="look whether the source is complete, or raise 'delete_missing'",
        )
        self.missing = missing
        self.entities = entities


class ExpectationFailedError(OmnigraphError):
    """Rows of a run are not as a rule expects; nothing was committed.

    `broken` says which expectations, `rules` is what was counted, as in the ledger.
    """

    code = "expectation_failed"

    def __init__(
        self, broken: Sequence[str], *, rules: Sequence[Mapping[str, Any]]
    ) -> None:  # Any: JSON
        super().__init__("; ".join(broken), hint="mend the source, or change what is expected")
        self.broken = tuple(broken)
        self.rules = tuple(rules)


class ApprovalRequiredError(OmnigraphError):
    """A run that would replace data and is not approved; `digest` is what to approve."""

    code = "approval_required"

    def __init__(self, pipeline: str, digest: str) -> None:
        super().__init__(
            f"pipeline '{pipeline}' overwrites data, and this definition is not approved",
            hint=f"look at `omnigraph pipeline plan`, then run it with --approve {digest}",
        )
        self.digest = digest


class RunFailedError(OmnigraphError):
    """A run whose targets did not all succeed; `run_id` names it in the ledger."""

    code = "run_failed"

    def __init__(self, message: str, *, run_id: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.run_id = run_id


class RunFencedError(OmnigraphError):
    """A run that was given up, because nothing was heard of it; nothing was committed since."""

    code = "run_fenced"

    def __init__(self, run_id: str) -> None:
        super().__init__(
            f"run {run_id} was given up by another run, because it gave no sign of life",
            hint="look at the newer runs; the machine may have been suspended",
        )
        self.run_id = run_id
