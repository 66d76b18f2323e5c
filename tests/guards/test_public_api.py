"""The names users may import, kept in one list: adding one is a decision, removing one a break."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Literal, get_origin

LIST = Path(__file__).parent / "public_api.txt"
MODULES = ["omnigraph", "omnigraph.schema", "omnigraph.query"]


def test_the_public_names_are_the_listed_ones(bless: bool) -> None:
    names = [
        f"{module}.{name}"
        for module in MODULES
        for name in sorted(importlib.import_module(module).__all__)
    ]
    if bless:
        LIST.write_text("\n".join(names) + "\n")
    assert names == LIST.read_text().splitlines()


def test_every_public_name_can_be_imported_and_is_documented() -> None:
    undocumented = [
        f"{module}.{name}"
        for module in MODULES
        for name in importlib.import_module(module).__all__
        if name[0].isalpha() and not _is_documented(getattr(importlib.import_module(module), name))
    ]
    assert undocumented == []


def _is_documented(thing: object) -> bool:
    # The choices of an argument say what they are.
    is_literal = get_origin(thing) is Literal
    return is_literal or not callable(thing) or bool(getattr(thing, "__doc__", None))
