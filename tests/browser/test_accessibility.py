"""Every page, in light and dark: no serious fault that axe-core knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Page

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]
AXE: Final = (Path(__file__).parent / "vendor/axe.js").read_text()
PAGES: Final = (
    "",
    "/types/node/Person",
    "/entities/node/Person/p001",
    "/search?q=harbour",
    "/query?text=query q() { match { $p: Person } return { $p, $p.agee } }",
    "/explore?type=Person&id=p001",
    "/commits",
    "/branches",
    "/diff?old=main&new=review",
    "/merge?source=review",
    "/proposals",
    "/proposals/new?source=review",
    "/schema",
    "/stored",
    "/dashboards",
    "/pipelines",
    "/upkeep",
)
SERIOUS: Final = {"serious", "critical"}


def find_faults(page: Page) -> list[str]:
    page.wait_for_load_state("networkidle")
    page.evaluate(AXE)
    found: dict[str, Any] = page.evaluate("axe.run({resultTypes: ['violations']})")
    return [
        f"{page.url}: {each['id']}: {node['html'][:160]}"
        for each in found["violations"]
        if each["impact"] in SERIOUS
        for node in each["nodes"][:3]
    ]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_have_no_serious_fault(page: Page, theme: str) -> None:
    page.evaluate(f"localStorage.setItem('omnigraph.theme', '{theme}')")
    faults: list[str] = []
    for path in PAGES:
        page.goto(f"/ui/graphs/team{path}")
        page.get_by_role("heading", level=1).wait_for()
        faults += find_faults(page)
    assert faults == []


def test_the_sign_in_page_has_no_serious_fault(visitor: Page) -> None:
    visitor.goto("/ui/")
    visitor.get_by_label("Token").wait_for()
    assert find_faults(visitor) == []
