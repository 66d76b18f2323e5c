"""Templates: graphs with a schema and sample data."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import InvalidArgumentError
from omnigraph.query import lint_file
from omnigraph.schema import format_schema
from omnigraph.templates import TEMPLATES, copy_template_files


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_is_a_graph_whose_queries_run(template: str, tmp_path: Path) -> None:
    schema, data, queries = copy_template_files(template, tmp_path)
    with omnigraph.create_from_template(f"memory://{template}-t", template, actor="ada") as graph:
        main = graph.branch()
        assert main.head.version == 1
        assert main.head.actor == "ada"
        assert sum(table.rows for table in main.tables()) == len(data.read_text().splitlines())
        linted = lint_file(queries.read_text(), main.snapshot().catalog).to_json()
        assert (linted["errors"], linted["warnings"]) == (0, 0)
        assert format_schema(schema.read_text()) == schema.read_text()


def test_an_unknown_template_and_a_file_that_is_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError) as unknown:
        omnigraph.create_from_template(tmp_path / "g", "peple")
    assert unknown.value.hint == "did you mean 'people'?"
    assert not (tmp_path / "g").exists()
    (tmp_path / "memory.gq").write_text("mine")
    with pytest.raises(InvalidArgumentError, match=r"memory.gq is there"):
        copy_template_files("memory", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["memory.gq"]
