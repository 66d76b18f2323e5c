"""Pages of the guide, followed in a process that a test starts, on the Spark that it is given."""

from __future__ import annotations

import os

from guards.test_docs import ROOT, Reader, iter_steps
from omnigraph.spark.spark_session import get_session


def follow_page(name: str, folder: str) -> dict[str, object]:
    """Do what a page says, in an empty folder; where its tasks ran, and what came out otherwise."""
    os.chdir(folder)
    os.environ |= {"COLUMNS": "100", "NO_COLOR": "1", "OMNIGRAPH_HOME": "home"}
    reader, wrong = Reader(), []
    for block, expected in iter_steps((ROOT / "docs" / "guide" / name).read_text()):
        output = reader.follow(block)
        if expected is not None and not reader.agrees(expected.body, output):
            wrong.append([block.body, expected.body, output])
    context = get_session().sparkContext
    executors = context._jsc.sc().getExecutorMemoryStatus().size()
    return {"master": context.master, "executors": executors - 1, "wrong": wrong}
