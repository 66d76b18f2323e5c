"""Who may see a proposal, take part in it and merge it, and what others learn of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.engine.proposals import Proposal
from omnigraph.engine.proposals.proposal_merge import ProposalMerger
from omnigraph.errors import InvalidArgumentError, PolicyDeniedError

POLICY = """\
version: 1
groups:
  agents: [bot]
  stewards: [ines]
  owners: [olga]
  callers: [cal]
  drafters: [dan]
  writers: [wim]
  strangers: [sam]
protected_branches: [main]
rules:
  - id: work
    allow: {actors: {group: agents}, actions: [read, change, branch_create, propose]}
  - id: keep
    allow: {actors: {group: stewards}, actions: [read, review, branch_delete]}
  - id: own
    allow: {actors: {group: owners}, actions: [branch_merge]}
  - id: call
    allow: {actors: {group: callers}, actions: [propose], target_branch_scope: protected}
  - id: draft
    allow: {actors: {group: drafters}, actions: [branch_create, propose]}
  - id: fill
    allow: {actors: {group: drafters}, actions: [change], branch_scope: unprotected}
  - id: write
    allow: {actors: {group: writers}, actions: [change, branch_create, branch_delete]}
  - id: look
    allow: {actors: {group: strangers}, actions: [read, change], branch_scope: protected}
"""


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[Graph]:
    """A graph without a policy, that has ada."""
    schema = "node Person { name: String @key }"
    with omnigraph.create(tmp_path / "g.omni", schema=schema, durable=False) as graph:
        graph.branch().load([{"name": "ada"}], type="Person", mode="append")
        yield graph


@pytest.fixture
def graph(plain: Graph, tmp_path: Path) -> Iterator[Graph]:
    """The same for an agent, under a policy."""
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY)
    with omnigraph.open(plain.uri, actor="bot", policy=path) as opened:
        yield opened


def propose(graph: Graph, name: str = "bob", *, key: str | None = None) -> Proposal:
    """A proposal that adds a person."""
    draft = graph.branch().propose(f"Add {name}", key=key)
    return draft.load([{"name": name}], type="Person", mode="append")


def denial(call: Callable[[], object]) -> str:
    with pytest.raises(PolicyDeniedError) as denied:
        call()
    return denied.value.message


def test_a_denial_shows_neither_branches_nor_commits_and_writes_nothing(graph: Graph) -> None:
    ours = propose(graph, "secret")
    stranger = graph.acting_as("sam").proposal(1)
    events = graph._session.resources.proposals.read(1).events
    denied: list[Callable[[], object]] = [
        stranger.read,
        stranger.diff,
        stranger.plan,
        stranger.sync_branch,
        stranger.approve,
        stranger.close,
        stranger.merge,
        lambda: stranger.merge(head="01J"),
        lambda: stranger.comment("hello"),
        lambda: stranger.report_check("quality", "pass"),
        lambda: stranger.edit(target="nowhere"),
    ]
    graph.acting_as("ines").delete_branch(ours.read().source)
    for call in denied:
        assert denial(call) == "policy denies 'propose' and 'review' of proposal 1 to actor 'sam'"
    assert graph._session.resources.proposals.read(1).events == events


def test_only_who_may_merge_puts_the_outcome_of_a_merge_that_stopped(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, olga = propose(graph), graph.acting_as("olga").proposal(1)
    with monkeypatch.context() as stopped:
        stopped.setattr(ProposalMerger, "_record", _stop)
        with pytest.raises(KeyboardInterrupt):
            olga.merge()
    assert ours.read().status == "merged"
    assert "'branch_merge'" in denial(ours.merge)
    assert "'review'" in denial(graph.acting_as("cal").proposal(1).close)
    assert ours.read().ended_by is None
    assert olga.merge().is_repeated
    assert ours.read().ended_by == "olga"


def _stop(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_draft_needs_the_right_to_propose_and_not_that_to_read(
    graph: Graph, plain: Graph
) -> None:
    caller = graph.acting_as("dan")
    assert propose(caller, key="k").number == propose(caller, key="k").number == 1
    writer = graph.acting_as("wim")
    assert "'propose'" in denial(lambda: propose(writer, "eve"))
    assert len(plain.branches()) == 2


def test_a_write_with_the_key_of_a_merge_is_refused(plain: Graph) -> None:
    ours = propose(plain)
    with pytest.raises(InvalidArgumentError, match="those of merges of proposals"):
        plain.branch().load([{"name": "x"}], type="Person", mode="append", key="proposal:1")
    with pytest.raises(InvalidArgumentError, match="those of merges of proposals"):
        plain.branch().merge(ours.read().source, key="proposal:1")
    assert ours.merge().outcome == "fast_forward"
