"""What a command loads: modules are named and counted, since seconds depend on the machine."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import typer

import omnigraph
from omnigraph.cli import commands
from omnigraph.cli.app import build_command_tree
from omnigraph.cli.command_table import COMMANDS, DeferredCommand

# What short commands load of other libraries: of Rich only the widths of characters.
LIGHT = {"annotated_doc", "rich", "shellingham", "typer"}
OWN = {
    "omnigraph",
    "omnigraph.durations",
    "omnigraph.error_codes",
    "omnigraph.format_version",
    "omnigraph.lang",
    "omnigraph.lang.quoting",
}
RICH_MODULES_MAX = 6
SHORT_MODULES_MAX = 30
SUMMARY_CHARACTERS_MAX = 200
HELP_OF_ALL = [[each.name, "--help"] for each in COMMANDS]
COMPLETE_ZSH = {"_OMNIGRAPH_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "omnigraph sch"}
COMPLETE_BASH = {
    "_OMNIGRAPH_COMPLETE": "complete_bash",
    "COMP_WORDS": "omnigraph query --s",
    "COMP_CWORD": "2",
}
NOT_FOR_READS = {
    "asyncio",
    "datafusion",
    "httpx",
    "obstore.fsspec",
    "omnigraph.aio",
    "omnigraph.bulk.bulk_load",
    "omnigraph.engine.merger",
    "omnigraph.schema.merging",
    "pandas",
    "pydantic",
    "pyspark",
    "rich.console",
}
PROGRAM = """
import atexit, gc, sys
known = set(sys.modules)
def report():
    print('\\nmodules', gc.get_freeze_count(), *sorted(set(sys.modules) - known))
atexit.register(report)
from omnigraph.cli import main
for line in {lines!r}:
    sys.argv = ['omnigraph', *line]
    try:
        main()
    except SystemExit:
        pass
"""


def modules_of(
    lines: list[list[str]], environment: Mapping[str, str] | None = None
) -> tuple[set[str], str]:
    """What command lines load in one process, and what they print."""
    finished = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(lines=lines)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={**os.environ, **(environment or {})},
    )
    shown, _, modules = finished.stdout.rpartition("\nmodules ")
    frozen, *names = modules.split()
    assert int(frozen), "the interpreter looks for garbage in all modules before it ends"
    return set(names), shown


def libraries_of(modules: set[str]) -> set[str]:
    """The libraries of modules, without those of Python and our own."""
    roots = {each.partition(".")[0] for each in modules}
    return roots - {"omnigraph"} - sys.stdlib_module_names


def beyond_the_command_line(modules: set[str]) -> set[str]:
    """Our modules of other packages."""
    own = {each for each in modules if each.partition(".")[0] == "omnigraph"}
    return {each for each in own if not each.startswith("omnigraph.cli")}


@pytest.mark.parametrize("line", [["version"], ["--version"], ["--help"], ["-h"]], ids=" ".join)
def test_version_and_help_load_the_tree_of_commands_and_no_command(line: list[str]) -> None:
    modules, shown = modules_of([line])
    assert shown.strip()
    assert libraries_of(modules) <= LIGHT
    own = {each for each in modules if each.startswith("omnigraph")}
    assert len(own) <= SHORT_MODULES_MAX
    assert not {each for each in own if each.startswith("omnigraph.cli.commands")}
    assert beyond_the_command_line(modules) <= OWN


@pytest.mark.parametrize("environment", [COMPLETE_ZSH, COMPLETE_BASH], ids=["zsh", "bash"])
def test_completion_loads_no_more_than_the_command_it_completes(
    environment: dict[str, str],
) -> None:
    modules, shown = modules_of([[]], environment)
    assert "schema" in shown or "--store" in shown
    assert libraries_of(modules) <= LIGHT
    assert beyond_the_command_line(modules) <= OWN


def test_the_help_of_every_command_loads_neither_the_engine_nor_a_compiler() -> None:
    modules, shown = modules_of(HELP_OF_ALL)
    assert shown.count("Usage: omnigraph") == len(COMMANDS)
    assert libraries_of(modules) <= LIGHT
    assert len({each for each in modules if each.startswith("rich")}) <= RICH_MODULES_MAX
    assert beyond_the_command_line(modules) <= OWN


def test_a_simple_read_loads_no_library_of_other_commands(tmp_path: Path) -> None:
    store = str(tmp_path / "g.omni")
    people = tmp_path / "people.jsonl"
    people.write_text('{"type": "Person", "data": {"name": "ada"}}\n')
    with omnigraph.create(store, schema="node Person { name: String @key }", actor="ada") as graph:
        graph.branch("main").load(people, mode="append")
    text = "query people() { match { $p: Person } return { $p.name } }"
    modules, shown = modules_of([["query", "--store", store, "-e", text]])
    assert "ada" in shown
    assert "lance" in modules
    assert not modules & NOT_FOR_READS
    assert not {each for each in modules if each.startswith(("omnigraph.spark", "omnigraph.pipe"))}


def test_the_table_of_commands_has_every_command_with_its_summary() -> None:
    tabled = {each.name: each.summary for each in COMMANDS}
    loaded = build_command_tree().commands
    assert list(loaded) == [*tabled, "version"]
    for entry in COMMANDS:
        shown = DeferredCommand(entry).get_short_help_str(SUMMARY_CHARACTERS_MAX)
        real = loaded[entry.name]
        assert shown == real.get_short_help_str(SUMMARY_CHARACTERS_MAX), entry.name
        assert not real.hidden


def test_every_module_of_commands_registers_what_the_table_says() -> None:
    folder = Path(str(commands.__file__)).parent
    for path in sorted(folder.glob("*_command*.py")):
        part = typer.Typer()
        importlib.import_module(f"omnigraph.cli.commands.{path.stem}").register(part)
        registered = typer.main.get_group(part).commands
        assert set(registered) == {e.name for e in COMMANDS if e.module == path.stem}, path.stem
