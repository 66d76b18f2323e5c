"""What commits changed, exports and baselines."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final

from omnigraph.operations import graph_reads, history_reads
from omnigraph.server.exchange import LINES_TYPE, Answer, Call, StreamedAnswer, answer_json
from omnigraph.server.request_failures import refuse_too_large

LINES_UTF8: Final = LINES_TYPE + b"; charset=utf-8"
EXPORTS: Final = "stream_export_slots"


def get_commit_changes(call: Call) -> Answer:
    """A page of what a commit changed."""
    graph = call.open_graph()
    return answer_json(history_reads.read_commit_changes(graph, call.path["commit_id"], call.query))


def poll_changes(call: Call) -> Answer:
    """A page of what was committed after a position."""
    return answer_json(history_reads.poll_changes(call.open_graph(), call.query))


def diff_states(call: Call) -> StreamedAnswer:
    """What changed between two states."""
    lines = history_reads.begin_diff(call.open_graph(), call.body, call.bounds)
    return StreamedAnswer(start_stream(lines), lambda: None, LINES_UTF8)


def get_history(call: Call) -> StreamedAnswer:
    """What commits made of an entity."""
    lines = history_reads.iter_history(call.open_graph(), call.body, call.bounds)
    return StreamedAnswer(start_stream(lines), lambda: None, LINES_UTF8)


def get_blame(call: Call) -> Answer:
    """The commit that gave each property of an entity its value."""
    return answer_json(history_reads.read_blame(call.open_graph(), call.body, call.bounds))


def capture_baseline(call: Call) -> StreamedAnswer:
    """Every entity, and the cursor after them."""
    chunks = history_reads.begin_baseline(call.open_graph(), call.body)
    return StreamedAnswer(start_stream(chunks), lambda: None, LINES_UTF8)


def export(call: Call) -> StreamedAnswer:
    """Every entity; of one graph, one export at a time."""
    chunks = graph_reads.begin_export(call.open_graph(), call.body)
    slot = call.target.export_slot
    if not slot.acquire(blocking=False):
        raise refuse_too_large(EXPORTS, limit=1, actual=2)
    try:
        return StreamedAnswer(start_stream(chunks), slot.release)
    except BaseException:
        slot.release()
        raise


def start_stream(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The same chunks; what fails at the first one fails before the answer begins."""
    first = next(chunks, b"")
    return chain([first], chunks)
