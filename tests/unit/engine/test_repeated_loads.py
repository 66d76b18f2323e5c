"""Loads with a key: made once, however often they are asked for."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from omnigraph import Branch, LoadModeName
from unit.engine.company import company, person


@pytest.fixture
def main() -> Iterator[Branch]:
    """The main branch of a graph."""
    with company() as graph:
        yield graph.branch()


def test_a_key_belongs_to_the_commits_of_its_own_branch(main: Branch) -> None:
    first = main.load([person("Cyd")], mode="append", key="job")
    review = main.graph.create_branch("review")
    made = review.load([person("Dov")], mode="append", key="job")
    assert made.commit.id != first.commit.id
    assert (made.commit.branch, made.nodes) == ("review", {"Person": 1})
    assert review.load([person("Dov")], mode="append", key="job") == made
    assert main.load([person("Cyd")], mode="append", key="job") == first


@pytest.mark.parametrize("mode", ["append", "merge", "overwrite"])
def test_a_repeated_load_answers_what_the_first_one_did(main: Branch, mode: LoadModeName) -> None:
    main.load([{"type": "Note", "data": {"text": "old"}}], mode="append")
    records = [person("Cyd", 1), person("Dov", 2), *([person("Ada")] if mode != "append" else [])]
    first = main.load(records, mode=mode, key="job")
    assert first.nodes == {"Person": len(records)}
    assert main.load(records, mode=mode, key="job") == first


def test_a_repeated_load_that_emptied_a_type_does_not_count_it(main: Branch) -> None:
    empty = pa.table({"text": pa.array([], pa.string())})
    first = main.load(empty, mode="overwrite", type="Note", key="job")
    assert first.nodes == {}
    assert main.load(empty, mode="overwrite", type="Note", key="job") == first
