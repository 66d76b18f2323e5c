"""Sphinx builds the site from the pages of the repository, as they are: `make site`."""

import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

project = "Omnigraph"
author = "The Omnigraph authors"
version = release = tomllib.loads((HERE.parents[1] / "pyproject.toml").read_text())["project"][
    "version"
]

extensions = ["myst_parser", "graph_lexers"]
# The sources are the whole repository, so that a link works here as it does in a file browser.
root_doc = "docs/index"
include_patterns = [
    "*.md",
    "docs/*.md",
    "docs/guide/*.md",
    "docs/reference/*.md",
    "docs/decisions/*.md",
]
source_suffix = {".md": "markdown"}
# Every heading of a page can be linked, and a link to one that does not exist is a warning.
myst_heading_anchors = 4
nitpicky = True
# A theme that brings its files along: a page asks no other host for anything.
html_theme = "furo"
html_title = "Omnigraph"
html_static_path = [str(HERE / "static")]
html_css_files = ["site.css"]
templates_path = [str(HERE / "templates")]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "site_versions.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_theme_options = {"navigation_with_keys": True}
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
# `scripts/build_site.py` lists the versions that stand beside each other.
html_context = {"shown_version": release, "site_versions": ""}
