"""Bytes to text, with a diagnostic for what is not UTF-8."""

from __future__ import annotations

from omnigraph.diagnostics import Collector, Source, Span
from omnigraph.diagnostics.diagnostic import Poll

_BYTE_ORDER_MARK = "\ufeff"


def decode_source(
    name: str, data: str | bytes, *, code: str, poll: Poll = lambda: None
) -> tuple[Source, Collector]:
    """The text of a file and a collector for it; the first byte that is not UTF-8 is reported."""
    try:
        # A Python string may hold halves of surrogate pairs, which no file can.
        raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
        text = raw.decode("utf-8")
    except UnicodeDecodeError as failure:
        source = Source(name, raw.decode("utf-8", "replace"))
        collector = Collector(source, poll=poll)
        offset = len(raw[: failure.start].decode("utf-8"))
        collector.report_error(
            code,
            Span(offset, offset + 1),
            f"the file is not UTF-8 text: byte 0x{raw[failure.start]:02x} at byte {failure.start}",
            hint="save the file as UTF-8",
        )
        return source, collector
    source = Source(name, text.removeprefix(_BYTE_ORDER_MARK))
    return source, Collector(source, poll=poll)
