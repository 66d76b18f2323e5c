"""Commands that messages advise: every one of them exists, and runs as it is written."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

import omnigraph
from unit.cli.command_tree import Verb, plausible_values, verbs
from unit.cli.small_company import Run

COMMAND = re.compile(r"`omnigraph ([^`]+)`")
# What stands for a value that only the place of the message knows.
PLACEHOLDER = "VALUE"
VALUES_OF_OPTIONS = {"--from": "main"}
WORDS_OF_VALUES = {"PATH": "query_path", "URI": "uri", PLACEHOLDER: "uri"}
# Groups whose commands are about something that a new graph has none of.
PROPOSALS = "proposal"


def _texts(tree: ast.AST) -> Iterator[str]:
    """The texts of a module, with placeholders for what is filled in."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (
                str(part.value) if isinstance(part, ast.Constant) else PLACEHOLDER
                for part in node.values
            )
            yield "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@cache
def _commands() -> list[str]:
    source = Path(omnigraph.__file__).parent
    sources = [path.read_text() for path in sorted(source.rglob("*.py"))]
    trees = [ast.parse(text) for text in sources if COMMAND.search(text)]
    found = {line for tree in trees for text in _texts(tree) for line in COMMAND.findall(text)}
    # A piece of a text with values in it is a text of its own, cut at the value.
    return sorted(line for line in found if not line.endswith(" "))


@cache
def _names_of_verbs() -> set[str]:
    """The words of every verb, and of every group of verbs."""
    paths = [each.path for each in verbs()]
    return {" ".join(path[:end]) for path in paths for end in range(1, len(path) + 1)}


def _has_arguments(line: str) -> bool:
    return line not in _names_of_verbs()


def _verb_of(words: list[str]) -> Verb:
    (found,) = [each for each in verbs() if tuple(words[: len(each.path)]) == each.path]
    return found


def test_messages_name_verbs_and_advise_whole_commands() -> None:
    assert any(map(_has_arguments, _commands()))
    assert not all(map(_has_arguments, _commands()))


@pytest.mark.on_disk
@pytest.mark.parametrize("line", [line for line in _commands() if _has_arguments(line)])
def test_a_command_in_a_message_runs_as_it_is_written(
    line: str, run: Run, folder: Path, store: Path
) -> None:
    words = shlex.split(line)
    verb = _verb_of(words)
    given = words[len(verb.path) :]
    values = plausible_values(folder, store)
    if verb.path[0] == PROPOSALS:
        values["uri"] = _open_proposal(store)
    given = [
        str(VALUES_OF_OPTIONS.get(before, values[WORDS_OF_VALUES[word]]))
        if word in WORDS_OF_VALUES
        else word
        for before, word in pairwise(["", *given])
    ]
    # A message does not know where the graph is.
    names = {each.name for each in verb.parameters}
    place = [] if str(store) in given or "uri" not in names else [store]
    if verb.path[0] == PROPOSALS:
        place = [Path("--store"), store]
    done = run(*verb.path, *given, *place, text="a-token\n")
    assert done.exit_code == 0, done.output


def _open_proposal(store: Path) -> int:
    with omnigraph.open(store) as graph:
        draft = graph.create_branch("draft")
        draft.load([{"name": "dan"}], type="Person", mode="append")
        return graph.open_proposal("draft", title="Draft").number
