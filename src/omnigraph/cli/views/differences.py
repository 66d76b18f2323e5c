"""Diffs: lines for people, one JSON document, a page for a browser. None is held in memory."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from omnigraph.cli.views.streams import encode_json, print_document, print_json, print_lines

if TYPE_CHECKING:
    from omnigraph.engine import Diff

_PAGE_START = '<!doctype html><html><head><meta charset="utf-8"><title>diff</title></head><body>'
_INDENT = "    "


def print_diff(diff: Diff, *, is_json: bool) -> None:
    """Every change."""
    if is_json:
        print_document(_encode_diff(diff))
    else:
        print_lines(diff.to_lines())


def print_summary(diff: Diff, *, is_json: bool) -> None:
    """The counts of each type and the changes of the schema."""
    if is_json:
        print_json(diff.header())
    else:
        print_lines(diff.to_lines(changes_max=0))


def print_page(diff: Diff) -> None:
    """Every change, as a page that needs nothing else."""
    print_lines([_PAGE_START])
    print_lines(diff.html_parts())
    print_lines(["</body></html>"])


def _encode_diff(diff: Diff) -> Iterator[str]:
    """The lines of the document of a diff, as `print_json` would print it."""
    header = encode_json(diff.header())
    yield header.removesuffix("\n}") + ","
    last = len(diff) - 1
    if last < 0:
        yield '  "changes": []'
    else:
        yield '  "changes": ['
        for number, change in enumerate(diff):
            text = textwrap.indent(encode_json(change.to_json()), _INDENT)
            yield text if number == last else f"{text},"
        yield "  ]"
    yield "}"
