"""Proposals of a graph: opened, discussed, reviewed, checked, merged, and what the policy asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.engine.proposals import Proposal
from omnigraph.engine.proposals.proposal_texts import BODY_BYTES_MAX, TITLE_CHARACTERS_MAX
from omnigraph.errors import (
    HistoryGoneError,
    InvalidArgumentError,
    MergeConflictError,
    OmnigraphError,
    PolicyDeniedError,
    PreconditionFailedError,
    ProposalNotFoundError,
    ProposalRefusedError,
    WriteRefusedError,
)

SCHEMA = "node Person { name: String @key\n age: I32? }"
POLICY = """\
version: 1
groups: {agents: [bot], stewards: [ines, max], robots: [ci], owners: [olga], callers: [cal]}
protected_branches: [main]
rules:
  - id: work
    allow: {actors: {group: agents}, actions: [read, change, branch_create, propose]}
  - id: keep
    allow:
      actors: {group: stewards}
      actions: [read, change, branch_create, branch_delete, propose, review]
  - id: check
    allow: {actors: {group: robots}, actions: [read, review]}
  - id: own
    allow: {actors: {group: owners}, actions: [read, branch_merge, branch_delete]}
  - id: call
    allow: {actors: {group: callers}, actions: [propose], target_branch_scope: protected}
  - id: stewards-merge
    allow:
      actors: {group: stewards}
      actions: [branch_merge]
      target_branch_scope: protected
      requires: {approvals: 1, from: stewards, checks: [quality], threads_resolved: true}
"""


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[Graph]:
    """A graph without a policy, that has ada."""
    with omnigraph.create(tmp_path / "g.omni", schema=SCHEMA, durable=False) as graph:
        graph.branch().load([{"name": "ada", "age": 1}], type="Person", mode="append")
        yield graph


@pytest.fixture
def graph(plain: Graph, tmp_path: Path) -> Iterator[Graph]:
    """The same for an agent, under a policy."""
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY)
    with omnigraph.open(plain.uri, actor="bot", policy=path) as opened:
        yield opened


def propose(graph: Graph, name: str = "bob", **options: object) -> Proposal:
    """A proposal that adds a person."""
    draft = graph.branch().propose(f"Add {name}", **options)  # type: ignore[arg-type]
    return draft.load([{"name": name}], type="Person", mode="append")


def write(graph: Graph, proposal: Proposal, name: str, age: int = 5) -> None:
    """Another commit on the branch of a proposal."""
    branch = graph.branch(proposal.read().source)
    branch.load([{"name": name, "age": age}], type="Person", mode="merge")


def denial(call: Callable[[], object]) -> str:
    with pytest.raises(PolicyDeniedError) as denied:
        call()
    return denied.value.message


def test_an_agent_proposes_and_a_steward_merges_what_was_approved_and_checked(graph: Graph) -> None:
    ours = propose(graph)
    ines = graph.acting_as("ines").proposal(ours.number)
    assert "'review'" in denial(ours.approve)
    assert "'branch_merge'" in denial(ours.merge)
    said = denial(ines.merge)
    assert "1 approval from 'stewards': there are 0" in said
    assert "check 'quality', which was never reported" in said
    ines.approve("good", head=ours.read().head)
    robot = graph.acting_as("ci").proposal(ours.number)
    robot.report_check("quality", "fail", link="https://ci/1")
    assert "check 'quality' to pass: it failed" in denial(ines.merge)
    robot.report_check("quality", "pass")
    result = ines.merge(delete_branch=True)
    assert (result.outcome, result.branch_deleted) == ("fast_forward", True)
    assert result.commit is not None
    assert result.commit.message == "Merge proposal 1: Add bob"
    info = ours.read()
    assert (info.status, info.merge_commit, info.ended_by) == ("merged", result.id, "ines")
    assert info.counts == {"node:Person": (1, 0, 0)}
    assert [(each.actor, each.is_stale) for each in info.reviews] == [("ines", False)]
    again = ines.merge()
    assert (again.id, again.is_repeated, again.summary) == (result.id, True, result.summary)
    assert [change.id for change in ours.diff()] == ["bob"]


def test_a_later_commit_makes_reviews_and_checks_stale(graph: Graph) -> None:
    ours = propose(graph)
    ines, robot = (graph.acting_as(name).proposal(1) for name in ("ines", "ci"))
    ines.approve()
    robot.report_check("quality", "pass")
    assert ours.read().unmet == ()
    write(graph, ours, "cyd")
    info = ours.read()
    assert info.approvals == ()
    said = denial(ines.merge)
    assert "there are 0, 1 of an earlier commit" in said
    assert "the last report is of an earlier one" in said
    ines.approve()
    robot.report_check("quality", "pass")
    assert ines.merge().outcome == "fast_forward"


def test_another_target_makes_reviews_stale(graph: Graph) -> None:
    ours, ines = propose(graph), graph.acting_as("ines")
    ines.create_branch("next")
    ours.edit(target="next")
    ines.proposal(1).approve()
    assert ours.read().approvals == ("ines",)
    info = ours.edit(target="main")
    assert (info.approvals, [each.is_stale for each in info.reviews]) == ((), [True])
    graph.acting_as("ci").proposal(1).report_check("quality", "pass")
    said = denial(ines.proposal(1).merge)
    assert "1 approval from 'stewards': there are 0, 1 for another target" in said
    ines.proposal(1).approve()
    assert ines.proposal(1).merge().outcome == "fast_forward"


def test_maintenance_of_the_branch_leaves_an_approval_as_it_is(plain: Graph) -> None:
    ours = propose(plain)
    before = ours.approve()
    plain.branch(before.source).ensure_indices()
    assert ours.read().head == before.head
    assert ours.read().reviews == before.reviews


def test_what_comes_after_the_approval_is_not_merged(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = propose(graph)
    ines = graph.acting_as("ines").proposal(1)
    ines.approve()
    graph.acting_as("ci").proposal(1).report_check("quality", "pass")
    log = type(graph._session.resources.proposals)
    add_event = log.add_event

    def slip_in(self: object, number: int, decide: object, *, actor: str | None) -> object:
        done = add_event(self, number, decide, actor=actor)  # type: ignore[arg-type]
        monkeypatch.setattr(log, "add_event", add_event)
        write(graph, ours, "eve")
        return done

    monkeypatch.setattr(log, "add_event", slip_in)
    ines.merge()
    assert [each["p.name"] for each in _names(graph)] == ["ada", "bob"]


def _names(graph: Graph) -> list[dict[str, object]]:
    text = "query q() { match { $p: Person } return { $p.name } order { $p.name } }"
    return graph.branch().query(text).to_pylist()


def test_a_direct_merge_is_refused_whatever_names_the_commit(graph: Graph) -> None:
    ours = propose(graph)
    graph.acting_as("ines").proposal(1).approve()
    graph.acting_as("ci").proposal(1).report_check("quality", "pass")
    ines = graph.acting_as("ines")
    source = ines.branch(ours.read().source)
    ines.tag("v1", source)
    for state in (source.name, "v1", source.snapshot(), source.head.id):
        said = denial(lambda state=state: ines.branch().merge(state))  # type: ignore[misc]
        assert "without 1 approval from 'stewards', check 'quality', all threads resolved" in said
        assert "(rule 'stewards-merge')" in said
    assert ines.proposal(1).merge().outcome == "fast_forward"


def test_owners_with_a_rule_without_requirements_merge_without_review(graph: Graph) -> None:
    propose(graph)
    assert graph.acting_as("olga").proposal(1).merge().outcome == "fast_forward"


def test_an_author_does_not_approve_and_an_actor_counts_once(graph: Graph) -> None:
    ines, maxim = graph.acting_as("ines"), graph.acting_as("max")
    ours = propose(ines)
    ours.approve()
    graph.acting_as("ci").proposal(1).report_check("quality", "pass")
    assert "there are 0" in denial(ours.merge)
    theirs = maxim.proposal(1)
    theirs.request_changes("age is missing")
    assert "another review of 'max', who requests changes" in denial(ours.merge)
    write(ines, ours, "bob", 7)
    graph.acting_as("ci").proposal(1).report_check("quality", "pass")
    assert "another review of 'max'" in denial(ours.merge)
    theirs.approve()
    assert ours.merge().outcome == "fast_forward"


def test_threads_about_entities_have_to_be_resolved(graph: Graph) -> None:
    ours = propose(graph)
    ines = graph.acting_as("ines").proposal(1)
    ines.approve()
    graph.acting_as("ci").proposal(1).report_check("quality", "pass")
    ines.comment("a remark")
    asked = ines.comment("how old?", about=("Person", "bob"), property="age", side="after")
    number = asked.comments[-1].number
    assert f"threads to be resolved: {number}" in denial(ines.merge)
    answered = ours.comment("unknown", replies_to=number)
    assert [each.thread for each in answered.comments] == [
        answered.comments[0].number,
        number,
        number,
    ]
    done = ines.comment(resolves=answered.comments[-1].number)
    assert all(each.is_resolved for each in done.comments)
    assert done.unmet == ()
    with pytest.raises(ProposalRefusedError, match="is not about an entity"):
        ines.comment(resolves=done.comments[0].number)
    with pytest.raises(ProposalRefusedError, match="it has no comment 99"):
        ines.comment("what?", replies_to=99)


def test_sync_brings_the_target_into_the_branch_and_needs_only_change_there(graph: Graph) -> None:
    ours = propose(graph)
    graph.acting_as("ines").branch().load([{"name": "dan"}], type="Person", mode="append")
    before = ours.read().head
    assert ours.sync_branch().outcome == "merged"
    info = ours.read()
    assert info.head != before
    assert graph.branch(info.source).count("Person") == 3
    assert ours.sync_branch().outcome == "already_up_to_date"


def test_up_to_date_means_that_the_branch_has_the_newest_commit_of_the_target(
    plain: Graph, tmp_path: Path
) -> None:
    path = tmp_path / "strict.yaml"
    path.write_text(
        POLICY.replace("approvals: 1, from: stewards, checks: [quality], ", "up_to_date: true, ")
    )
    with omnigraph.open(plain.uri, actor="ines", policy=path) as graph:
        ours = propose(graph)
        assert ours.read().unmet == ()
        graph.branch().load([{"name": "dan"}], type="Person", mode="append")
        assert "the newest commit of 'main' in" in denial(ours.merge)
        ours.sync_branch()
        # Maintenance of the target is nothing to catch up with.
        plain.branch().ensure_indices()
        assert ours.merge().commit is not None


def test_two_merges_of_different_commits_make_one(
    plain: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = propose(plain)
    plain.branch().load([{"name": "dan"}], type="Person", mode="append")
    log = type(plain._session.resources.proposals)
    add_event = log.add_event

    def overtake(self: object, number: int, decide: object, *, actor: str | None) -> object:
        done = add_event(self, number, decide, actor=actor)  # type: ignore[arg-type]
        monkeypatch.setattr(log, "add_event", add_event)
        write(plain, ours, "eve")
        other.append(plain.proposal(1).merge())
        return done

    other: list[object] = []
    monkeypatch.setattr(log, "add_event", overtake)
    result = ours.merge()
    assert [result] == other
    assert result.is_repeated
    assert [each["p.name"] for each in _names(plain)] == ["ada", "bob", "dan", "eve"]
    assert ours.read().head == plain.branch(ours.read().source).head.id
    assert [each.key for each in plain.branch().commits()].count("proposal:1") == 1


def test_a_proposal_whose_merge_has_begun_keeps_its_target(plain: Graph) -> None:
    ours = propose(plain)
    write(plain, ours, "bob", 7)
    plain.branch().load([{"name": "bob", "age": 9}], type="Person", mode="append")
    plain.create_branch("next")
    with pytest.raises(MergeConflictError):
        ours.merge()
    with pytest.raises(ProposalRefusedError, match="a merge into 'main' has begun"):
        ours.edit(target="next")


def test_conflicts_are_planned_and_a_merge_with_some_changes_nothing(plain: Graph) -> None:
    draft = plain.branch().propose("Older")
    ours = draft.load([{"name": "ada", "age": 2}], type="Person", mode="merge")
    plain.branch().load([{"name": "ada", "age": 3}], type="Person", mode="merge")
    plan = ours.plan()
    assert [each.entity_id for each in plan.conflicts] == ["ada"]
    with pytest.raises(MergeConflictError):
        ours.merge()
    assert ours.read().status == "open"
    with pytest.raises(MergeConflictError):
        ours.sync_branch()
    plain.branch(ours.read().source).load([{"name": "ada", "age": 3}], type="Person", mode="merge")
    assert ours.merge().outcome == "merged"


def test_a_branch_has_one_open_proposal_for_a_target(plain: Graph) -> None:
    ours = propose(plain)
    source = ours.read().source
    with pytest.raises(ProposalRefusedError, match="has proposal 1 for 'main' already"):
        plain.open_proposal(source, title="again")
    ours.close("not needed")
    assert ours.close().reason == "not needed"
    assert plain.open_proposal(source, title="again").number == 2
    assert [each.number for each in plain.proposals()] == [2, 1]
    assert [each.number for each in plain.proposals(status="closed")] == [1]
    for refused in (ours.approve, ours.merge, lambda: ours.edit(title="x")):
        with pytest.raises(ProposalRefusedError, match="it is closed"):
            refused()
    assert ours.comment("for the record").status == "closed"


def test_a_branch_without_changes_is_not_proposed(plain: Graph) -> None:
    plain.create_branch("same")
    with pytest.raises(ProposalRefusedError, match="has nothing that 'main' has not"):
        plain.open_proposal("same", title="nothing")


def test_a_request_repeated_with_its_key_finds_what_the_first_one_made(plain: Graph) -> None:
    first = propose(plain, key="k1")
    assert propose(plain, key="k1").number == first.number == 1
    source = first.read().source
    assert plain.open_proposal(source, title="other", key="k1").number == 1
    first.merge(delete_branch=True)
    assert propose(plain, key="k1").number == 1
    assert plain.branches() == ["main"]
    # A crash left the branch and no proposal.
    plain.create_branch("proposal/" + _digest("k2"))
    second = propose(plain, "cyd", key="k2")
    assert second.read().source == "proposal/" + _digest("k2")


def _digest(key: str) -> str:
    from omnigraph.engine.proposals.proposal_drafts import build_branch_name  # noqa: PLC0415

    return build_branch_name("any", key).removeprefix("proposal/")


def test_a_draft_that_is_refused_leaves_no_branch(plain: Graph) -> None:
    with pytest.raises(WriteRefusedError):
        propose(plain, "ada")
    assert plain.branches() == ["main"]
    done = plain.branch().propose("By a query").mutate('query q() { insert Person { name: "q" } }')
    assert done.read().source.startswith("proposal/by-a-query-")


def test_a_proposal_gets_another_title_body_and_target(graph: Graph) -> None:
    ours = propose(graph)
    graph.acting_as("ines").create_branch("next")
    info = ours.edit(title="Add Bob", body="He asked.", target="next")
    assert (info.title, info.body, info.target) == ("Add Bob", "He asked.", "next")
    events = graph._session.resources.proposals.read(1).events
    ours.edit(title="Add Bob", target="next")
    assert graph._session.resources.proposals.read(1).events == events
    assert "'review'" in denial(lambda: graph.acting_as("cal").proposal(1).edit(title="x"))
    assert ours.read().unmet == ()
    assert "'branch_merge'" in denial(graph.acting_as("ines").proposal(1).merge)


def test_a_branch_that_is_gone_or_another_one_is_not_merged(plain: Graph) -> None:
    ours = propose(plain)
    source = ours.read().source
    plain.delete_branch(source)
    assert ours.read().head is None
    with pytest.raises(HistoryGoneError):
        ours.diff()
    branch = plain.create_branch(source)
    branch.load([{"name": "eve"}], type="Person", mode="append")
    for refused in (ours.merge, ours.approve, ours.sync_branch, ours.plan):
        with pytest.raises(ProposalRefusedError, match="was deleted"):
            refused()
    assert ours.close().status == "closed"


def test_a_caller_may_expect_the_commit_that_is_reviewed_or_merged(plain: Graph) -> None:
    ours = propose(plain)
    head = ours.read().head
    write(plain, ours, "cyd")
    for refused in (ours.approve, ours.merge):
        with pytest.raises(PreconditionFailedError):
            refused(head=head)
    assert ours.approve(head=ours.read().head).approvals == (None,)


def test_who_may_only_propose_sees_the_proposals_that_he_may_take_part_in(graph: Graph) -> None:
    caller = graph.acting_as("cal")
    assert "'read'" in denial(caller.proposals)
    propose(graph)
    assert [each.number for each in caller.proposals()] == [1]
    assert caller.proposal(1).comment("hello").comments[0].actor == "cal"
    assert "'read'" in denial(caller.proposal(1).diff)
    graph.acting_as("ines").create_branch("next")
    graph.proposal(1).edit(target="next")
    assert "'read'" in denial(caller.proposals)
    assert "'propose'" in denial(caller.proposal(1).read)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda it: it.comment(), "text: it is empty"),
        (lambda it: it.comment(" "), "text: it is empty"),
        (lambda it: it.comment("x" * (BODY_BYTES_MAX + 1)), "the limit is 65536"),
        (lambda it: it.comment("x", side="after"), "no entity is named"),
        (lambda it: it.comment("x", about=("Person", "a"), side="left"), "'left' is not one of"),
        (lambda it: it.comment("x", about=("", "a")), "about: it is empty"),
        (lambda it: it.comment("x", about=("P", "a" * 70_000)), "about: it has 70000 bytes"),
        (lambda it: it.request_changes(""), "text: it is empty"),
        (lambda it: it.report_check("q", "maybe"), "'maybe' is not one of 'pass', 'fail'"),
        (lambda it: it.report_check("", "pass"), "name: it is empty"),
        (lambda it: it.report_check("q", "pass", link="a\nb"), "cannot be shown in a line"),
        (lambda it: it.edit(), "nothing is changed"),
        (lambda it: it.edit(title="x" * (TITLE_CHARACTERS_MAX + 1)), "the limit is 200"),
        (lambda it: it.graph.proposals(status="new"), "'new' is not one of"),
        (lambda it: it.graph.proposal(-1), "-1 is negative"),
    ],
)
def test_wrong_arguments_are_refused(
    call: Callable[[Proposal], object], words: str, plain: Graph
) -> None:
    proposal = propose(plain)
    with pytest.raises(InvalidArgumentError, match=words):
        call(proposal)


@pytest.mark.parametrize("number", [0, 2, 10**9])
def test_a_number_without_a_proposal_is_reported(plain: Graph, number: int) -> None:
    propose(plain)
    with pytest.raises(ProposalNotFoundError, match=f"there is no proposal {number}"):
        plain.proposal(number).read()


def test_clean_up_and_check_know_proposals(plain: Graph) -> None:
    ours = propose(plain)
    ours.approve()
    ours.merge(delete_branch=True)
    plain.cleanup(keep=1, dry_run=False, grace=0)
    assert ours.read().counts == {"node:Person": (1, 0, 0)}
    with pytest.raises(HistoryGoneError):
        ours.diff()
    assert ours.merge().is_repeated
    assert not plain.check().problems
    folder = Path(plain.uri) / "__proposals" / "00000001"
    (folder / "000002.json").write_bytes(b"{}")
    with omnigraph.open(plain.uri) as again:
        found = again.check().problems
        assert [each.kind for each in found] == ["proposal"]
        with pytest.raises(OmnigraphError, match="neither a digest nor a format"):
            again.proposal(1).read()
