"""Walks over the pages that work with a graph: queries, exploration, diffs, merges, upkeep."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]
MISTAKE = (
    "query q($least: I64) { match { $p: Person $p.agee >= $least } return { $p } order { $p } }"
)
MENDED = MISTAKE.replace("agee", "age")


def write_query(page: Page, text: str) -> None:
    """Replace what is in the editor, as a person does."""
    page.get_by_role("textbox", name="Query").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


def read_drawing(page: Page) -> Locator:
    return page.get_by_role("figure")


def test_a_query_with_a_mistake_is_mended_and_run(page: Page) -> None:
    page.goto("/ui/graphs/team/query")
    write_query(page, MISTAKE)
    # The finding comes while one types, where it is, and with what was probably meant.
    expect(page.get_by_text("agee")).to_have_count(2)
    expect(page.locator(".cm-lintRange-error")).to_be_visible()
    write_query(page, MENDED)
    expect(page.locator(".cm-lintRange-error")).to_have_count(0)
    page.get_by_label("$least").fill("75")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("region", name="Rows").get_by_role("link")).to_have_count(6)
    page.get_by_role("tab", name="JSON").click()
    expect(page.locator("pre.json")).to_contain_text("9007199254740993")
    page.get_by_role("tab", name="Graph").click()
    # The people that were found, and who of them knows whom.
    expect(read_drawing(page)).to_have_attribute("data-nodes", "6")
    expect(read_drawing(page)).to_have_attribute("data-edges", "4")
    page.get_by_role("tab", name="Plan").click()
    expect(page.get_by_role("region", name="Plan")).to_contain_text("Scan")
    page.reload()
    expect(page.get_by_role("textbox", name="Query")).to_contain_text("$p.age >= $least")


def test_a_neighbourhood_is_explored_and_a_path_is_drawn(page: Page) -> None:
    page.goto("/ui/graphs/team/explore?type=Person&id=p010")
    drawing = read_drawing(page)
    # With those that know the person, and whom the person knows.
    expect(drawing).to_have_attribute("data-nodes", "3")
    panel = page.get_by_role("complementary", name="Selected node")
    panel.get_by_role("button", name="Start of a path").click()
    panel.get_by_role("button", name="All nodes").click()
    page.get_by_label("Find a node").fill("person 11")
    page.get_by_role("button", name="Person 11").click()
    panel.get_by_role("button", name="→ Knows Person").click()
    expect(drawing).to_have_attribute("data-nodes", "4")
    expect(drawing).to_have_attribute("data-edges", "3")
    panel.get_by_role("button", name="All nodes").click()
    page.get_by_role("button", name="Person 12").click()
    panel.get_by_role("button", name="Path from Person 10").click()
    panel.get_by_role("button", name="Clear the path").click()
    panel.get_by_role("button", name="Remove").click()
    expect(drawing).to_have_attribute("data-nodes", "3")
    expect(drawing).to_have_attribute("data-edges", "2")


def test_a_diff_is_read_as_a_table_and_as_a_graph(page: Page) -> None:
    page.goto("/ui/graphs/team/diff?old=main&new=review")
    table = page.get_by_role("region", name="Changes")
    expect(table.get_by_role("row")).to_have_count(4)
    expect(table).to_contain_text("Zoe Lang")
    expect(table.locator(".before")).to_have_text("Engineer")
    expect(table.locator(".after")).to_have_text("Lead")
    page.get_by_role("tab", name="Graph").click()
    expect(read_drawing(page)).to_have_attribute("data-nodes", "3")
    page.get_by_role("button", name="Knows").click()
    expect(read_drawing(page)).to_have_attribute("data-edges", "1")
    page.get_by_role("checkbox").uncheck()
    expect(page.get_by_role("tab", name="Table")).to_be_visible()


def test_a_commit_shows_what_it_changed(page: Page) -> None:
    page.goto("/ui/graphs/team/commits?branch=review")
    page.get_by_role("link", name="Zoe joins").click()
    expect(page.get_by_role("region", name="Changes")).to_contain_text("Zoe Lang")
    page.get_by_role("link", name="Show the graph as of then").click()
    expect(page.get_by_text("a state of the past")).to_be_visible()


def test_upkeep_lists_indexes_and_tables(page: Page) -> None:
    page.goto("/ui/graphs/team/upkeep")
    expect(page.get_by_role("region", name="Indexes")).to_contain_text("0 of 3")
    expect(page.get_by_role("region", name="Tables")).to_contain_text("Wrote")


def test_a_change_of_the_schema_is_planned(page: Page) -> None:
    page.goto("/ui/graphs/team/schema")
    diagram = page.get_by_role("img", name="Types and how edges join them")
    expect(diagram).to_contain_text("Wrote")
    page.get_by_role("tab", name="Text and changes").click()
    page.get_by_role("textbox", name="Schema").click()
    page.keyboard.press("Control+End")
    page.keyboard.insert_text("node Robot { serial: Sting @key }")
    page.get_by_role("button", name="Plan the change").click()
    expect(page.get_by_text("did you mean 'String'?")).to_be_visible()
    page.keyboard.press("Control+z")
    page.get_by_role("textbox", name="Schema").click()
    page.keyboard.press("Control+End")
    page.keyboard.insert_text("node Robot { serial: String @key }")
    page.get_by_role("button", name="Plan the change").click()
    expect(page.get_by_text("add type")).to_be_visible()
    expect(page.get_by_role("button", name="Apply to main")).to_be_enabled()


def test_a_run_of_a_pipeline_shows_what_it_left_out(page: Page) -> None:
    page.goto("/ui/graphs/team/pipelines")
    page.get_by_role("link", name="crm").click()
    expect(page.get_by_text("Person 60")).to_be_visible()
    rejected = page.get_by_role("region", name="Rejected records")
    expect(rejected).to_contain_text("'boss' is not a level")
    expect(rejected).to_contain_text("people.csv line 3")
