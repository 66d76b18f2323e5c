"""Sends answers: whole, or part by part as they are made."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from omnigraph.execution.query_budget import Cancellation
from omnigraph.server.exchange import Answer, Call, Headers, StreamedAnswer
from omnigraph.server.lanes import Lane, Lanes
from omnigraph.server.request_reader import Receive

Event = MutableMapping[str, Any]  # Any: values of ASGI
Send = Callable[[Event], Awaitable[None]]

_log = logging.getLogger(__name__)
_CHUNK_BYTES_MAX: Final = 64 * 1024


class StreamAbortedError(Exception):
    """An answer that failed after its first byte: the connection is cut, so that it shows."""


@dataclass(frozen=True, slots=True)
class Channel:
    """The two directions of a request."""

    receive: Receive
    send: Send


class AnswerSender:
    """Sends to clients; the connection of one that does not take what it is sent ends."""

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes

    async def send(
        self, call: Call, answer: Answer | StreamedAnswer, headers: Headers, channel: Channel
    ) -> int:
        """Send an answer; its status."""
        headers += answer.headers
        if answer.content_type is not None:
            headers.append((b"content-type", answer.content_type))
        if isinstance(answer, StreamedAnswer):
            await self._send_stream(call, answer, headers, channel)
            return answer.status
        if answer.content_type is not None and not _has_length(answer):
            headers.append((b"content-length", str(len(answer.body)).encode()))
        await channel.send(_build_start(answer.status, headers))
        await channel.send({"type": "http.response.body", "body": answer.body})
        return answer.status

    async def _send_stream(
        self, call: Call, answer: StreamedAnswer, headers: Headers, channel: Channel
    ) -> None:
        gone = Cancellation()
        parts = _split_chunks(answer.chunks)
        try:
            await channel.send(_build_start(answer.status, headers))
            with call_when_gone(channel.receive, gone.cancel):
                while not gone.is_cancelled and (part := await self._make_part(parts)):
                    event = {"type": "http.response.body", "body": part, "more_body": True}
                    await channel.send(event)
            await channel.send({"type": "http.response.body", "body": b""})
        except Exception as error:
            # A client that took a part for the whole would lose entities.
            fields = {"request_id": call.request_id, "error": type(error).__name__}
            _log.error("stream aborted", exc_info=error, extra={"fields": fields})
            raise StreamAbortedError from error
        finally:
            answer.release()

    async def _make_part(self, parts: Iterator[bytes]) -> bytes | None:
        return await self._lanes.run(Lane.STREAM, lambda: next(parts, None))


@contextmanager
def call_when_gone(receive: Receive, act: Callable[[], None]) -> Iterator[None]:
    """Do something if the client closes the connection within the context."""

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        act()

    watching = asyncio.ensure_future(watch())
    try:
        yield
    finally:
        watching.cancel()


def _has_length(answer: Answer) -> bool:
    return any(name == b"content-length" for name, _ in answer.headers)


def _build_start(status: int, headers: Headers) -> Event:
    return {"type": "http.response.start", "status": status, "headers": headers}


def _split_chunks(chunks: Iterator[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        for start in range(0, len(chunk), _CHUNK_BYTES_MAX):
            yield chunk[start : start + _CHUNK_BYTES_MAX]
