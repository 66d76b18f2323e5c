"""Requests as clients send them, and the documents of the engine beside the models of answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError

import omnigraph
from omnigraph import Graph
from omnigraph.errors import (
    BranchNotFoundError,
    ChangeFeedGapError,
    CommitHasNoParentError,
    CompileError,
    KeyConflictError,
    MergeConflictError,
    OmnigraphError,
    PolicyDeniedError,
    PreconditionFailedError,
    RangeNotSatisfiableError,
    ResourceLimitError,
    WriteRefusedError,
)
from omnigraph.errors.error_documents import describe_error
from omnigraph.wire import wire_answers as answers
from omnigraph.wire import wire_changes as changes
from omnigraph.wire import wire_requests as requests
from omnigraph.wire.wire_failures import ErrorOutput
from omnigraph.wire.wire_model import Answer, WireModel
from places import fresh_uri

SCHEMA = """
node Person { name: String @key  age: I32? }
edge Knows: Person -> Person { since: Date? }
"""
HIRE = "query hire($name: String, $age: I32?) { insert Person { name: $name, age: $age } }"
AGE = 'query age($age: I32) { update Person set { age: $age } where name = "ada" }'
PEOPLE = [{"type": "Person", "data": {"name": name}} for name in ("ada", "bob")]
KNOWS = {"edge": "Knows", "from": "ada", "to": "bob", "data": {"since": "2020-01-01"}}


@pytest.fixture
def graph() -> Iterator[Graph]:
    with omnigraph.create(fresh_uri(), schema=SCHEMA, actor="ada") as graph:
        yield graph


def matches(model: type[Answer], document: Any) -> None:
    """A document is exactly what its model says, and the same after a round."""
    validated = model.model_validate_json(json.dumps(document))
    assert validated.model_dump(mode="json", by_alias=True, exclude_unset=True) == document


def test_the_documents_of_writes_are_those_of_the_models(graph: Graph) -> None:
    main = graph.branch()
    loaded = main.load([*PEOPLE, KNOWS], mode="append", message="people")
    matches(answers.IngestOutput, loaded.to_json() | {"base_branch": None})
    matches(answers.CommitOutput, graph.commit("main").to_json())
    assert graph.commit("main").to_json() == loaded.commit.to_json()
    matches(answers.ChangeOutput, main.mutate(HIRE, params={"name": "cy", "age": 7}).to_json())
    nothing = main.mutate('query none() { delete Person where name = "zoe" }')
    assert nothing.to_json()["commit"] is None
    matches(answers.ChangeOutput, nothing.to_json())
    matches(answers.ChangeOutput, main.mutate(AGE, params={"age": 1}, dry_run=True).to_json())
    applied = main.apply_schema(SCHEMA + "node Team { name: String @key }")
    matches(answers.SchemaApplyOutput, applied.to_json())
    review = graph.create_branch("review")
    review.mutate(AGE, params={"age": 9})
    matches(answers.BranchMergeOutput, main.merge("review", delete_branch=True).to_json())
    matches(answers.CommitListOutput, {"commits": [each.to_json() for each in main.commits()]})
    matches(answers.SnapshotOutput, main.snapshot().to_json())


def test_the_documents_of_changes_are_those_of_the_models(graph: Graph) -> None:
    main = graph.branch()
    loaded = main.load([*PEOPLE, KNOWS], mode="append")
    main.mutate(AGE, params={"age": 3})
    page = graph.commit_changes(loaded.commit, limit=1)
    assert page.next_page_token is not None
    matches(changes.CommitChangesOutput, page.to_json())
    matches(changes.ChangeFeedOutput, main.changes(start="beginning").to_json())
    matches(changes.ChangeFeedOutput, main.changes(start="beginning", limit=1).to_json())
    baseline = main.baseline()
    assert list(baseline.chunks())
    matches(changes.BaselineRecordOutput, {"baseline": baseline.to_json()})


def list_failures(graph: Graph) -> Iterator[OmnigraphError]:
    main = graph.branch()
    first = graph.commit("main").id
    main.load([*PEOPLE, KNOWS], mode="append")
    review = graph.create_branch("review")
    review.mutate(AGE, params={"age": 9})
    main.mutate(AGE, params={"age": 8})
    known = [{"type": "Person", "data": {"name": "ada"}}]
    for work in (
        lambda: main.query("query q() { nonsense }"),
        lambda: main.load(known, mode="append"),
        lambda: main.load([{**KNOWS, "to": "zoe"}], mode="append"),
        lambda: main.merge("review"),
        lambda: main.mutate(AGE, params={"age": 1}, if_commit=first),
        lambda: graph.branch("gone"),
        lambda: graph.commit_changes(first),
    ):
        with pytest.raises(OmnigraphError) as failure:
            work()
        yield failure.value
    yield ChangeFeedGapError("01J", cursor="c")
    yield RangeNotSatisfiableError(3, 9, length=2)
    yield ResourceLimitError("rows", limit=1, actual=2)
    yield PolicyDeniedError("no", actor="ada", action="read")


def test_every_failure_is_a_document_of_the_model(graph: Graph) -> None:
    seen = set()
    for failure in list_failures(graph):
        document = describe_error(failure)
        matches(ErrorOutput, document)
        assert ("code" in document) != isinstance(
            failure, ChangeFeedGapError | PreconditionFailedError
        )
        seen.add(type(failure))
    assert seen >= {
        CompileError,
        KeyConflictError,
        WriteRefusedError,
        MergeConflictError,
        PreconditionFailedError,
        BranchNotFoundError,
        CommitHasNoParentError,
    }


@pytest.mark.parametrize(
    ("model", "body"),
    [
        (requests.QueryRequest, b'{"query": 7}'),
        (requests.QueryRequest, b'{"query": "q", "params": [1]}'),
        (requests.ChangeRequest, b"{}"),
        (requests.IngestRequest, b'{"data": "", "mode": "upsert"}'),
        (requests.IngestRequest, b'{"data": "", "dry_run": "yes"}'),
        (requests.ExportRequest, b'{"types": ["Person"]}'),
        (requests.ChangeBaselineRequest, b'{"kind": ["thing"]}'),
    ],
)
def test_a_body_of_another_shape_is_refused(model: type[WireModel], body: bytes) -> None:
    with pytest.raises(ValidationError):
        model.model_validate_json(body)


def test_bodies_of_older_and_newer_clients_are_understood() -> None:
    old = b'{"query_source": "query q() {}", "query_name": "q", "params": null}'
    read = requests.ChangeRequest.model_validate_json(old)
    assert (read.query, read.name, read.params) == ("query q() {}", "q", None)
    newer = b'{"data": "", "from": "main", "mode": "append", "later": 1}'
    load = requests.IngestRequest.model_validate_json(newer)
    assert (load.base, load.mode) == ("main", "append")
    assert requests.IngestRequest.model_validate_json(b'{"data": ""}').mode == "merge"
    created = requests.BranchCreateRequest.model_validate_json(b'{"name": "b", "from": null}')
    assert created.source is None
