"""One question to one engine in a new process; prints how long import, opening and asking took."""

from __future__ import annotations

import argparse
import importlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from social_engines import Bug, Duck, Engine, Ours
from social_queries import NINE, ONE_PERSON

ENGINES: Final[dict[str, tuple[Callable[[Path], Engine], str]]] = {
    "omnigraph": (Ours, "omnigraph.engine.graph"),
    "DuckDB": (Duck, "duckdb"),
    "Ladybug": (Bug, "ladybug"),
}


def main() -> None:
    """Ask and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("path", type=Path)
    parser.add_argument("question")
    parser.add_argument("--who", type=int, default=None)
    given = parser.parse_args()
    engine, module = ENGINES[given.engine]
    question = next(each for each in (*NINE, *ONE_PERSON) if each.name == given.question)
    params = question.params if given.who is None else {"who": given.who}
    began = time.perf_counter()
    importlib.import_module(module)
    imported = time.perf_counter()
    opened = engine(given.path)
    rows = opened.prepared(question)(params)
    answered = time.perf_counter()
    print(  # noqa: T201
        json.dumps(
            {
                "import_ms": (imported - began) * 1000,
                "answer_ms": (answered - imported) * 1000,
                "rows": len(rows),
            }
        )
    )


if __name__ == "__main__":
    main()
