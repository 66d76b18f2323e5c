"""A process that runs commands of `omnigraph` one after another, all on one session of Spark.

It is told what to do by lines of JSON: `command` are arguments of the command line, `call` is a
function of a module, `module:function`, with texts for it. It answers with lines of JSON.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

from typer.testing import CliRunner

from omnigraph.cli.app import app
from omnigraph.engine import load_dispatch
from omnigraph.spark.query import query_frames
from spark import holding


def _done(asked: dict[str, Any]) -> object:
    if "call" in asked:
        module, name = asked["call"].split(":")
        return getattr(importlib.import_module(module), name)(*asked["arguments"])
    answer = CliRunner().invoke(app, asked["command"])
    if answer.exception is not None and not isinstance(answer.exception, SystemExit):
        raise answer.exception
    return {"code": answer.exit_code, "output": answer.stdout, "errors": answer.stderr}


def main() -> None:
    """Do what is asked for until nobody asks any more."""
    load_dispatch._create_runner = holding.holding_runner(load_dispatch._create_runner)
    query_frames.ScanSplits = holding.HeldScans  # type: ignore[attr-defined]  # so that a test can hold a task
    answers = sys.stdout
    # What the library prints must not come between the answers.
    sys.stdout = sys.stderr
    for line in sys.stdin:
        print(json.dumps(_done(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
