"""Two processes merge the same proposal at once, and one of them is killed, again and again."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import omnigraph
from omnigraph.engine.proposals.proposal_merge import build_key
from omnigraph.versioning.proposals import ProposalState

# A merge takes some hundredths of a second: it is killed before, during or after it.
LIFE_S_MAX = 0.08
START_S_MAX = 120.0
SCHEMA = "node Person { name: String @key\n age: I32? }"
_TESTS = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a soak did: how many merges were killed, and how many of those said nothing."""

    rounds: int
    silent: int


class Merger:
    """A process that merges proposals, and what it has answered; it can be killed."""

    def __init__(self, uri: str, log: Path) -> None:
        log.touch()
        self._log = log
        self._process = subprocess.Popen(
            [sys.executable, "-m", "faults.proposal_worker", uri, str(log)],
            cwd=_TESTS,
            env={**os.environ, "PYTHONPATH": str(_TESTS)},
            stdin=subprocess.PIPE,
        )

    def begin(self, number: int) -> None:
        """Have it merge a proposal."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"%d\n" % number)
        self._process.stdin.flush()

    def kill(self) -> None:
        """End it, wherever it is."""
        self._process.kill()
        self._process.communicate()

    def find_commit(self, number: int) -> str | None:
        """The commit that it has answered for a proposal."""
        lines = map(str.split, self._log.read_text().splitlines())
        return next((words[2] for words in lines if words[:2] == ["merged", str(number)]), None)

    def wait_for(self, word: str) -> None:
        """Return when it has written a word."""
        deadline = time.monotonic() + START_S_MAX
        while word not in self._log.read_text():
            assert self._process.poll() is None, "a merger stopped by itself"
            assert time.monotonic() < deadline, f"a merger does not write {word}"
            time.sleep(0.01)


def soak(folder: Path, *, rounds: int, seed: int = 1) -> Outcome:
    """Merge so many proposals by two processes, of which one is killed; each is merged once."""
    chance, uri, silent = random.Random(seed), str(folder / "graph.omni"), 0
    with omnigraph.create(uri, schema=SCHEMA) as graph, ExitStack() as mergers:
        graph.branch().load([{"name": "ada", "age": 1}], type="Person", mode="append")
        lasting = Merger(uri, folder / "lasting")
        mergers.callback(lasting.kill)
        for number in range(1, rounds + 1):
            _propose(graph, number)
            doomed = Merger(uri, folder / str(number))
            mergers.callback(doomed.kill)
            for each in (lasting, doomed):
                each.wait_for("ready")
            doomed.begin(number)
            # It is ahead by some of its life, or all of it.
            time.sleep(chance.uniform(0, LIFE_S_MAX))
            lasting.begin(number)
            time.sleep(chance.uniform(0, LIFE_S_MAX))
            doomed.kill()
            lasting.wait_for(f"merged {number} ")
            answered = {each.find_commit(number) for each in (lasting, doomed)}
            silent += None in answered
            _verify(graph, number, answered - {None})
        assert not graph.check().problems
    return Outcome(rounds, silent)


def _propose(graph: omnigraph.Graph, number: int) -> None:
    """A proposal that has to be merged three ways."""
    draft = graph.branch().propose(f"Person {number}")
    person = {"name": f"p{number}", "age": number}
    draft.load([person], type="Person", mode="append").approve()
    ada = {"name": "ada", "age": number}
    graph.branch().load([ada], type="Person", mode="merge")


def _verify(graph: omnigraph.Graph, number: int, answered: set[str | None]) -> None:
    """One commit has the key of the merge, one event names it, and every process answered it."""
    commit = graph.proposal(number).merge().id
    assert answered == {commit}
    state = read_state(graph, number)
    assert state.merged is not None
    assert list_merge_commits(graph, state) == [commit] == [state.merged.commit]


def read_state(graph: omnigraph.Graph, number: int) -> ProposalState:
    """A proposal as its events say."""
    return graph._session.resources.proposals.read(number)


def list_merge_commits(graph: omnigraph.Graph, state: ProposalState) -> list[str]:
    """The commits of main that have the key of a merge that a proposal has begun."""
    key = build_key(state.number)
    return [each.id for each in graph.branch().commits() if each.key == key]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        sys.stdout.write(f"{soak(Path(name), rounds=int(sys.argv[1]))}\n")
