"""Schemas of definitions that cannot be read are told at their place, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.errors import SourceRefusedError
from omnigraph.pipelines.config.definition_validator import find_catalog, validate_all
from omnigraph.pipelines.config.secret_resolver import Resolver
from unit.pipelines.definitions import PEOPLE, SCHEMA, read

WITH_SCHEMA = PEOPLE.replace("company.omni", "{uri: company.omni, schema: company.pg}")


def test_a_schema_that_is_no_text_ends_no_other_check(tmp_path: Path) -> None:
    (tmp_path / "company.pg").write_bytes(b"node P { name: String @key } // \xff")
    (tmp_path / "good.pg").write_text(SCHEMA)
    (tmp_path / "people.jsonl").write_text('{"login": "ada"}\n')
    (tmp_path / "bad.yaml").write_text(WITH_SCHEMA)
    (tmp_path / "good.yaml").write_text(WITH_SCHEMA.replace("company.pg", "good.pg"))
    names = [str(tmp_path / name) for name in ("bad.yaml", "good.yaml")]
    bad, good = validate_all(names, tmp_path)
    (problem,) = bad.problems
    assert "company.pg is not UTF-8" in problem.message
    assert problem.line > 1
    assert (good.name, good.problems) == ("good", ())


@pytest.mark.parametrize("content", [b"\xff", None])
def test_a_schema_that_cannot_be_read_is_a_typed_error(
    tmp_path: Path, content: bytes | None
) -> None:
    schema = tmp_path / "company.pg"
    schema.write_text(SCHEMA)
    pipeline = read(tmp_path, WITH_SCHEMA)
    schema.unlink()
    if content is not None:
        schema.write_bytes(content)
    with pytest.raises(SourceRefusedError, match=r"company\.pg"):
        find_catalog(pipeline.targets[0], Resolver.from_environment(pipeline, {}))
