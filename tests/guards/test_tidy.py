"""Sizes, names and words. The ratchet may only shrink."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from omnigraph.cli.command_table import COMMANDS

# One process reads each file once.
pytestmark = pytest.mark.xdist_group("tidy")

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
ALL_PYTHON = sorted(
    path
    for folder in ("src", "tests", "benchmarks", "scripts", "fuzz")
    for path in (ROOT / folder).rglob("*.py")
)
FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 50
MODEL_LINES_MAX = 1000
# Branches are a model of their own: commits, merges of entities and of schemas.
# The functions of values are a list, and count for themselves.
VALUE_FUNCTIONS_LINES_MAX = 500
BRANCHING_MODULES = ("branching.py", "merging.py", "migrating.py")
BRANCHING_LINES_MAX = 450
# One definition of each table function.
ALGORITHMS_LINES_MAX = 300
# The walks of paths, which no other part of the model needs.
PATHS_LINES_MAX = 100
# Row guards, of which the operators know only what is left of the graph.
GUARDS_LINES_MAX = 50
# Files and functions that are larger than the bounds, with their size. Entries may only shrink.
RATCHET: dict[str, int] = {}
BANNED_MODULE_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}
# Built from pieces so that this file does not contain them.
_LEFTOVERS = ["TO" + "DO", "FIX" + "ME", "XX" + "X", "raise Not" + "ImplementedError"]
BANNED_TEXT = re.compile("|".join([*_LEFTOVERS, r"(?<![\w.])/" + r"(work|farm|home|root|tmp/og)/"]))

# Words that are not used, and what to write instead. A word is also looked for in names.
DIALECT = {
    r"tells?|told|telling": "reports, returns, lists, shows, says",
    r"nobody|somebody": "no process, another process, a caller, a reader",
    r"whoever": "the caller, the process that",
    r"behind": "after",
    r"looked at": "examined, checked, read",
    r"janitors?|keepers?|courts?": "the name of the mechanism: clean-up, builder, validation",
}
# "is no branch", but not "there is no branch" and not "is no longer".
NEGATION = r"(?<!there )\b(?:is|are|was|were|be|been|being)\s+(?:#\s*)?no\s+(?:#\s*)?(?!{})[a-z]"
COMPARISONS = (
    r"(?:longer|more|less|such|other|better|slower|faster|larger|greater|fewer|further|farther)\b"
)
# Files and the words in them that another party prescribes.
PRESCRIBED = {
    # The method of files in Python that returns the position.
    "src/omnigraph/storage/objects/source_files.py": "tell",
}


class FileFacts(NamedTuple):
    """The functions of a file with their lines, the names it defines, and what it imports."""

    functions: list[tuple[str, int]]
    names: list[str]
    imports: list[str]


def test_no_file_is_longer_than_the_bound() -> None:
    too_long = {
        _name(path): len(path.read_text().splitlines())
        for path in ALL_PYTHON
        if len(path.read_text().splitlines()) > FILE_LINES_MAX
    }
    assert _beyond_ratchet(too_long) == {}


def test_no_function_is_longer_than_the_bound() -> None:
    too_long = {
        f"{_name(path)}::{function}": length
        for path in ALL_PYTHON
        for function, length in _read_facts(path).functions
        if length > FUNCTION_LINES_MAX
    }
    assert _beyond_ratchet(too_long) == {}


def test_the_model_of_the_language_stays_small() -> None:
    lines = {path.name: len(_code_lines(path)) for path in (ROOT / "tests" / "model").glob("*.py")}
    branching = sum(lines.pop(name) for name in BRANCHING_MODULES)
    functions = lines.pop("functions.py")
    assert lines.pop("algorithms.py") <= ALGORITHMS_LINES_MAX
    assert lines.pop("paths.py") <= PATHS_LINES_MAX
    assert lines.pop("guards.py") <= GUARDS_LINES_MAX
    assert sum(lines.values()) <= MODEL_LINES_MAX, lines
    assert functions <= VALUE_FUNCTIONS_LINES_MAX
    assert branching <= BRANCHING_LINES_MAX


def test_module_names_say_what_a_module_does() -> None:
    assert [_name(path) for path in ALL_PYTHON if path.stem in BANNED_MODULE_NAMES] == []


def test_every_module_is_imported_by_something() -> None:
    imported = {name for path in ALL_PYTHON for name in _read_facts(path).imports}
    # A command is imported by the name that the table has of its module.
    imported |= {f"omnigraph.cli.commands.{each.module}" for each in COMMANDS}
    modules = {".".join(path.relative_to(ROOT / "src").with_suffix("").parts) for path in SOURCES}
    dead = {name for name in modules if not name.endswith("__init__")} - imported
    assert sorted(dead) == []


@pytest.mark.parametrize("pattern", ["src/**/*", "tests/**/*", "docs/**/*", "*.md", "Makefile"])
def test_no_leftovers_and_no_machine_paths(pattern: str) -> None:
    found = [
        f"{_name(path)}:{number}: {line.strip()[:80]}"
        for path in sorted(ROOT.glob(pattern))
        if path.suffix in {".py", ".md", ".gqt", ".diag", ".pg", ".gq", ""} and path.is_file()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if BANNED_TEXT.search(line)
    ]
    assert found == []


def test_code_and_documents_are_in_plain_english() -> None:
    documents = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")])
    assert [found for path in (*SOURCES, *documents) for found in _find_dialect(path)] == []


def test_the_dialect_is_found_in_names_and_prose(tmp_path: Path) -> None:
    written = tmp_path / "sample.py"
    for text in ("rows_told = 1", "# Nobody waits.", '"""It is\n# no branch."""', "is no number"):
        written.write_text(text)
        assert len(list(_find_dialect(written))) == 1, text
    written.write_text("# There is no branch; it is no longer there, which foretells nothing.")
    assert list(_find_dialect(written)) == []


def test_code_uses_the_words_of_the_glossary() -> None:
    avoided = dict(_avoided_words())
    assert avoided, "docs/glossary.md names no avoided words"
    found = [
        f"{_name(path)}: '{name}' (say '{avoided[word]}')"
        for path in SOURCES
        # An adapter has the words of the framework whose interface it has.
        if path.parent.name != "adapters"
        for name in _read_facts(path).names
        for word in avoided
        if f"_{word}_" in f"_{name.lower()}_"
    ]
    assert found == []


def _find_dialect(path: Path) -> Iterator[str]:
    """Words of a file that are not used, each with its line and the replacement."""
    text = path.read_text()
    patterns = {rf"(?<![a-z])(?:{words})(?![a-z])": new for words, new in DIALECT.items()}
    patterns[NEGATION.format(COMPARISONS)] = "is not a …"
    for pattern, replacement in patterns.items():
        for found in re.finditer(pattern, text, re.IGNORECASE):
            if found[0] != PRESCRIBED.get(_name(path)):
                line = text.count("\n", 0, found.start()) + 1
                yield f"{_name(path)}:{line}: {found[0]!r} (write: {replacement})"


def _avoided_words() -> Iterator[tuple[str, str]]:
    """Pairs of an avoided word and the word to use, from the table of the glossary."""
    for line in (ROOT / "docs" / "glossary.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 3 and cells[0].startswith("**"):
            for word in cells[2].split(","):
                yield word.strip().strip("`").lower(), cells[0].strip("*")


@cache
def _read_facts(path: Path) -> FileFacts:
    """What the guards ask about a file: its tree would take much memory."""
    facts = FileFacts([], [], [])
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                facts.functions.append((node.name, (node.end_lineno or 0) - node.lineno + 1))
                facts.names.append(_split_words(node.name))
            case ast.ClassDef():
                facts.names.append(_split_words(node.name))
            case ast.arg():
                facts.names.append(node.arg)
            case ast.ImportFrom(module=str(module)):
                facts.imports.append(module)
                facts.imports.extend(f"{module}.{alias.name}" for alias in node.names)
            case ast.Import():
                facts.imports.extend(alias.name for alias in node.names)
    return facts


def _split_words(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)


def _code_lines(path: Path) -> set[int]:
    """The lines of a file that are neither blank nor comment, docstring or import."""
    text = path.read_text()
    lines = enumerate(text.splitlines(), 1)
    kept = {number for number, line in lines if line.strip() and line.strip()[0] != "#"}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            kept -= set(range(node.lineno, (node.end_lineno or 0) + 1))
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
            first = node.body[0] if ast.get_docstring(node) is not None else None
            kept -= set(range(first.lineno, (first.end_lineno or 0) + 1)) if first else set()
    return kept


def _beyond_ratchet(sizes: dict[str, int]) -> dict[str, int]:
    return {name: size for name, size in sizes.items() if size > RATCHET.get(name, 0)}


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name
