"""Walks over the pages that show what is there: sign-in, types, entities, search."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from browser.conftest import sign_in

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]
TYPES = "/ui/graphs/team/types/node"


def test_a_token_is_asked_for_and_forgotten(visitor: Page) -> None:
    visitor.goto("/ui/graphs/team/commits")
    visitor.get_by_label("Token").fill("wrong")
    visitor.get_by_role("button", name="Sign in").click()
    expect(visitor.get_by_role("alert")).to_contain_text("invalid bearer token")
    assert "team" not in visitor.locator("body").inner_text()

    visitor.get_by_label("Token").fill("ada-secret")
    visitor.get_by_role("button", name="Sign in").click()
    # The address that was asked for is shown, now that it may be.
    expect(visitor.get_by_role("heading", name="Commits")).to_be_visible()
    expect(visitor.get_by_role("link", name="a new head")).to_be_visible()
    assert visitor.context.cookies() == []

    visitor.get_by_role("button", name="Sign out").click()
    expect(visitor.get_by_label("Token")).to_be_visible()
    assert visitor.evaluate("sessionStorage.length") == 0


def test_types_are_browsed_down_to_an_entity_and_its_history(page: Page) -> None:
    expect(page.get_by_role("heading", name="team")).to_be_visible()
    page.get_by_role("main").get_by_role("link", name="Person").first.click()
    expect(page.get_by_text("1–50 of 60")).to_be_visible()
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_text("51–60 of 60")).to_be_visible()

    page.get_by_label("Property").select_option("level")
    page.get_by_label("Value").select_option("junior")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_text("1–20")).to_be_visible()
    page.get_by_role("button", name="age", exact=True).click()
    expect(page.get_by_role("columnheader", name="age")).to_have_attribute("aria-sort", "ascending")
    page.get_by_role("button", name="age", exact=True).click()
    first = page.get_by_role("row").nth(1)
    expect(first).to_contain_text("p000")
    expect(first).to_contain_text("9007199254740993")

    page.get_by_role("link", name="p000").click()
    expect(page.get_by_role("heading", name="Person 0")).to_be_visible()
    expect(page.get_by_role("heading", name="Wrote")).to_be_visible()
    page.get_by_role("link", name="Person 1").click()
    expect(page.get_by_role("heading", name="Person 1")).to_be_visible()
    page.get_by_role("tab", name="History").click()
    expect(page.get_by_text("a new head")).to_be_visible()
    expect(page.get_by_text("everybody who is here")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", name="Person 0")).to_be_visible()


def test_a_search_finds_words_ids_and_vectors(page: Page) -> None:
    page.keyboard.press("/")
    page.get_by_label("Search for").fill("harbour storm")
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="n0")).to_be_visible()
    expect(page.get_by_role("link", name="n1")).to_be_visible()
    page.get_by_label("Search for").fill("p007")
    page.keyboard.press("Enter")
    expect(page.get_by_text("With this id")).to_be_visible()
    # What is stored is text, whatever it looks like.
    page.goto("/ui/graphs/team/search?q=quiet")
    expect(page.get_by_text("<b>quiet</b> hills")).to_be_visible()
    # No provider of vectors is configured here, and the page says so.
    page.get_by_label("How").select_option("vectors")
    expect(page.get_by_role("alert")).to_be_visible()


def test_a_state_of_the_past_is_shown_by_its_address(page: Page) -> None:
    page.goto("/ui/graphs/team/branches")
    page.get_by_role("link", name="start").click()
    expect(page.get_by_text("a state of the past")).to_be_visible()
    page.get_by_role("main").get_by_role("link", name="Person").first.click()
    page.get_by_role("link", name="p001").click()
    expect(page.get_by_text("Engineer")).to_be_visible()
    page.get_by_role("button", name="Back to now").click()
    expect(page.get_by_text("Head")).to_be_visible()
    page.get_by_label("Branch").select_option("review")
    expect(page.get_by_text("Lead")).to_be_visible()


def test_keys_open_pages_and_colours_stay(page: Page) -> None:
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Keyboard")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("g")
    page.keyboard.press("c")
    expect(page.get_by_role("heading", name="Commits")).to_be_visible()
    page.get_by_role("button", name="Use dark colours").click()
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


@pytest.mark.parametrize("actor", ["cyd", "dan"])
def test_a_reader_sees_only_names_that_it_may_read(visitor: Page, actor: str) -> None:
    sign_in(visitor, actor)
    seen: list[str] = []
    visitor.on("response", lambda answer: seen.append(answer.url))
    for path in ("", "/search", "/commits", "/branches", "/upkeep", "/types/node/Note"):
        visitor.goto(f"/ui/graphs/team{path}")
        visitor.wait_for_load_state("networkidle")
        shown = visitor.locator("body").inner_text()
        assert "Wrote" not in shown, path
        assert "storms at sea" not in shown, path
        assert ("Person" in shown) == (actor == "cyd"), path
    assert seen


def test_edges_to_a_type_that_may_not_be_read_are_not_followed(visitor: Page) -> None:
    sign_in(visitor, "eve")
    visitor.goto("/ui/graphs/team/entities/node/Person/p000")
    expect(visitor.get_by_role("heading", name="Person 0")).to_be_visible()
    visitor.wait_for_load_state("networkidle")
    expect(visitor.get_by_role("alert")).to_have_count(0)


def test_an_address_that_was_typed_wrong_has_a_page(page: Page) -> None:
    page.goto("/ui/graphs/team/%zz")
    expect(page.get_by_role("heading", name="There is no such page")).to_be_visible()
