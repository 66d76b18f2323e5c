"""Proposals by tools: agents open and discuss them, and approve or merge where that is offered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from mcp.shared.exceptions import MCPError

from omnigraph import Graph
from omnigraph.engine.graph import open_graph
from omnigraph.mcp.exposure import Exposure
from omnigraph.mcp.tool_scope import ToolScope
from omnigraph.policy.decisions import load_policy
from unit.mcp.agent_world import build_graph, build_scope, call, list_names, try_call

RULES = """
version: 1
groups: {agents: [bot], stewards: [ines], callers: [cal]}
protected_branches: [main]
rules:
  - id: draft
    allow: {actors: {group: agents}, actions: [read, branch_create, propose]}
  - id: write
    allow: {actors: {group: agents}, actions: [change], branch_scope: unprotected}
  - id: keep
    allow: {actors: {group: stewards}, actions: [read, review]}
  - id: call
    allow:
      {actors: {group: callers}, actions: [invoke_query], queries: [find_person], carries: [read]}
  - id: callers-draft
    allow: {actors: {group: callers}, actions: [branch_create, propose]}
  - id: callers-write
    allow: {actors: {group: callers}, actions: [change], branch_scope: unprotected}
  - id: merge
    allow:
      actors: {group: stewards}
      actions: [branch_merge]
      target_branch_scope: protected
      requires: {approvals: 1, from: stewards}
"""
LINE = '{"type": "Person", "data": {"name": "eve", "age": 7}}'
REVIEWING = {"proposal_approve", "proposal_request_changes", "proposal_merge"}
PROPOSING = {
    "proposal_comment",
    "proposal_get",
    "proposal_list",
    "proposal_open",
    "proposal_sync",
}


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[Graph]:
    path = tmp_path / "rules.yaml"
    path.write_text(RULES)
    with (
        build_graph(tmp_path) as plain,
        open_graph(plain.uri, actor="bot", durable=False, policy=load_policy(path)) as opened,
    ):
        yield opened


def scope_of(graph: Graph, actor: str, exposure: Exposure | None = None) -> ToolScope:
    found = build_scope(graph.acting_as(actor), exposure=exposure or Exposure())
    return replace(found, unguarded=None)


def test_an_agent_proposes_and_a_steward_approves_and_merges(graph: Graph) -> None:
    agent = scope_of(graph, "bot", Exposure(has_review_tools=True))
    assert {*list_names(agent)} >= PROPOSING
    assert not REVIEWING & {*list_names(agent)}
    opened = call(agent, "proposal_open", title="Add eve", data=LINE, mode="append", key="k")
    assert call(agent, "proposal_open", title="Add eve", data=LINE, key="k")["number"] == 1
    number = opened["number"]
    found = call(agent, "proposal_get", number=number)
    assert [each["id"] for each in found["diff"]] == ["eve"]
    assert (found["diff_is_whole"], found["summary"][0]["inserted"]) == (True, 1)
    assert found["unmet"] == [
        {"rule": "merge", "missing": ["1 approval from 'stewards': there are 0"]}
    ]
    for name in sorted(REVIEWING):
        with pytest.raises(MCPError, match="unknown tool"):
            call(agent, name, number=number)
    steward = scope_of(graph, "ines", Exposure(has_review_tools=True))
    assert {*list_names(steward)} >= REVIEWING
    denied, is_error = try_call(steward, "proposal_merge", number=number)
    assert (is_error, denied["reason"]) == (True, "policy_denied")
    about = {"type_name": "Person", "entity_id": "eve"}
    asked = call(steward, "proposal_comment", number=number, text="how old?", about=about)
    thread = asked["comments"][0]["number"]
    call(agent, "proposal_comment", number=number, text="7", replies_to=thread)
    call(agent, "proposal_sync", number=number)
    call(steward, "proposal_request_changes", number=number, text="no")
    call(steward, "proposal_approve", number=number, head=found["head_commit_id"])
    merged = call(steward, "proposal_merge", number=number)
    assert merged["outcome"] == "fast_forward"
    assert call(agent, "proposal_list")["proposals"] == []
    listed = call(agent, "proposal_list", status="all")["proposals"]
    assert [each["status"] for each in listed] == ["merged"]


def test_reviews_are_not_offered_unless_they_are_asked_for(graph: Graph) -> None:
    steward = scope_of(graph, "ines")
    assert not REVIEWING & {*list_names(steward)}
    reader = scope_of(graph, "bot", Exposure(is_read_only=True, has_review_tools=True))
    assert PROPOSING & {*list_names(reader)} == {"proposal_get", "proposal_list"}


def test_an_agent_of_curated_queries_proposes_and_is_denied_queries_of_its_own(
    graph: Graph,
) -> None:
    caller = scope_of(graph, "cal", Exposure(has_adhoc=True))
    assert call(caller, "find_person", name="p001")["rows"]
    with pytest.raises(MCPError, match="unknown tool"):
        call(caller, "query", query="query q() { match { $p: Person } return { $p } }")
    opened = call(caller, "proposal_open", title="Add eve", data=LINE)
    found = call(caller, "proposal_get", number=opened["number"])
    assert "'read'" in found["diff_error"]
    assert call(caller, "proposal_list")["proposals"][0]["author_id"] == "cal"


def test_a_diff_is_shown_as_far_as_an_answer_goes(graph: Graph) -> None:
    lines = "\n".join(LINE.replace("eve", f"n{number}") for number in range(300))
    agent = scope_of(graph, "bot")
    small = replace(agent, exposure=replace(agent.exposure, answer_bytes_max=16_384))
    number = call(agent, "proposal_open", title="Many", data=lines)["number"]
    found = call(small, "proposal_get", number=number)
    assert not found["diff_is_whole"]
    assert 10 < len(found["diff"]) < 300
    assert found["summary"][0]["inserted"] == 300


def test_numbers_of_comments_are_whole_and_positive(graph: Graph) -> None:
    scope = scope_of(graph, "bot")
    call(scope, "proposal_open", title="Add eve", data=LINE, mode="append")
    found = call(scope, "proposal_comment", number=1.0, text="hello")
    [first] = found["comments"]
    answer = {"number": 1, "text": "yes"}
    replied = call(scope, "proposal_comment", **answer, replies_to=float(first["number"]))
    assert [each["thread"] for each in replied["comments"]] == [first["number"]] * 2
    for wrong in (-1, 0, 1.5, float("inf")):
        document, is_error = try_call(scope, "proposal_comment", **answer, replies_to=wrong)
        assert (is_error, document["reason"]) == (True, "invalid_argument")
