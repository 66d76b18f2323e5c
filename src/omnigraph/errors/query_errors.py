"""Errors of requests: a wrong argument, query or name, or a read that could not finish."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from omnigraph.errors.base_error import OmnigraphError
from omnigraph.lang.diagnostic_views import render_human
from omnigraph.lang.diagnostics import Diagnostic, Severity
from omnigraph.lang.quoting import sanitize_text

_NAMES_MAX: Final = 12


class CompileError(OmnigraphError):
    """A schema or query text that cannot be used; `diagnostics` say why, all of them."""

    code = "compile_error"

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        errors = [found for found in self.diagnostics if found.severity is Severity.ERROR]
        super().__init__("\n".join(render_human(found) for found in errors))


class QueryNotFoundError(OmnigraphError):
    """No query of that name is in the text."""

    code = "query_not_found"

    def __init__(self, name: str | None, *, hint: str | None = None) -> None:
        missing = "the text needs a query name" if name is None else f"query '{name}' not found"
        super().__init__(missing, hint=hint)
        self.name = name


class StoredQueryNotFoundError(OmnigraphError):
    """A stored query that is not there, or that the actor may not call: both look the same."""

    code = "stored_query_not_found"

    def __init__(self, name: str | None = None) -> None:
        if name is None:
            # A server says the same of every name.
            super().__init__("stored query not found")
        else:
            hint = "it is not there, or the policy hides it: list those that may be called"
            super().__init__(f"stored query '{name}' not found", hint=hint)


class WrongQueryKindError(OmnigraphError):
    """A mutation that was to be queried, or a read that was to mutate."""

    code = "wrong_query_kind"

    def __init__(self, name: str, *, is_mutation: bool) -> None:
        kind, verb = ("a mutation", "mutate") if is_mutation else ("a read", "query")
        super().__init__(f"query '{name}' is {kind}", hint=f"run it with {verb}")
        self.name = name


class ParameterError(OmnigraphError):
    """A supplied parameter does not fit its declaration."""

    code = "parameter_error"


class UnknownParameterError(ParameterError):
    """A supplied parameter that the query does not declare; `name` and `declared` say which."""

    code = "unknown_parameter"

    def __init__(self, name: str, declared: Sequence[str], *, hint: str | None = None) -> None:
        known = ", ".join(f"${each}" for each in declared[:_NAMES_MAX])
        more = ", …" if len(declared) > _NAMES_MAX else ""
        has = f"it has {known}{more}" if declared else "it has no parameters"
        super().__init__(
            f"the query declares no parameter '{sanitize_text(name)}'; {has}", hint=hint
        )
        self.name = name
        self.declared = tuple(declared)


class InvalidArgumentError(OmnigraphError):
    """An argument of a call that has no meaning; `argument` names it."""

    code = "invalid_argument"

    def __init__(self, argument: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(f"{argument}: {message}", hint=hint)
        self.argument = argument


class CursorStaleError(OmnigraphError):
    """A cursor of another query, other parameters or another branch, or of a collected commit."""

    code = "cursor_stale"

    def __init__(self, reason: str) -> None:
        hint = "repeat the query and its parameters as they were, or ask for the first page again"
        super().__init__(f"cursor: {reason}", hint=hint)


class LibraryMissingError(OmnigraphError):
    """Something that only works with a library that is not installed; `library` is its name.

    An `extra` of this package brings it, with what else is needed beside it.
    """

    code = "library_missing"

    def __init__(self, library: str, *, extra: str | None = None) -> None:
        wanted = library if extra is None else f"'omnigraph[{extra}]'"
        super().__init__(f"this needs {library}", hint=f"pip install {wanted}")
        self.library = library


@contextmanager
def require_extra(extra: str) -> Iterator[None]:
    """Around imports: a library that is not there is one that an extra of this package brings."""
    try:
        yield
    except ModuleNotFoundError as missing:
        library = (missing.name or "").partition(".")[0]
        if library in ("", "omnigraph"):
            raise
        raise LibraryMissingError(library, extra=extra) from missing


class ExecutionError(OmnigraphError):
    """A checked query that could not be evaluated."""

    code = "execution_error"


class NegativeWeightError(ExecutionError):
    """An edge whose weight is below zero, or not finite; `edge_id` is its id."""

    code = "negative_weight"

    def __init__(self, edge_type: str, edge_id: str, *, property_name: str, value: float) -> None:
        super().__init__(
            f"{edge_type} '{edge_id}': {property_name} is {value}, and a weight cannot be",
            hint="weights are finite numbers from zero",
        )
        self.edge_id = edge_id
        self.edge_type = edge_type


class TypeNotFoundError(ExecutionError):
    """The schema has no node or edge type of that name."""

    code = "type_not_found"

    def __init__(self, name: str, *, hint: str | None = None) -> None:
        super().__init__(f"unknown type '{name}'", hint=hint)
        self.name = name


class EmbeddingError(ExecutionError):
    """A text that could not be turned into a vector; `reason` is a stable word.

    It is `not_configured`, `bad_setting`, `missing_key`, `no_model`, `wrong_model`,
    `wrong_dimension`, `no_direction`, `unavailable`, `refused` or `bad_answer`. Of several texts,
    `index` is the place of the one that the failure is about, if it is about one.
    """

    code = "embedding_error"

    def __init__(
        self, message: str, *, reason: str, hint: str | None = None, index: int | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.reason = reason
        self.index = index


class EmbeddingUnavailableError(EmbeddingError):
    """A provider of vectors that gave no answer in time; it may give one later."""

    code = "embedding_unavailable"
    retryable = True

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, reason="unavailable", hint=hint)


class EngineUnsupportedError(ExecutionError):
    """A query that an engine cannot run; `engine` and `what` say which, and why not."""

    code = "engine_unsupported"

    def __init__(self, engine: str, what: str) -> None:
        super().__init__(
            f"the {engine} engine cannot run {what}", hint="run it with the local engine"
        )
        self.engine = engine
        self.what = what


class QueryTimeoutError(ExecutionError):
    """A query that was not done when its time was over; `timeout_s` is what it had."""

    code = "query_timeout"

    def __init__(self, timeout_s: float) -> None:
        super().__init__(
            f"the query was not done after {_format_duration(timeout_s)}",
            hint="give it more time (--timeout, or timeout=), or ask for less",
        )
        self.timeout_s = timeout_s


def _format_duration(seconds: float) -> str:
    milliseconds = round(seconds * 1000)
    if milliseconds < 1:
        return "less than a millisecond"
    if milliseconds < 1000:
        return f"{milliseconds} milliseconds"
    return "1 second" if milliseconds == 1000 else f"{milliseconds / 1000:.12g} seconds"


class QueryCancelledError(ExecutionError):
    """A query that was stopped by its `Cancellation` before its end."""

    code = "query_cancelled"

    def __init__(self) -> None:
        super().__init__("the query was cancelled")


class ResourceLimitError(OmnigraphError):
    """A bound that was exceeded before anything durable happened."""

    code = "resource_limit"

    def __init__(self, resource: str, *, limit: int, actual: int, hint: str | None = None) -> None:
        super().__init__(f"{resource} is limited to {limit}, this needs {actual}", hint=hint)
        self.resource = resource
        self.limit = limit
        self.actual = actual


class SparkMissingError(LibraryMissingError):
    """Something that runs on Spark, where PySpark is not installed."""

    code = "spark_missing"

    def __init__(self) -> None:
        super().__init__("Spark", extra="spark")


class JavaMissingError(OmnigraphError):
    """No Java that Spark can run on; `tried` says what was examined, and what is wrong with it."""

    code = "java_missing"

    def __init__(self, tried: tuple[str, ...]) -> None:
        looked = "; ".join(tried)
        super().__init__(
            f"Spark needs Java 17 or newer, and none was found: {looked}",
            hint="pip install 'omnigraph[spark]', which brings one, or set JAVA_HOME",
        )
        self.tried = tried


class SparkFailedError(OmnigraphError):
    """A job that Spark gave up; `job` is what it was to do. Nothing was committed by it."""

    code = "spark_failed"
    retryable = True

    def __init__(self, job: str, reason: str) -> None:
        super().__init__(
            f"Spark could not {job}: {reason}",
            hint="look at the logs of the executors, then repeat it",
        )
        self.job = job
        self.reason = reason


class SparkDriverLostError(SparkFailedError):
    """The Java process of Spark's driver ended, or its server does not answer any more."""

    code = "spark_driver_lost"

    def __init__(self, job: str) -> None:
        super().__init__(job, "the Java process of its driver ended")
        self.hint = (
            "it may have run out of memory: give it more with the setting spark.driver.memory, look"
            " at its log and at that of the machine, then repeat it"
        )
