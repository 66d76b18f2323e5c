"""A proposal from its opening to its merge, by an agent who may not merge and by a steward."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from browser.conftest import open_visitor, sign_in
from browser.test_accessibility import find_faults
from browser.test_working import write_query
from served import RunningServer

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]
PROPOSAL = "/ui/graphs/team/proposals/1"


@pytest.fixture
def agent(browser: Browser, served: RunningServer) -> Iterator[Page]:
    with open_visitor(browser, served) as page:
        yield sign_in(page, "bot")


@pytest.fixture
def steward(browser: Browser, served: RunningServer) -> Iterator[Page]:
    with open_visitor(browser, served) as page:
        yield sign_in(page, "ines")


def test_a_proposal_is_opened_discussed_reviewed_and_merged(agent: Page, steward: Page) -> None:
    open_proposal(agent)
    show_conflict(agent)
    end_conflict(agent)
    refuse_agent(agent)
    discuss(agent, steward)
    review(agent, steward)
    merge(steward)


def open_proposal(agent: Page) -> None:
    agent.goto("/ui/graphs/team/branches")
    branch = agent.get_by_role("listitem").filter(has_text="review")
    branch.get_by_role("link", name="Propose").click()
    button = agent.get_by_role("button", name="Open the proposal")
    expect(button).to_be_disabled()
    agent.get_by_label("Title").fill("Zoe joins the team")
    agent.get_by_label("What it changes, and why").fill("She starts in May.\n<b>Welcome</b>!")
    button.click()
    expect(agent.get_by_role("heading", name="#1 Zoe joins the team")).to_be_visible()
    assert agent.url.endswith(PROPOSAL)
    # What is stored is text, whatever it looks like.
    expect(agent.get_by_text("<b>Welcome</b>!")).to_be_visible()


def show_conflict(agent: Page) -> None:
    conflict = agent.get_by_role("region", name="Conflict: Person p001", exact=True)
    expect(conflict).to_contain_text("Head")
    expect(conflict).to_contain_text("Lead")
    expect(agent.get_by_role("button", name="Merge into main")).to_have_count(0)
    assert find_faults(agent) == []
    agent.get_by_role("link", name="decide them while main is merged into it").click()
    expect(agent.get_by_role("heading", name="Merge")).to_be_visible()


def end_conflict(agent: Page) -> None:
    run_mutation(agent, 'update Person set { title: "Head" } where handle = "p001"')
    agent.goto("/ui/graphs/team/proposals")
    agent.get_by_role("link", name="Zoe joins the team").click()
    expect(agent.get_by_text("no conflicts")).to_be_visible()


def run_mutation(agent: Page, statement: str, *, on: str = "review") -> None:
    agent.goto(f"/ui/graphs/team/query?branch={on}")
    write_query(agent, f"query q() {{ {statement} }}")
    agent.get_by_role("button", name="Write").click()
    expect(agent.get_by_text(f"1 node and 0 edges written to {on}")).to_be_visible()


def refuse_agent(agent: Page) -> None:
    agent.get_by_role("button", name="Approve").click()
    expect(agent.get_by_role("alert")).to_contain_text("policy denies 'review'")
    agent.get_by_role("button", name="Merge into main").click()
    expect(agent.get_by_role("alert")).to_contain_text("policy denies 'branch_merge'")


def discuss(agent: Page, steward: Page) -> None:
    steward.goto("/ui/graphs/team/proposals")
    steward.get_by_role("link", name="Zoe joins the team").click()
    missing = steward.get_by_role("region", name="Missing requirements")
    expect(missing).to_contain_text("1 approval from 'stewards': there are 0")
    steward.get_by_role("tab", name="Changes").click()
    row = steward.get_by_role("row").filter(has_text="Zoe Lang")
    row.get_by_role("button", name="level:").click()
    expect(steward.get_by_label("About")).to_have_value("level")
    expect(steward.get_by_label("Text of the thread")).to_be_focused()
    steward.keyboard.type("Is she that new?")
    steward.keyboard.press("Control+Enter")
    thread = steward.get_by_role("region", name="Thread about Person zoe.level")
    expect(thread).to_contain_text("Is she that new?")
    assert find_faults(steward) == []
    steward.get_by_role("tab", name="Conversation").click()
    steward.get_by_label("Text of the review").fill("Check the level of Zoe")
    steward.get_by_role("button", name="Request changes").click()
    reviews = steward.get_by_role("region", name="Reviews")
    expect(reviews).to_contain_text("requests changes")
    expect(missing).to_contain_text("threads to be resolved: 2")

    agent.goto(PROPOSAL)
    # A thread leads to its entity in the changes, by an address of its own.
    agent.get_by_role("link", name="Person zoe.level").click()
    expect(agent.get_by_role("region", name="Thread about Person zoe.level")).to_be_visible()
    run_mutation(agent, 'update Person set { level: "senior" } where handle = "zoe"')
    agent.goto(f"{PROPOSAL}?tab=changes&type=Person&id=zoe")
    thread = agent.get_by_role("region", name="Thread about Person zoe.level")
    thread.get_by_role("button", name="Reply").click()
    thread.get_by_label("Text of the reply").fill("She is not")
    thread.get_by_role("button", name="Reply").click()
    expect(thread).to_contain_text("She is not")


def review(agent: Page, steward: Page) -> None:
    steward.get_by_role("button", name="Refresh").click()
    reviews = steward.get_by_role("region", name="Reviews")
    expect(reviews).to_contain_text("stale")
    thread = steward.get_by_role("region", name="Thread about Person zoe.level")
    expect(thread).to_contain_text("She is not")
    thread.get_by_role("button", name="Resolve").click()
    expect(thread.get_by_text("resolved", exact=True)).to_be_visible()
    steward.get_by_role("button", name="Approve").click()
    expect(reviews).to_contain_text("approves")
    expect(steward.get_by_role("region", name="Missing requirements")).to_have_count(0)

    # A commit after the approval: what the steward still sees is refused, and then stale.
    run_mutation(agent, 'update Person set { age: 30 } where handle = "zoe"')
    steward.get_by_role("button", name="Merge into main").click()
    expect(steward.get_by_role("alert")).to_be_visible()
    steward.get_by_role("button", name="Refresh").click()
    expect(reviews).to_contain_text("stale")
    steward.get_by_role("button", name="Approve").click()
    expect(reviews).not_to_contain_text("stale")


def merge(steward: Page) -> None:
    assert find_faults(steward) == []
    steward.get_by_role("checkbox").check()
    steward.get_by_role("button", name="Merge into main").click()
    expect(steward.get_by_text("Merged into main")).to_be_visible()
    expect(steward.get_by_role("region", name="What was merged")).to_contain_text("Person")
    steward.get_by_role("link", name="All proposals").click()
    expect(steward.get_by_text("No proposal is open.")).to_be_visible()
    steward.get_by_role("link", name="Merged").click()
    expect(steward.get_by_role("region", name="Merged proposals")).to_contain_text("by bot")
    steward.get_by_role("link", name="Zoe joins the team").click()
    steward.get_by_role("link", name="Show the commit").click()
    expect(steward.get_by_role("region", name="Changes")).to_contain_text("Zoe Lang")
    steward.goto("/ui/graphs/team/branches")
    expect(steward.get_by_role("listitem").filter(has_text="review")).to_have_count(0)


def test_a_proposal_is_edited_and_closed_by_its_author(agent: Page) -> None:
    agent.goto("/ui/graphs/team/branches")
    agent.get_by_label("Name of the new branch").fill("idea")
    agent.get_by_role("button", name="Create from main").click()
    idea = agent.get_by_role("listitem").filter(has_text="idea")
    idea.get_by_role("link", name="Propose").click()
    agent.get_by_label("Title").fill("An idea")
    agent.get_by_role("button", name="Open the proposal").click()
    expect(agent.get_by_role("alert")).to_contain_text("has nothing that 'main' has not")
    run_mutation(agent, 'update Person set { title: "Chief" } where handle = "p002"', on="idea")
    agent.goto("/ui/graphs/team/proposals/new?source=idea")
    agent.get_by_label("Title").fill("An idea")
    agent.get_by_role("button", name="Open the proposal").click()
    agent.get_by_role("button", name="Edit").click()
    agent.get_by_label("Title").fill("A better idea")
    agent.get_by_role("button", name="Save").click()
    expect(agent.get_by_role("heading", name="A better idea")).to_be_visible()
    agent.get_by_label("Text of the comment").fill("On second thought, no.")
    agent.get_by_role("button", name="Comment").click()
    expect(agent.get_by_text("On second thought, no.")).to_be_visible()
    agent.get_by_role("button", name="Merge main into idea").click()
    expect(agent.get_by_text("The branch has everything of main.")).to_be_visible()
    agent.get_by_role("button", name="Close", exact=True).click()
    agent.get_by_label("Reason").fill("not now")
    agent.get_by_role("button", name="Close without merging").click()
    expect(agent.get_by_text("not now")).to_be_visible()
    expect(agent.get_by_role("button", name="Approve")).to_have_count(0)
    agent.goto("/ui/graphs/team/proposals/99")
    expect(agent.get_by_role("alert")).to_contain_text("99")
