"""How long pages of the web interface take on a graph of 100,000 people, in a browser.

    python benchmarks/web.py [people]

The server, the browser and its drawing in software share the machine. Each page is opened in a
context of its own, so that nothing is cached; times are medians, from the request of the page until
what it is for can be seen.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from playwright.sync_api import Browser, Page, expect, sync_playwright
from rich.console import Console
from rich.table import Table

import omnigraph

SCHEMA: Final = """
node Person { name: String @key  title: String @index  age: I64 }
edge Knows: Person -> Person
"""
PEOPLE: Final = 100_000
EDGES_EACH: Final = 5
NEIGHBOURS: Final = 499
REPEATS: Final = 5
PAN_SECONDS: Final = 3.0
_BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_SWITCHES: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--enable-unsafe-swiftshader",
    "--disable-background-networking",
)
_COUNT_PICTURES: Final = """() => {
  window.pictures = 0;
  const count = () => { window.pictures += 1; requestAnimationFrame(count); };
  requestAnimationFrame(count);
}"""


def main() -> None:
    """Build a graph, serve it, and open its pages."""
    people = int(sys.argv[1]) if len(sys.argv) > 1 else PEOPLE
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "team.omni"
        build_graph(path, people)
        with serve(path) as port, open_browser() as browser:
            measure(browser, f"http://127.0.0.1:{port}/ui/graphs/team", people)


def build_graph(path: Path, people: int) -> None:
    """People who know five others each, and one whom many know."""
    numbers = np.arange(people)
    dice = np.random.default_rng(7)
    names = pa.array([f"p{number}" for number in range(people)])
    persons = {"name": names, "title": names, "age": pa.array(20 + numbers % 50)}
    ends = names.take(pa.array(dice.integers(1000, people, people * EDGES_EACH)))
    starts = names.take(pa.array(np.repeat(numbers, EDGES_EACH)))
    hub = pa.array(["p0"] * NEIGHBOURS)
    knows = {
        "from": pa.concat_arrays([starts, names.slice(1, NEIGHBOURS)]),
        "to": pa.concat_arrays([ends, hub]),
    }
    with omnigraph.create(path, schema=SCHEMA, durable=False) as graph:
        tables = {"Person": pa.table(persons), "Knows": pa.table(knows)}
        graph.branch().load(tables, mode="append")


@contextmanager
def serve(path: Path) -> Iterator[int]:
    """Serve the graph in a process of its own."""
    process = subprocess.Popen(  # noqa: S603
        [
            *(sys.executable, "-c", "from omnigraph.cli import main; main()"),
            *("serve", str(path), "--bind", "127.0.0.1:0"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ,
    )
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline().rpartition(":")[2])
    finally:
        process.kill()
        process.wait()


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Start the browser of the system."""
    path = next(filter(None, map(shutil.which, _BROWSERS)), None)
    with sync_playwright() as library:
        opened = library.chromium.launch(executable_path=path, args=list(_SWITCHES))
        yield opened
        opened.close()


def measure(browser: Browser, root: str, people: int) -> None:
    """Open each page several times, and print a table."""
    table = Table("page", "median", "longest", title=f"{people:,} people")

    def add(title: str, act: Callable[[Page], float]) -> None:
        times = [_run(browser, act) for _ in range(REPEATS)]
        table.add_row(title, f"{statistics.median(times):.2f} s", f"{max(times):.2f} s")

    add("overview", lambda page: _open(page, root, f"{people:,}"))
    add("entities of a type", lambda page: _open(page, f"{root}/types/node/Person", "p1"))
    hub = f"{root}/explore?type=Person&id=p0"
    add(f"expand {NEIGHBOURS + EDGES_EACH} neighbours", lambda page: expand(page, hub))
    console = Console()
    console.print(table)
    rate = pan(browser, hub)
    console.print(f"panning {NEIGHBOURS + EDGES_EACH + 1} nodes: {rate:.0f} pictures/s")


def _run(browser: Browser, act: Callable[[Page], float]) -> float:
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    try:
        return act(context.new_page())
    finally:
        context.close()


def _open(page: Page, address: str, text: str) -> float:
    started = time.perf_counter()
    page.goto(address)
    page.get_by_text(text, exact=False).first.wait_for()
    return time.perf_counter() - started


def expand(page: Page, address: str) -> float:
    """Open a drawing of the hub, remove all but it, and bring its neighbours again."""
    page.goto(address)
    drawing = page.get_by_role("figure")
    whole = str(NEIGHBOURS + EDGES_EACH + 1)
    expect(drawing).to_have_attribute("data-nodes", whole, timeout=30_000)
    page.goto(f"{address.partition('?')[0]}?type=Person&id=p99")
    expect(drawing).not_to_have_attribute("data-nodes", whole, timeout=30_000)
    panel = page.get_by_role("complementary", name="Selected node")
    panel.get_by_role("button", name="Remove").wait_for()
    started = time.perf_counter()
    page.evaluate("address => history.pushState(null, '', address)", address)
    page.evaluate("() => dispatchEvent(new PopStateEvent('popstate'))")
    expect(drawing).to_have_attribute("data-nodes", whole, timeout=30_000)
    return time.perf_counter() - started


def pan(browser: Browser, address: str) -> float:
    """Drag the drawing to and fro, and return the pictures per second meanwhile."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.goto(address)
    drawing = page.get_by_role("figure")
    whole = str(NEIGHBOURS + EDGES_EACH + 1)
    expect(drawing).to_have_attribute("data-nodes", whole, timeout=30_000)
    page.wait_for_timeout(3_000)
    box = drawing.bounding_box()
    assert box is not None
    x, y = box["x"] + 20, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.evaluate(_COUNT_PICTURES)
    started = time.perf_counter()
    step = 0
    while (seconds := time.perf_counter() - started) < PAN_SECONDS:
        step += 1
        page.mouse.move(x + 100 + 100 * np.sin(step / 10), y)
    pictures = page.evaluate("() => window.pictures")
    context.close()
    return float(pictures) / seconds


if __name__ == "__main__":
    main()
