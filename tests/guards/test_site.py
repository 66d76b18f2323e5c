"""The site of the pages: each of them is in it, and its check finds what leads nowhere."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
_ENTRY = re.compile(r"^(?:\.\./)?[\w/-]+$", re.MULTILINE)


@pytest.fixture(scope="module")
def build_site() -> ModuleType:
    found = importlib.util.spec_from_file_location("build_site", ROOT / "scripts" / "build_site.py")
    assert found is not None
    assert found.loader is not None
    script = importlib.util.module_from_spec(found)
    found.loader.exec_module(script)
    return script


def test_every_page_is_listed_once_in_the_contents_of_the_site() -> None:
    trees = re.findall(
        r"^```\{toctree\}(.*?)^```", (ROOT / "docs" / "index.md").read_text(), re.M | re.S
    )
    listed = sorted(entry for tree in trees for entry in _ENTRY.findall(tree))
    docs = ROOT / "docs"
    pages = [*docs.glob("*.md"), *docs.glob("guide/*.md"), *docs.glob("reference/*.md")]
    names = [page.relative_to(docs).with_suffix("").as_posix() for page in pages]
    outside = [f"../{page.stem}" for page in ROOT.glob("*.md")]
    assert listed == sorted([*(name for name in names if name != "index"), *outside])


def test_the_check_of_the_site_finds_links_that_lead_nowhere(
    build_site: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "other.html").write_text('<h1 id="here">Other</h1>')
    (tmp_path / "page.html").write_text(
        '<a href="other.html#here">1</a> <a href="other.html#gone">2</a> <a href="gone.html">3</a>'
        '<a href="https://spark.apache.org">4</a> <a href="#top">5</a> <p id="top"></p>'
        '<script src="https://cdn.example/x.js"></script> <img src="gone.png">'
    )
    pages = {path: build_site.read_page(path) for path in sorted(tmp_path.glob("*.html"))}
    assert list(build_site.find_broken_links(pages, tmp_path)) == [
        "page.html: loads https://cdn.example/x.js",
        "page.html: other.html#gone leads to no anchor",
        "page.html: gone.html leads to no file",
        "page.html: gone.png leads to no file",
    ]


def test_the_check_of_the_site_finds_styles_that_load_from_other_hosts(
    build_site: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "own.css").write_text('a { background: url("own.png"); }')
    (tmp_path / "foreign.css").write_text("@import url('https://fonts.example/a.css');")
    assert [each.split(":")[0] for each in build_site.find_foreign_styles(tmp_path)] == [
        "foreign.css"
    ]
