"""Builds the site of `docs`: this tree, and each release beside it, then checks every link.

    build/site/index.html       leads to the newest version
    build/site/<version>/docs/  the pages; a release is the tree of a tag `v<version>`

A warning of Sphinx is an error. The check opens no connection: a link within the site leads to a
page and to an anchor of it, and no page loads anything from another host.
"""

from __future__ import annotations

import argparse
import html.parser
import io
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parents[1]
CONFIGURATION = ROOT / "docs" / "site"
FRONT_PAGE = "docs/index.html"
_REDIRECT = """<!doctype html>
<meta charset="utf-8">
<title>Omnigraph</title>
<meta http-equiv="refresh" content="0; url={target}">
<a href="{target}">Omnigraph</a>
"""
# What a page loads by itself; `a` is followed by people only.
_LOADED = {
    ("script", "src"),
    ("img", "src"),
    ("iframe", "src"),
    ("source", "src"),
    ("link", "href"),
}
_STYLE_LOADS = re.compile(r"@import\s+[^;]+|url\(\s*['\"]?(?:https?:)?//[^)]+\)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, default=ROOT / "build" / "site")
    into: Path = parser.parse_args().into.resolve()
    shutil.rmtree(into, ignore_errors=True)
    newest = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    releases = [tag for tag in list_release_tags() if tag != f"v{newest}"]
    versions = [newest, *(tag.removeprefix("v") for tag in releases)]
    build_version(ROOT, into, version=newest, versions=versions)
    for tag in releases:
        with tempfile.TemporaryDirectory() as folder:
            extract_release(tag, Path(folder))
            build_version(Path(folder), into, version=tag.removeprefix("v"), versions=versions)
    (into / "index.html").write_text(_REDIRECT.format(target=f"{newest}/{FRONT_PAGE}"))
    pages = {path: read_page(path) for path in sorted(into.rglob("*.html"))}
    faults = [*find_broken_links(pages, into), *find_foreign_styles(into)]
    print("\n".join(faults), end="\n" if faults else "")
    links = sum(len(page.links) for page in pages.values())
    print(
        f"versions: {', '.join(versions)}; {len(pages)} pages, {links} links, {len(faults)} broken"
    )
    sys.exit(1 if faults else 0)


def list_release_tags() -> list[str]:
    """The tags of releases that have a site, newest first."""
    command = ["git", "tag", "--list", "v*", "--sort=-version:refname"]
    tags = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [tag for tag in tags.split() if _has_site(tag)]


def _has_site(tag: str) -> bool:
    command = ["git", "cat-file", "-e", f"{tag}:docs/index.md"]
    return subprocess.run(command, cwd=ROOT, check=False, capture_output=True).returncode == 0


def extract_release(tag: str, into: Path) -> None:
    """The tree of a tag."""
    command = ["git", "archive", "--format=tar", tag]
    archive = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as members:
        members.extractall(into, filter="data")


def build_version(tree: Path, into: Path, *, version: str, versions: list[str]) -> None:
    """The pages of one tree, by the configuration of this one."""
    options = [f"release={version}", f"version={version}"]
    context = [f"shown_version={version}", f"site_versions={','.join(versions)}"]
    with tempfile.TemporaryDirectory() as doctrees:
        command = [
            *(sys.executable, "-m", "sphinx", "--builder", "html", "--fail-on-warning", "--quiet"),
            *("--keep-going", "--nitpicky", "--jobs", "auto", "--doctree-dir", doctrees),
            *("--conf-dir", str(CONFIGURATION)),
            *(part for option in options for part in ("--define", option)),
            *(part for value in context for part in ("--html-define", value)),
            *(str(tree), str(into / version)),
        ]
        if subprocess.run(command, check=False).returncode:
            sys.exit(f"the pages of {version} have warnings, which are listed above")
    for unwanted in (".buildinfo", "objects.inv"):
        (into / version / unwanted).unlink(missing_ok=True)


class Page(NamedTuple):
    """What a page can be linked by, what it links, and which of that it loads."""

    anchors: set[str]
    links: list[str]
    loads: list[str]


class _PageReader(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = Page(set(), [], [])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.page.anchors.update(values[name] for name in ("id", "name") if name in values)
        for name in ("href", "src"):
            if name in values:
                self.page.links.append(values[name])
                if (tag, name) in _LOADED:
                    self.page.loads.append(values[name])


def read_page(path: Path) -> Page:
    """The anchors and links of an HTML file."""
    reader = _PageReader()
    reader.feed(path.read_text())
    return reader.page


def find_broken_links(pages: dict[Path, Page], root: Path) -> Iterator[str]:
    """Links of the site that lead nowhere, and files that pages load from other hosts."""
    for path, page in pages.items():
        shown = path.relative_to(root)
        yield from (f"{shown}: loads {url}" for url in page.loads if urlsplit(url).netloc)
        for url in page.links:
            parts = urlsplit(url)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            fragment = unquote(parts.fragment)
            if not target.is_file():
                yield f"{shown}: {url} leads to no file"
            elif fragment and target in pages and fragment not in pages[target].anchors:
                yield f"{shown}: {url} leads to no anchor"


def find_foreign_styles(root: Path) -> Iterator[str]:
    """Style sheets that load files from other hosts."""
    for path in sorted(root.rglob("*.css")):
        for found in _STYLE_LOADS.findall(path.read_text()):
            if "//" in found:
                yield f"{path.relative_to(root)}: loads {found}"


if __name__ == "__main__":
    main()
