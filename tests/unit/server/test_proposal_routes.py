"""Proposals over HTTP: the routes, and the same handles on a graph of a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from omnigraph.client.remote_graph import RemoteGraph, open_remote
from omnigraph.errors import (
    InvalidArgumentError,
    PolicyDeniedError,
    PreconditionFailedError,
    ProposalNotFoundError,
    ProposalRefusedError,
)
from omnigraph.wire.wire_proposals import ProposalListOutput, ProposalOutput
from served import RunningServer, serve_people

POLICY = """\
version: 1
groups: {agents: [bot], stewards: [ines], robots: [ci]}
protected_branches: [main]
rules:
  - id: draft
    allow: {actors: {group: agents}, actions: [read, branch_create, propose]}
  - id: write
    allow: {actors: {group: agents}, actions: [change], branch_scope: unprotected}
  - id: keep
    allow: {actors: {group: stewards}, actions: [read, review, branch_delete]}
  - id: check
    allow: {actors: {group: robots}, actions: [read, review]}
  - id: merge
    allow:
      actors: {group: stewards}
      actions: [branch_merge]
      target_branch_scope: protected
      requires: {approvals: 1, from: stewards, checks: [quality], threads_resolved: true}
"""
LINE = '{"type": "Person", "data": {"name": "eve", "age": 7}}'
Connect = Callable[[str], RemoteGraph]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningServer]:
    with serve_people(tmp_path, actors=("bot", "ines", "ci"), policy=POLICY) as found:
        yield found


@pytest.fixture
def connect(running: RunningServer) -> Iterator[Connect]:
    opened: list[RemoteGraph] = []

    def connect(actor: str) -> RemoteGraph:
        graph = open_remote(f"{running.url}/graphs/people", token=f"{actor}-secret")
        opened.append(graph)
        return graph

    yield connect
    for graph in opened:
        graph.close()


def test_a_proposal_lives_on_a_server_as_it_does_on_storage(connect: Connect) -> None:
    bot, ines, robot = connect("bot"), connect("ines"), connect("ci")
    draft = bot.branch().propose("Add eve", body="She asked.", key="k")
    ours = draft.load([{"name": "eve", "age": 7}], type="Person", mode="append")
    again = bot.branch().propose("Add eve", key="k")
    assert again.load([{"name": "eve"}], type="Person", mode="append").number == ours.number == 1
    assert [(each.number, each.key) for each in bot.proposals(status="open")] == [(1, "k")]
    assert [change.id for change in ours.diff()] == ["eve"]
    assert ours.plan().outcome == "fast_forward"
    for refused in (ours.approve, ours.merge):
        with pytest.raises(PolicyDeniedError):
            refused()
    theirs = ines.proposal(1)
    with pytest.raises(PolicyDeniedError, match="1 approval from 'stewards': there are 0"):
        theirs.merge()
    with pytest.raises(PolicyDeniedError, match="without 1 approval from 'stewards'"):
        ines.branch().merge(ours.read().source)
    asked = theirs.comment("how old?", about=("Person", "eve"), property="age", side="after")
    thread = asked.comments[-1].number
    ours.comment("7", replies_to=thread)
    assert theirs.comment(resolves=thread).comments[0].is_resolved
    theirs.request_changes("wait")
    with pytest.raises(PreconditionFailedError):
        theirs.approve(head="01J")
    theirs.approve("good", head=ours.read().head)
    assert robot.proposal(1).report_check("quality", "pass", link="https://ci/1").unmet == ()
    assert ours.edit(title="Add Eve").title == "Add Eve"
    assert ours.sync_branch().outcome == "already_up_to_date"
    merged = theirs.merge(delete_branch=True)
    assert (merged.outcome, merged.branch_deleted) == ("fast_forward", True)
    assert theirs.merge().id == merged.id
    info = ours.read()
    assert (info.status, info.merge_commit, info.ended_by) == ("merged", merged.id, "ines")
    assert info.counts == {"node:Person": (1, 0, 0)}
    assert [change.id for change in ours.diff()] == ["eve"]


def test_failures_are_the_errors_of_storage(connect: Connect) -> None:
    bot = connect("bot")
    for number in (7, 10**9):
        with pytest.raises(ProposalNotFoundError, match=f"there is no proposal {number}"):
            bot.proposal(number).read()
    draft = bot.branch().propose("x")
    ours = draft.mutate('query q() { insert Person { name: "eve" } }')
    with pytest.raises(ProposalRefusedError):
        bot.open_proposal(ours.read().source, title="again")
    with pytest.raises(InvalidArgumentError, match="no entity is named"):
        ours.comment("x", side="after")
    with pytest.raises(InvalidArgumentError, match="it is empty"):
        ours.comment(" ")
    assert ours.close("never").reason == "never"
    with pytest.raises(ProposalRefusedError, match="it is closed"):
        connect("ines").proposal(1).approve()


def test_one_request_forks_loads_and_opens(running: RunningServer) -> None:
    with running.connect("bot") as client:
        document = {"title": "Add eve", "data": LINE, "mode": "append", "key": "k"}
        opened = client.post("/graphs/people/proposals", json=document)
        assert opened.status_code == 200, opened.text
        ProposalOutput.model_validate_json(opened.content)
        again = client.post("/graphs/people/proposals", json=document)
        assert again.json()["number"] == opened.json()["number"] == 1
        listed = client.get("/graphs/people/proposals?status=open")
        ProposalListOutput.model_validate_json(listed.content)
        assert len(listed.json()["proposals"]) == 1
        both = client.post("/graphs/people/proposals", json={**document, "source": "x", "key": "l"})
        assert both.status_code == 400
        for path in ("proposals/x", "proposals/0123456789012345678"):
            assert client.get(f"/graphs/people/{path}").status_code == 400
        assert client.get("/graphs/people/proposals/9").status_code == 404
        wrong = client.post("/graphs/people/proposals/1/reviews", json={"verdict": "maybe"})
        assert wrong.status_code == 400
        denied = client.post("/graphs/people/proposals/1/reviews", json={"verdict": "approve"})
        assert denied.status_code == 403
    with running.connect() as client:
        assert client.get("/graphs/people/proposals").status_code == 401
