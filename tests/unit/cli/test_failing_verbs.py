"""Every verb, given inputs that it must refuse, answers a program with one document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

import pytest
from typer.testing import Result

import omnigraph
from omnigraph import errors
from omnigraph.error_codes import ErrorCode
from omnigraph.errors.error_documents import error_code_of
from unit.cli.command_tree import Parameter, Verb, plausible_values, verbs
from unit.cli.small_company import EVERYONE, SCHEMA, Run

VERBS = verbs()
CODES = {str(code) for code in ErrorCode}
# These two are known by their detail.
WITHOUT_CODE = {"precondition_failure", "change_feed_gap"}
# They start Spark, wait, or write outside the graph, if their arguments happen to be good.
ENDLESS = {"changes follow", "pipeline schedule", "spark warm"}
# It shows what is set, whatever that is.
SHOWING = {"config show"}
BRANCHES = {"branch", "source", "target", "base", "name", "commit", "commit_id", "cursor", "at"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph for all verbs: what one of them changes does not matter to another one's failure."""
    folder = tmp_path_factory.mktemp("failing")
    (folder / "s.pg").write_text(SCHEMA)
    (folder / "everyone.gq").write_text(EVERYONE)
    omnigraph.create(str(folder / "g.omni"), schema=SCHEMA).close()
    return folder / "g.omni"


@pytest.mark.parametrize("verb", VERBS, ids=str)
def test_a_wrong_line_is_one_document(run: Run, tmp_path: Path, verb: Verb) -> None:
    for line in _wrong_lines(verb, tmp_path):
        result = run(*line, "--json")
        assert result.exit_code == 2, line
        _check_document(result, line)
        words = run(*line)
        assert words.exit_code == 2, line
        assert words.stdout == "", line
        usage, message, hint = words.stderr.rstrip().rsplit("\n", 2)
        assert usage.startswith("Usage: "), line
        assert message.startswith("error: "), line
        assert hint.startswith("hint: try '"), line
        assert not {"╭", "│"} & set(words.stderr), line


@pytest.mark.slow
@pytest.mark.parametrize("verb", [each for each in VERBS if str(each) not in ENDLESS], ids=str)
def test_a_failing_verb_is_one_document(run: Run, built: Path, verb: Verb) -> None:
    failed = 0
    for line in _failing_lines(verb, built):
        result = run(*line, "--json", "--quiet")
        assert result.exit_code in (0, 1, 2, 4), (line, result.output)
        if result.exit_code:
            failed += 1
            _check_document(result, line)
        elif verb.is_json:
            json.loads(result.stdout)
    assert failed or not verb.is_json or str(verb) in SHOWING, f"no line of '{verb}' failed"


def test_every_error_has_a_code_of_the_list() -> None:
    found = {
        name: error_code_of(error)
        for name, error in vars(errors).items()
        if isinstance(error, type) and issubclass(error, errors.OmnigraphError)
    }
    assert {name for name, code in found.items() if code is None} == {
        "ChangeFeedGapError",
        "PreconditionFailedError",
    }
    assert {str(code) for code in found.values() if code is not None} <= CODES
    assert found["BranchNotFoundError"] is ErrorCode.NOT_FOUND
    assert found["SnapshotGoneError"] is ErrorCode.NOT_FOUND
    assert found["KeyConflictError"] is ErrorCode.CONFLICT
    assert found["LoadError"] is ErrorCode.BAD_REQUEST
    assert found["CorruptObjectError"] is ErrorCode.INTERNAL


def _wrong_lines(verb: Verb, folder: Path) -> Iterator[list[str]]:
    """Lines that cannot be parsed: an unknown option, a missing or a wrong value."""
    values = plausible_values(folder, folder / "missing.omni")
    yield [*verb.line(values), "--no-such-option"]
    for each in verb.parameters:
        if each.is_required:
            yield verb.line(values, replaced=each)
        if _is_checked(each):
            yield [*verb.line(values, replaced=each), *each.given("no-such-value")]


def _is_checked(parameter: Parameter) -> bool:
    return (
        parameter.is_option
        and issubclass(parameter.kind, int | float | StrEnum)
        and (parameter.kind is not bool)
    )


def _failing_lines(verb: Verb, store: Path) -> Iterator[list[str]]:
    """Lines that are well formed, and ask for what is not there."""
    folder = store.parent
    yield list(verb.path)
    for address in (folder / "missing.omni", "ftp://nowhere/g", "https://example.org/g", folder):
        yield _addressed(verb, folder, address)
    for each in verb.parameters:
        if issubclass(each.kind, Path) or each.name in BRANCHES:
            for value in (folder / "missing", folder, "no such/branch"):
                line = _addressed(verb, folder, store, replaced=each)
                yield [*line, *each.given(value)]


def _addressed(
    verb: Verb, folder: Path, address: object, *, replaced: Parameter | None = None
) -> list[str]:
    """The line of a verb on the graph of an address."""
    line = verb.line(plausible_values(folder, address), replaced=replaced)
    if any(each.name == "uri" and each.is_required for each in verb.parameters):
        return line
    return [*line, "--store", str(address)]


def _check_document(result: Result, line: list[str]) -> None:
    assert isinstance(result.exception, SystemExit), (line, result.exception)
    assert "Traceback" not in result.stderr, line
    document = json.loads(result.stdout)
    assert document.get("code") in CODES or WITHOUT_CODE & set(document), (line, document)
    assert result.stdout == json.dumps(document, indent=2, ensure_ascii=False) + "\n", line
