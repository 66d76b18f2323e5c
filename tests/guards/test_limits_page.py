"""The page of limits gives the bounds that the code has."""

from __future__ import annotations

from pathlib import Path

from omnigraph.bulk.bulk_load import REJECTS_MAX
from omnigraph.engine.arguments import KEY_CHARACTERS_MAX
from omnigraph.engine.feed import page_builder
from omnigraph.schema.schema_compiler import PROPERTIES_MAX
from omnigraph.writers.inputs.line_blocks import LINE_BYTES_MAX
from omnigraph.writers.inputs.row_sink import LOAD_BYTES_MAX
from omnigraph.writers.matching_rows import MUTATION_BYTES_MAX
from omnigraph.writers.merge.merge_conflicts import CONFLICTS_LISTED_MAX

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "limits.md"
MIB = 1024**2


def test_the_bounds_of_the_page_are_those_of_the_code() -> None:
    feed = (
        f"{page_builder.CHANGES_MAX:,} changes, {page_builder.COMMITS_MAX} commits"
        f" or {page_builder.BYTES_MAX // MIB} MiB"
    )
    expected = {
        "a load in this process": f"{LOAD_BYTES_MAX // 1024**3} GiB of columns",
        "one line of JSON, one record of CSV": f"{LINE_BYTES_MAX // MIB} MiB",
        "the rows that one mutation reads": f"{MUTATION_BYTES_MAX // 1024**3} GiB",
        "rejected records of one load": f"{REJECTS_MAX:,} reasons",
        "one page of changes": feed,
        "an idempotency key": f"{KEY_CHARACTERS_MAX:,} characters",
        "merge conflicts listed in one report": f"{CONFLICTS_LISTED_MAX:,}",
        "properties that interfaces give to the nodes of one schema": f"{PROPERTIES_MAX:,}",
    }
    rows = [line.strip("| ").split(" | ") for line in PAGE.read_text().splitlines()]
    bounds = dict(row for row in rows if len(row) == 2)
    assert {what: bounds[what][: len(bound)] for what, bound in expected.items()} == expected
