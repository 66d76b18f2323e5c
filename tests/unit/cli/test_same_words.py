"""What commands repeat of the engine, so that they start without it, is the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.cli import shared_options
from omnigraph.cli.commands import blob_commands, graph_commands, load_command
from omnigraph.engine import blob_reader
from omnigraph.versioning.record import MAIN_BRANCH
from omnigraph.writers.inputs import Dialect
from omnigraph.writers.load_records import LoadMode


def test_the_choices_of_a_load_are_those_of_the_engine() -> None:
    assert {each.value for each in load_command.LoadMode} == {each.value for each in LoadMode}
    assert {each.value for each in load_command.InputDialect} == {each.value for each in Dialect}


def test_the_first_branch_and_the_longest_range_are_those_of_the_engine() -> None:
    assert shared_options.MAIN_BRANCH == MAIN_BRANCH
    assert blob_commands.CHUNK_BYTES_MAX == blob_reader.RANGE_BYTES_MAX


@pytest.mark.on_disk
def test_the_folders_of_a_graph_are_those_it_has(store: Path) -> None:
    assert {each.name for each in store.iterdir()} == graph_commands.GRAPH_FOLDERS
