"""The documents stay true: bounded, generated where they can be, and run.

In README.md and docs/guide, a fenced `sh` block is run line by line from the project folder, and a
`text` block right behind it must be its output; `python` blocks of a page are run in order in one
namespace. A line may end in `# exits with 1`. `--bless` rewrites `text` blocks.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from omnigraph.diagnostics import CODES
from omnigraph.query import format_queries, lint_file
from omnigraph.schema import Catalog, format_schema, load_catalog
from omnigraph.versioning.codec import decode_entry
from omnigraph.versioning.record import Close, Record

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]
LINES_MAX = {
    "README.md": 150,
    "ARCHITECTURE.md": 300,
    "CONTRIBUTING.md": 150,
    "docs/invariants.md": 150,
    "docs/glossary.md": 80,
    "docs/storage-format.md": 250,
}
# Commands that start everything else, or that would start this test again.
_NOT_RUN = ("make ", "git ", "pip ", "cd ", ". ")
_EXIT = re.compile(r"\s*# exits with (\d+)$")


@pytest.mark.parametrize("name", LINES_MAX)
def test_a_document_stays_within_its_bound(name: str) -> None:
    assert len((ROOT / name).read_text().splitlines()) <= LINES_MAX[name]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_commands_of_a_page_do_what_it_says(page: Path, bless: bool) -> None:
    text = page.read_text()
    shell = re.compile(r"```sh\n(.*?)```(?:\n+```text\n(.*?)```)?", re.DOTALL)
    blessed = text
    for block in shell.finditer(text):
        commands, expected = block.groups()
        output = "".join(_run(line) for line in commands.splitlines() if line.strip())
        if expected is None or output == expected:
            continue
        if not bless:
            assert output == expected
        blessed = blessed.replace(f"```text\n{expected}```", f"```text\n{output}```")
    if blessed != text:
        page.write_text(blessed)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_python_of_a_page_runs(page: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    script = "\n".join(blocks)
    finished = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_schemas_and_queries_of_a_page_compile(page: Path) -> None:
    catalog = Catalog()
    for language, text in re.findall(r"```(pg|gq)\n(.*?)```", page.read_text(), re.DOTALL):
        if language == "pg":
            catalog = load_catalog(text)
        else:
            assert [str(found) for found in lint_file(text, catalog).diagnostics] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_schemas_and_queries_of_a_page_are_formatted(page: Path) -> None:
    for language, text in re.findall(r"```(pg|gq)\n(.*?)```", page.read_text(), re.DOTALL):
        assert text == (format_schema(text) if language == "pg" else format_queries(text))


def test_the_records_of_the_format_page_can_be_read() -> None:
    text = (ROOT / "docs" / "storage-format.md").read_text()
    blocks = re.findall(r"```json record (\S+) (\d+)\n(.*?)```", text, re.DOTALL)
    entries = [decode_entry(stream, int(seq), body.encode()) for stream, seq, body in blocks]
    assert [type(entry) for entry in entries] == [Record, Close]
    assert isinstance(entries[0], Record)
    assert entries[0].pins["node:Person"].version == "b3497eb3f2a643b9"
    assert entries[0].signature.actor == "ada"


def test_the_generated_reference_is_up_to_date(tmp_path: Path) -> None:
    command = [sys.executable, "scripts/generate_reference.py", "--into", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True)
    generated = {path.name: path.read_text() for path in tmp_path.iterdir()}
    kept = {path.name: path.read_text() for path in (ROOT / "docs" / "reference").iterdir()}
    assert kept == generated, "run `make docs`"


def test_every_code_is_in_the_reference() -> None:
    reference = (ROOT / "docs" / "reference" / "errors.md").read_text()
    assert [code for code in CODES if f"| `{code}` |" not in reference] == []


def test_every_test_the_invariants_name_exists() -> None:
    text = (ROOT / "docs" / "invariants.md").read_text()
    named = set(re.findall(r"`(tests/[\w/]+\.py)`", text))
    assert named
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_every_make_target_of_the_documents_exists() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    pages = [*PAGES, ROOT / "CONTRIBUTING.md"]
    named = {name for page in pages for name in re.findall(r"make (\w+)", page.read_text())}
    assert named - targets - {"the"} == set()


def test_every_link_between_documents_leads_somewhere() -> None:
    pages = [*PAGES, *ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in pages
        for target in re.findall(r"\]\(([^)#]+)", page.read_text())
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert broken == []


def _run(line: str) -> str:
    if line.startswith(_NOT_RUN):
        return ""
    found = _EXIT.search(line)
    expected = int(found.group(1)) if found else 0
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "COLUMNS": "100", "NO_COLOR": "1"}
    finished = subprocess.run(
        ["sh", "-c", _EXIT.sub("", line)],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert finished.returncode == expected, f"{line}\n{finished.stdout}"
    return finished.stdout
