"""Spans of requests, where the environment of the process configures OpenTelemetry."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from opentelemetry import propagate, trace
from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer

from omnigraph.server.exchange import Call

_PREFIX: Final = "OTEL_"
_FAILED: Final = 500


def find_tracer(environment: Mapping[str, str]) -> Tracer | None:
    """The tracer of the process, if anything says where spans go; a span takes 30 to 60 µs."""
    if not any(name.startswith(_PREFIX) for name in environment):
        return None
    return trace.get_tracer("omnigraph.server")


def record_span(tracer: Tracer, call: Call, path: str, status: int, seconds: float) -> None:
    """One span for a request that was answered, below the span that its client names."""
    carrier = {name.decode("latin-1"): value.decode("latin-1") for name, value in call.headers}
    ended = time.time_ns()
    span = tracer.start_span(
        f"{call.method} {path}",
        context=propagate.extract(carrier),
        kind=SpanKind.SERVER,
        attributes={
            "http.request.method": call.method,
            "http.route": path,
            "http.response.status_code": status,
            "omnigraph.request_id": call.request_id,
        },
        start_time=ended - int(seconds * 1e9),
    )
    if status >= _FAILED:
        span.set_status(Status(StatusCode.ERROR))
    span.end(ended)
