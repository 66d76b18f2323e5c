"""A browser, and pages that note everything that must not happen."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from browser.browser_graph import ACTORS, POLICY, create_graph
from omnigraph.server.server_boot import boot_graph
from served import RunningServer, make_tokens, serve

# Set where tests must not be skipped: there a missing browser is a failure.
REQUIRED: Final = "OMNIGRAPH_TESTS_NEED_CHROMIUM"
_NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_SWITCHES: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--enable-unsafe-swiftshader",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser for the tests of one module.

    Its library runs an event loop in this thread until it ends, beside which no other test could
    call `asyncio.run`.
    """
    path = next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        message = "there is no Chromium here: install it, for example by `apt install chromium`"
        if os.environ.get(REQUIRED):
            pytest.fail(message)
        pytest.skip(message)
    with sync_playwright() as library:
        opened = library.chromium.launch(executable_path=path, args=list(_SWITCHES))
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server with tokens and a policy, for one graph, which is called team."""
    folder: Path = tmp_path_factory.mktemp("web")
    policy = folder / "policy.yaml"
    policy.write_text(POLICY)
    state = boot_graph(
        create_graph(folder / "team.omni"),
        graph_id=None,
        policy=str(policy),
        tokens=make_tokens(*ACTORS),
        is_open=False,
    )
    with serve(state) as running:
        yield running


@contextmanager
def open_visitor(browser: Browser, served: RunningServer) -> Iterator[Page]:
    """A page of the server without a token; it must ask no other host, and log no error."""
    context = browser.new_context(base_url=served.url, viewport={"width": 1280, "height": 800})
    context.set_default_timeout(20_000)
    page = context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(f"error: {error}"))
    page.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
    page.on(
        "request",
        lambda asked: None if asked.url.startswith(served.url) else faults.append(asked.url),
    )
    yield page
    context.close()
    # A browser logs each answer with a status of failure, which pages may well be meant to get.
    assert [each for each in faults if "Failed to load resource" not in each] == []


@pytest.fixture
def visitor(browser: Browser, served: RunningServer) -> Iterator[Page]:
    """A page of the server without a token."""
    with open_visitor(browser, served) as page:
        yield page


@pytest.fixture
def page(visitor: Page) -> Page:
    """The same, signed in as ada, who may do everything."""
    return sign_in(visitor, "ada")


def sign_in(page: Page, actor: str) -> Page:
    page.goto("/ui/")
    page.get_by_label("Token").fill(f"{actor}-secret")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_title("Signed in as").wait_for()
    return page
