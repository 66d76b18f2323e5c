"""The documents stay true: bounded, generated where they can be, and run.

README.md and every page of docs/guide is followed from top to bottom in a folder of its own, which
holds a copy of `examples`. A fenced block with a file name (`pg team.pg`) is written to that file.
A `sh` block is run line by line: a line may end in `# exits with 1`. The `python` blocks of a page
share one namespace. A `text` block right behind either must be what it printed: for a command that
fails also its standard error. Ids, table versions and times differ from run to run; an id of a page
stands for the one it was printed for, also in later commands. `--bless` rewrites `text` blocks.
"""

from __future__ import annotations

import io
import json
import re
import shlex
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from omnigraph.cli.app import app
from omnigraph.embedding.embedding_profile import read_profile
from omnigraph.engine.env_settings import VARIABLES
from omnigraph.execution.sources.source_cache import FOLDER_VARIABLE, MEMORY_VARIABLE
from omnigraph.lang.diagnostic_codes import CODES
from omnigraph.query import format_queries, lint_file
from omnigraph.schema import Catalog, format_schema, load_catalog
from omnigraph.storage import Tables, open_objects
from omnigraph.storage.objects import layout
from omnigraph.versioning import (
    Branches,
    Changed,
    Committer,
    IdSet,
    Log,
    Record,
    Spilled,
    change_sets,
)
from omnigraph.versioning.json_fields import decode_fields, encode_fields, encode_plain_fields
from omnigraph.versioning.log_snapshot import decode_checkpoint
from omnigraph.versioning.record import Close
from omnigraph.versioning.schema_store import Schemas

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]
# Pages whose commands run on Spark, in the session of all tests.
SPARK_PAGES = {
    "cluster-pipelines.md",
    "loading-at-scale.md",
    "pipelines.md",
    "pipeline-changes.md",
    "pipeline-operations.md",
    "pipeline-slots.md",
    "pipeline-sources.md",
    "pipelines-with-airflow.md",
    "pipelines-with-dagster.md",
    "pipelines-with-dbt.md",
    "spark-data-source.md",
    "tutorial-cluster.md",
}
FOLLOWED = [
    pytest.param(
        page,
        id=page.name,
        marks=[pytest.mark.xdist_group("spark"), pytest.mark.timeout(600), pytest.mark.slow]
        if page.name in SPARK_PAGES
        else [],
    )
    for page in PAGES
]
FORMAT_PAGE = ROOT / "docs" / "storage-format.md"
LINES_MAX = {
    "README.md": 150,
    "ARCHITECTURE.md": 300,
    "CONTRIBUTING.md": 150,
    "docs/invariants.md": 150,
    "docs/glossary.md": 80,
    "docs/storage-format.md": 310,
}
PROSE_WIDTH_MAX = 100
# Commands that start everything else, or that would start this test again.
_NOT_RUN = ("make ", "git ", "pip ", "cd ", ". ")
_EXIT = re.compile(r"\s*# exits with (\d+)$")
_BLOCK = re.compile(r"^```(\w+)(?: ([^\n]*))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# Ids of commits, versions and lives of tables, tags of blobs; and times, which name nothing.
_ID = re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b|\b(?:[0-9a-f]{16}){1,2}\b|-[0-9a-f]{8}\.lance")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)")


@pytest.mark.parametrize("name", LINES_MAX)
def test_a_document_stays_within_its_bound(name: str) -> None:
    assert len((ROOT / name).read_text().splitlines()) <= LINES_MAX[name]


def test_prose_has_lines_of_at_most_100_characters() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    too_long = [
        f"{page.relative_to(ROOT)}: {line}"
        for page in pages
        if page.parent.name != "reference"
        for line in _BLOCK.sub("", page.read_text()).splitlines()
        # Tables and indented code may be longer.
        if len(line) > PROSE_WIDTH_MAX and not line.startswith(("|", "    "))
    ]
    assert too_long == []


@pytest.mark.parametrize("page", FOLLOWED)
def test_a_page_does_what_it_says(
    page: Path, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if page.name in SPARK_PAGES:
        request.getfixturevalue("spark")
    bless = request.getfixturevalue("bless")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "COLUMNS": "100",
        "NO_COLOR": "1",
        "OMNIGRAPH_HOME": "home",
        "OMNIGRAPH_EMBED_PROVIDER": "mock",
        "OMNIGRAPH_EMBED_MODEL": "demo",
    }.items():
        monkeypatch.setenv(name, value)
    text = page.read_text()
    reader = Reader()
    blessed, end = "", 0
    for block, expected in iter_steps(text):
        output = reader.follow(block)
        if expected is None or reader.agrees(expected.body, output):
            continue
        assert bless, f"{block.body}\n--- the page says\n{expected.body}\n--- it is\n{output}"
        blessed += text[end : expected.start] + reader.retold(output)
        end = expected.start + len(expected.body)
    if blessed:
        page.write_text(blessed + text[end:])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_schemas_and_queries_of_a_page_compile(page: Path) -> None:
    catalog = Catalog()
    for block in _blocks(page.read_text()):
        if block.language == "pg":
            catalog = load_catalog(block.body)
        elif block.language == "gq":
            assert [str(found) for found in lint_file(block.body, catalog).diagnostics] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_schemas_and_queries_of_a_page_are_formatted(page: Path) -> None:
    formatters = {"pg": format_schema, "gq": format_queries}
    for block in _blocks(page.read_text()):
        if block.language in formatters:
            assert block.body == formatters[block.language](block.body)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page; `start` is where its body starts in the text."""

    language: str
    file: str
    body: str
    start: int


def _blocks(text: str) -> list[Block]:
    return [
        Block(found[1], found[2] or "", found[3], found.start(3)) for found in _BLOCK.finditer(text)
    ]


def iter_steps(text: str) -> Iterator[tuple[Block, Block | None]]:
    """The blocks that do something, each with what it should print if the page says so."""
    blocks: list[Block | None] = [*_blocks(text), None]
    for block, following in pairwise(blocks):
        if block is None or block.language == "text":
            continue
        if following is not None and following.language == "text":
            between = text[block.start + len(block.body) : following.start]
            yield block, following if between.split() == ["```", "```text"] else None
        else:
            yield block, None


class Reader:
    """Somebody who follows a page; remembers what the ids of the page are in this run."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}
        self._namespace: dict[str, Any] = {}

    def follow(self, block: Block) -> str:
        """Do what a block says; what it prints."""
        if block.file:
            Path(block.file).parent.mkdir(parents=True, exist_ok=True)
            Path(block.file).write_text(block.body)
            return ""
        body = _ID.sub(lambda found: self._ids.get(found[0], found[0]), block.body)
        if block.language == "sh":
            return "".join(_run(line) for line in body.splitlines() if line.strip())
        if block.language == "python":
            return self._run_python(body)
        return ""

    def agrees(self, expected: str, output: str) -> bool:
        """Whether an output is the expected one, under the ids of this run."""
        if _without_names(expected) != _without_names(output):
            return False
        pairs = zip(_ID.findall(expected), _ID.findall(output), strict=True)
        return all(self._ids.setdefault(told, found) == found for told, found in pairs)

    def retold(self, output: str) -> str:
        """An output with the ids that the page has for those of this run."""
        told = {found: told for told, found in self._ids.items()}
        return _ID.sub(lambda found: told.get(found[0], found[0]), output)

    def _run_python(self, code: str) -> str:
        printed = io.StringIO()
        with redirect_stdout(printed), warnings.catch_warnings():
            warnings.simplefilter("error")
            exec(compile(code, "page", "exec"), self._namespace)  # noqa: S102 — our own pages
        return printed.getvalue()


def _without_names(text: str) -> str:
    return _ID.sub("<id>", _TIME.sub("<time>", text))


def _run(line: str) -> str:
    if line.startswith(_NOT_RUN):
        return ""
    found = _EXIT.search(line)
    words = shlex.shlex(_EXIT.sub("", line), posix=True, punctuation_chars=True)
    words.whitespace_split, words.commenters = True, ""
    program, *arguments = words
    assert program == "omnigraph", f"cannot run: {line}"
    source = target = None
    if ">" in arguments:
        arguments, (_, target) = arguments[:-2], arguments[-2:]
    if "<" in arguments:
        arguments, (_, source) = arguments[:-2], arguments[-2:]
    text = None if source is None else Path(source).read_text()
    finished = CliRunner().invoke(app, arguments, input=text)
    assert finished.exit_code == (int(found[1]) if found else 0), f"{line}\n{finished.output}"
    output = finished.stdout + (finished.stderr if finished.exit_code else "")
    if target is None:
        return output
    Path(target).write_text(output)
    return ""


def test_every_variable_of_the_environment_is_documented() -> None:
    known = {name for each in VARIABLES for name in each.name.split(", ")}
    assert known >= {FOLDER_VARIABLE, MEMORY_VARIABLE}
    read = {
        name
        for path in (ROOT / "src").rglob("*.py")
        for name in re.findall(r'"(OMNIGRAPH_[A-Z_]+)"', path.read_text())
    }
    # A prefix stands for all that begin with it.
    assert not {name for name in read if not any(each.startswith(name) for each in known)}
    defaults = read_profile({"OPENAI_API_KEY": "key"}).retry_policy
    told = {each.name: each.default for each in VARIABLES}
    assert told["OMNIGRAPH_EMBED_DEADLINE_MS"] == f"{defaults.deadline_s * 1000:g}"
    assert told["OMNIGRAPH_EMBED_TIMEOUT_MS"] == f"{defaults.timeout_s * 1000:g}"
    assert told["OMNIGRAPH_EMBED_RETRY_ATTEMPTS"] == str(defaults.attempts)
    assert told["OMNIGRAPH_EMBED_RETRY_BACKOFF_MS"] == f"{defaults.backoff_s * 1000:g}"


def test_the_objects_of_the_format_page_can_be_read(tmp_path: Path) -> None:
    objects = open_objects(str(tmp_path), is_durable=False)
    found = {block.file: block.body for block in _blocks(FORMAT_PAGE.read_text())}
    for path, body in found.items():
        objects.put(path, _stored(path, json.loads(body)))
    log = Log(objects)
    log.require_format()
    record = log.read("main.0", 1)
    assert isinstance(record, Record)
    assert record.signature.key == "import-2026-11-15"
    assert record.changes["node:Person"] == Changed(
        inserted=IdSet(["ada", "bob"]), marks=IdSet(["029bdb0085e8a4fd", "91b46540d570c130"])
    )
    stored = Schemas(objects).get(record.schema)
    assert stored.accepted.catalog == load_catalog(stored.source)
    (path,) = [path for path in found if path.endswith(".arrow")]
    change = change_sets.load_change_set(objects, Spilled(path, 1, 1))
    assert isinstance(change, Changed)
    assert (list(change.inserted), list(change.updated)) == (["q0000"], ["ada"])
    hint = layout.build_hint_path("main.0")
    assert decode_fields(hint, objects.get(hint) or b"").get_integer("seq") == 2


def test_the_branch_of_the_format_page_is_one_that_was_deleted(tmp_path: Path) -> None:
    objects = open_objects(str(tmp_path), is_durable=False)
    found = {block.file: block.body for block in _blocks(FORMAT_PAGE.read_text())}
    deletion = found.pop(layout.build_ref_event_path("review/x", 2))
    for path, body in found.items():
        objects.put(path, _stored(path, json.loads(body)))
    log = Log(objects)
    stream = Branches(Committer(log, Tables(str(tmp_path)))).resolve("review/x")
    assert isinstance(log.read(stream.id, 3), Close)
    data = objects.get(layout.build_checkpoint_path(stream.id, 1))
    assert decode_checkpoint(stream, 1, data or b"").ref == stream.origins[0]
    objects.put(layout.build_ref_event_path("review/x", 2), deletion.encode())
    assert Branches(Committer(log, Tables(str(tmp_path)))).list() == ["main"]


def _stored(path: str, decoded: dict[str, Any]) -> bytes:
    """An object of the format page as a graph holds it."""
    if not path.endswith(".arrow"):
        fields = {name: value for name, value in decoded.items() if name != "digest"}
        written = (
            encode_plain_fields(fields) if "/schemas/" in path else encode_fields(path, fields)
        )
        assert json.loads(written).get("digest") == decoded.get("digest")
        return written
    ops, ids = zip(*decoded["rows"], strict=True)
    table = pa.table([pa.array(ops, pa.int8()), pa.array(ids, pa.large_string())], ["op", "id"])
    assert {field.name: str(field.type) for field in table.schema} == decoded["columns"]
    sink = pa.BufferOutputStream()
    schema = table.schema.with_metadata(decoded["metadata"])
    with pa.ipc.new_file(sink, schema) as writer:
        writer.write_table(table.cast(schema))
    return bytes(sink.getvalue())


def test_the_generated_reference_is_up_to_date(tmp_path: Path) -> None:
    command = [sys.executable, "scripts/generate_reference.py", "--into", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True)
    generated = {path.name: path.read_text() for path in tmp_path.iterdir()}
    kept = {path.name: path.read_text() for path in (ROOT / "docs" / "reference").iterdir()}
    assert kept == generated, "run `make docs`"


def test_every_code_is_in_the_reference() -> None:
    reference = (ROOT / "docs" / "reference" / "errors.md").read_text()
    assert [code for code in CODES if f"| `{code}`<a" not in reference] == []


def test_every_test_the_invariants_name_exists() -> None:
    text = (ROOT / "docs" / "invariants.md").read_text()
    named = set(re.findall(r"`(tests/[\w/]+\.py)`", text))
    assert named
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_every_make_target_of_the_documents_exists() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    pages = [*PAGES, ROOT / "CONTRIBUTING.md"]
    named = {
        name for page in pages for name in re.findall(r"\bmake (\w+)\b(?!:)", page.read_text())
    }
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
