"""Walks that write: a mutation from the editor, and a merge whose conflict is resolved."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from browser.test_working import write_query

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]


def test_the_editor_completes_from_the_schema_and_writes(page: Page) -> None:
    page.goto("/ui/graphs/team/query")
    write_query(page, "query q() { match { $p: Person } return { $p.")
    page.keyboard.press("Control+Space")
    options = page.locator(".cm-tooltip-autocomplete")
    expect(options).to_contain_text("handle")
    expect(options).to_contain_text("title")
    page.keyboard.press("Escape")
    write_query(page, 'query q() { update Person set { title: "Sage" } where handle = "p005" }')
    page.get_by_role("button", name="Write").click()
    expect(page.get_by_text("1 node and 0 edges written to main")).to_be_visible()


def test_a_conflict_is_resolved_and_the_branch_is_merged(page: Page) -> None:
    page.goto("/ui/graphs/team/branches?branch=review")
    page.get_by_label("Name of the new branch").fill("second")
    page.get_by_role("button", name="Create from review").click()
    page.get_by_role("listitem").filter(has_text="second").get_by_role("link", name="Merge").click()
    conflict = page.get_by_role("region", name="Conflict: Person p001")
    expect(conflict).to_contain_text("Person 'p001' was changed on both sides: title")
    expect(page.get_by_role("button", name="1 decision left")).to_be_disabled()
    expect(conflict.get_by_text("Head")).to_be_visible()
    expect(conflict.get_by_text("Lead")).to_be_visible()
    conflict.get_by_label("Value of title").fill("Head and lead")
    page.get_by_label("Message").fill("both are right")
    page.get_by_role("checkbox").check()
    page.get_by_role("button", name="Merge into main").click()
    expect(page.get_by_text("second was merged into main")).to_be_visible()
    page.get_by_role("link", name="Show the commit").click()
    expect(page.get_by_role("heading", name="both are right")).to_be_visible()
    expect(page.get_by_role("region", name="Changes")).to_contain_text("Head and lead")
    page.goto("/ui/graphs/team/branches")
    expect(page.get_by_role("link", name="second")).to_have_count(0)
