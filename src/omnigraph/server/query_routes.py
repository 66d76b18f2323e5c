"""Reads: queries, snapshots, schemas, and the lists of branches and commits."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from omnigraph.errors import WrongQueryKindError
from omnigraph.operations import (
    graph_reads,
    graph_writes,
    history_reads,
    query_checks,
    schema_types,
)
from omnigraph.server.exchange import Answer, Call, RequestRefusedError, answer_json
from omnigraph.wire.json_rows import encode_document, encode_read
from omnigraph.wire.protocol_names import ARROW, COMMIT_HEADER, PAGE_METADATA

if TYPE_CHECKING:
    from omnigraph.operations.graph_reads import ReadAnswer, SelectedState
    from omnigraph.wire.wire_requests import ExplainRequest, QueryRequest

_ARROW: Final = ARROW.encode()
_REFUSALS: Final = {"q=0", "q=0.0", "q=0.00", "q=0.000"}
# What an Arrow answer says of its read, which a JSON answer has in its document.
_COMMIT_HEADER: Final = COMMIT_HEADER.lower().encode()
_NAME_HEADER: Final = b"omnigraph-query-name"


def prepare_query(call: Call) -> tuple[Hashable, Callable[[], Answer]]:
    """The state of a read, what an equally quick one is known by, and the read itself."""
    asked: QueryRequest = call.body
    graph = call.open_graph()
    state = graph_reads.select_state(graph, branch=asked.branch, snapshot=asked.snapshot)
    return build_quick_key(call, state, asked), lambda: answer_query(call, state, asked)


def prepare_old_query(call: Call) -> tuple[Hashable, Callable[[], Answer]]:
    """The same for clients of the old route, whose answer does not name its commit."""
    asked: QueryRequest = call.body
    graph = call.open_graph()
    state = graph_reads.select_state(graph, branch=asked.branch, snapshot=asked.snapshot)

    def work() -> Answer:
        document = graph_reads.run_read(state, asked, call.bounds).to_json()
        document.pop("graph_commit_id")
        return answer_json(document)

    return ("old", *build_quick_key(call, state, asked)), work


def prepare_explanation(call: Call) -> tuple[Hashable, Callable[[], Answer]]:
    """The same for how a read is answered."""
    asked: ExplainRequest = call.body
    graph = call.open_graph()
    state = graph_reads.select_state(graph, branch=asked.branch, snapshot=asked.snapshot)
    key = ("explain", asked.analyze, *build_quick_key(call, state, asked))
    return key, lambda: answer_json(graph_reads.explain_read(state, asked, call.bounds))


def build_quick_key(
    call: Call, state: SelectedState, asked: QueryRequest
) -> tuple[str, str, str, str | None]:
    """What a read must equal to take as long as another one: its text, name and snapshot."""
    return call.target.uri, state.snapshot.at.commit, asked.query, asked.name


def answer_query(call: Call, state: SelectedState, asked: QueryRequest) -> Answer:
    """Run a read on its state, and encode its rows as the client wants them."""
    try:
        answer = graph_reads.run_read(state, asked, call.bounds)
    except WrongQueryKindError as error:
        message = f"{error.message}: mutations are sent to POST /mutate"
        raise RequestRefusedError(400, message) from None
    if _is_arrow_accepted(call):
        return _encode_arrow(answer)
    return Answer(body=encode_read(answer.describe(), answer.result))


def _is_arrow_accepted(call: Call) -> bool:
    """Whether a client names Arrow among what it accepts; `q=0` refuses it."""
    offers = ",".join(call.list_headers(b"accept")).lower().split(",")
    terms = [[term.strip() for term in offer.split(";")] for offer in offers]
    return any(media == ARROW and not _REFUSALS & {*rest} for media, *rest in terms)


def _encode_arrow(answer: ReadAnswer) -> Answer:
    rows = answer.result.to_arrow()
    if page := answer.result.describe_page():
        # A cursor may be longer than a header.
        rows = rows.replace_schema_metadata({PAGE_METADATA: encode_document(page)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    headers = (
        (_COMMIT_HEADER, answer.commit_id.encode()),
        (_NAME_HEADER, answer.query_name.encode()),
    )
    return Answer(body=sink.getvalue().to_pybytes(), content_type=_ARROW, headers=headers)


def get_snapshot(call: Call) -> Answer:
    """The types of a state, and how many entities each has."""
    graph = call.open_graph()
    asked = call.query
    state = graph_reads.select_state(graph, branch=asked.branch, snapshot=asked.snapshot)
    return answer_json(state.snapshot.to_json())


def get_schema(call: Call) -> Answer:
    """The schema in force."""
    asked = call.query
    document = graph_reads.read_schema(
        call.open_graph(), branch=asked.branch, snapshot=asked.snapshot
    )
    return answer_json(document)


def list_types(call: Call) -> Answer:
    """The types of a state as data."""
    asked = call.query
    graph = call.open_graph()
    return answer_json(schema_types.list_types(graph, branch=asked.branch, snapshot=asked.snapshot))


def check_query(call: Call) -> Answer:
    """What the compiler finds in a text."""
    return answer_json(query_checks.check_text(call.open_graph(), call.body, call.bounds))


def list_indexes(call: Call) -> Answer:
    """The indexes of a branch."""
    return answer_json(graph_reads.list_indexes(call.open_graph(), call.query.branch))


def get_entity(call: Call) -> Answer:
    """The values of one entity."""
    return answer_json(graph_reads.read_entity(call.open_graph(), call.query))


def list_branches(call: Call) -> Answer:
    """The names of all branches."""
    return answer_json(graph_writes.list_branches(call.open_graph()))


def list_tags(call: Call) -> Answer:
    """The names of commits that stay."""
    return answer_json(graph_writes.list_tags(call.open_graph()))


def list_commits(call: Call) -> Answer:
    """The commits of a branch."""
    document = history_reads.list_commits(call.open_graph(), call.query.branch, call.query.limit)
    return answer_json(document)


def get_commit(call: Call) -> Answer:
    """One commit."""
    return answer_json(history_reads.read_commit(call.open_graph(), call.path["commit_id"]))
