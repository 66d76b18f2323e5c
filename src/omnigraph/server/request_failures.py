"""Failures as answers: one table of statuses, and documents that give nothing away."""

from __future__ import annotations

import logging
from typing import Any, Final

from omnigraph.error_codes import ErrorCode
from omnigraph.errors import (
    ChangeFeedGapError,
    EmbeddingError,
    GraphClosedError,
    InDoubtError,
    InvalidArgumentError,
    OmnigraphError,
    PreconditionFailedError,
    QueryTimeoutError,
    RangeNotSatisfiableError,
    ResourceLimitError,
)
from omnigraph.errors.error_documents import describe_error, error_code_of
from omnigraph.server.exchange import Answer, Call, RequestRefusedError
from omnigraph.wire.json_rows import encode_document

_log = logging.getLogger(__name__)

# What the code of an error means in HTTP. An error without a code has a line of its own.
_STATUS_OF_CODE: Final[dict[ErrorCode | None, int]] = {
    ErrorCode.UNAUTHORIZED: 401,
    ErrorCode.FORBIDDEN: 403,
    ErrorCode.BAD_REQUEST: 400,
    ErrorCode.NOT_FOUND: 404,
    ErrorCode.METHOD_NOT_ALLOWED: 405,
    ErrorCode.CONFLICT: 409,
    ErrorCode.TOO_MANY_REQUESTS: 429,
    ErrorCode.INTERNAL: 500,
    None: 500,
}
# An error has the status of its nearest ancestor here, and otherwise that of its code.
_STATUS_OF_ERROR: Final[dict[type[OmnigraphError], int]] = {
    ChangeFeedGapError: 410,
    PreconditionFailedError: 412,
    QueryTimeoutError: 413,
    ResourceLimitError: 413,
    RangeNotSatisfiableError: 416,
    EmbeddingError: 424,
    InDoubtError: 503,
}
# Clients know these statuses by their detail; the closed list of codes has none for them.
_WITHOUT_CODE: Final = frozenset({410, 412, 424, 503})
_INTERNAL: Final = 500
RETRY_AFTER: Final = (b"retry-after", b"60")


def answer_failure(call: Call, error: Exception) -> Answer:
    """The answer to a request that failed; what is our own fault is logged, and not shown."""
    match error:
        case RequestRefusedError():
            return answer_refusal(error)
        case GraphClosedError():
            # It was removed from the cluster while the request was under way.
            return answer_refusal(refuse_unknown_graph(call.graph_id))
        case InDoubtError():
            detail = {"recovery_required": {"operation_id": error.commit}}
            return _build_document(503, "the outcome of the write is not known yet", None, detail)
        case OmnigraphError():
            status = status_of(type(error))
            if status == _INTERNAL:
                return _answer_internal(call, error)
            return Answer(status, encode_document(_describe(error, status)))
        case _:
            return _answer_internal(call, error)


def status_of(error: type[OmnigraphError]) -> int:
    """The status of an error of the engine."""
    for base in error.__mro__:
        if base in _STATUS_OF_ERROR:
            return _STATUS_OF_ERROR[base]
    return _STATUS_OF_CODE[error_code_of(error)]


def answer_refusal(refused: RequestRefusedError) -> Answer:
    """The answer to a request that ended before the engine."""
    answer = _build_document(refused.status, refused.message, refused.code, dict(refused.detail))
    return Answer(answer.status, answer.body, headers=refused.headers)


def refuse_unknown_graph(graph_id: str) -> RequestRefusedError:
    """The refusal of a graph that is not served, whatever the reason."""
    return RequestRefusedError(404, f"graph '{graph_id}' not found", code=ErrorCode.NOT_FOUND)


def refuse_too_large(resource: str, *, limit: int, actual: int) -> RequestRefusedError:
    """The refusal of what exceeds a bound of the server."""
    detail = {"resource_limit": {"resource": resource, "limit": limit, "actual": actual}}
    message = f"{resource} is limited to {limit}, this needs {actual}"
    # What is left of the body is not read.
    return RequestRefusedError(413, message, detail=detail, headers=((b"connection", b"close"),))


def refuse_overload(message: str) -> RequestRefusedError:
    """The refusal of a write of an actor who has too many under way."""
    return RequestRefusedError(
        429,
        message,
        code=ErrorCode.TOO_MANY_REQUESTS,
        detail={"retryable": True},
        headers=(RETRY_AFTER,),
    )


def refuse_for_now(message: str) -> RequestRefusedError:
    """The refusal of a request that may succeed when the server has what it needs."""
    return RequestRefusedError(503, message, code=None, detail={"retryable": True})


def _describe(error: OmnigraphError, status: int) -> dict[str, Any]:  # Any: a JSON document
    document = describe_error(error)
    if status in _WITHOUT_CODE:
        document.pop("code", None)
    if isinstance(error, QueryTimeoutError):
        milliseconds = int(error.timeout_s * 1000)
        limit = {"resource": "query_time_ms", "limit": milliseconds, "actual": milliseconds}
        document["resource_limit"] = limit
    if isinstance(error, InvalidArgumentError):
        document["argument"] = error.argument
    return document


def _answer_internal(call: Call, error: Exception) -> Answer:
    """A fixed text: messages of stores and libraries hold paths and addresses."""
    _log.error(
        "request failed",
        exc_info=error,
        extra={"fields": {"request_id": call.request_id, "error": type(error).__name__}},
    )
    message = "the request failed inside the server; its log has the reason by the request id"
    reason = error.code if isinstance(error, OmnigraphError) else "internal"
    retryable = error.retryable if isinstance(error, OmnigraphError) else False
    detail = {"reason": reason, "retryable": retryable}
    return _build_document(500, message, ErrorCode.INTERNAL, detail)


def _build_document(
    status: int, message: str, code: ErrorCode | None, detail: dict[str, Any]
) -> Answer:
    document: dict[str, Any] = {"error": message}  # Any: a JSON document
    if code is not None:
        document["code"] = str(code)
    return Answer(status, encode_document(document | detail))
