"""What reads of a social network cost beside DuckDB, Ladybug and DataFusion; answers are equal."""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Final

from queries_report import Line, faster_by, print_lines, take_turns, within
from queries_scale import scale_lines
from social_engines import Bug, Duck, Engine, Fusion, Ours, Rows
from social_network import generate
from social_queries import NINE, ONE_PERSON, Question, Value

OURS: Final = Ours.name
ENGINES: Final = (OURS, Duck.name, Bug.name, Fusion.name)
ROUNDS: Final = 5
PEOPLE: Final = 100_000
ASKED: Final = 10
COLD_ROUNDS: Final = 3
COLD: Final = ("point", "1-hop", "q1", "q3", "q9")
FILES: Final = {OURS: "graph.omni", Duck.name: "duck.db", Bug.name: "bug.db"}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="also 1M nodes and 10M edges")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print_lines("social network", ENGINES, _lines(folder))
        if given.full:
            print_lines("1M nodes, 10M edges", (OURS,), scale_lines(folder))


def _lines(folder: Path) -> Iterator[Line]:
    network = generate(people=PEOPLE)
    engines: list[Engine] = [
        Ours(folder / FILES[OURS], network),
        Duck(folder / FILES[Duck.name], network),
        Bug(folder / FILES[Bug.name], network),
        Fusion(network),
    ]
    asked = random.Random(3).sample(range(PEOPLE), ASKED)
    for question in NINE:
        medians = _measured(question, engines, [question.params])
        yield faster_by(f"{question.name} {question.about}", medians, OURS, budget=3.0)
    for question in ONE_PERSON:
        medians = _measured(question, engines, [{"who": number} for number in asked])
        rivals = {name: medians[name] for name in (OURS, Bug.name)}
        line = faster_by(question.about, rivals, OURS, budget=1.0)
        yield Line(f"{question.name} {line.work}", medians, *_verdict(line))
    for engine in engines:
        engine.close()
    yield from _cold(folder, asked[0])


def _verdict(line: Line) -> tuple[str, str, bool | None]:
    return line.measured, f"{line.budget} Ladybug", line.is_met


def _measured(
    question: Question, engines: Sequence[Engine], params: Sequence[Mapping[str, Value]]
) -> dict[str, float]:
    """The medians of engines whose answers are the same."""
    asks = {engine.name: engine.prepared(question) for engine in engines}
    answers = {name: [_plain(ask(each)) for each in params] for name, ask in asks.items()}
    for name, answer in answers.items():
        assert answer == answers[OURS], f"{question.name}: {name} {answer} != {answers[OURS]}"
    works = {name: [partial(ask, each) for each in params] for name, ask in asks.items()}
    return take_turns(works, rounds=ROUNDS)


def _plain(rows: Rows) -> list[tuple[object, ...]]:
    """Rows as every engine could give them: in one order, with numbers of one kind."""
    return sorted(tuple(map(_value, row)) for row in rows)


def _value(value: object) -> object:
    if isinstance(value, str) and value[0] == "p" and value[1:].isdigit():
        return float(value[1:])
    return round(float(value), 9) if isinstance(value, int | float | Decimal) else value


def _cold(folder: Path, who: int) -> Iterator[Line]:
    """New processes, in turns; what the first one of us leaves on disk, the others find."""
    for name in COLD:
        times: dict[str, list[tuple[float, float]]] = {engine: [] for engine in FILES}
        for engine in FILES:
            _asked_cold(folder, engine, name, who)
        for _ in range(COLD_ROUNDS):
            for engine, found in times.items():
                found.append(_asked_cold(folder, engine, name, who))
        answers = {engine: statistics.median(b for _, b in each) for engine, each in times.items()}
        yield within(f"open and ask {name}", answers, OURS, budget=1.0)
    imports = {engine: statistics.median(a for a, _ in each) for engine, each in times.items()}
    yield Line("import", imports)


def _asked_cold(folder: Path, engine: str, name: str, who: int) -> tuple[float, float]:
    script = Path(__file__).with_name("queries_cold.py")
    command = [sys.executable, str(script), engine, str(folder / FILES[engine]), name]
    if name in {question.name for question in ONE_PERSON}:
        command += ["--who", str(who)]
    finished = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    found = json.loads(finished.stdout)
    return found["import_ms"], found["answer_ms"]


if __name__ == "__main__":
    main()
