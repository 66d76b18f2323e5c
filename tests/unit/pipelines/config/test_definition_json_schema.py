from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from omnigraph.pipelines.config.config_schema import SECTION_SCHEMAS
from omnigraph.pipelines.config.definition_json_schema import build_json_schema
from unit.pipelines.definitions import PEOPLE

GUIDE = Path(__file__).parents[4] / "docs" / "guide"
_BLOCK = re.compile(r"^```yaml [^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def _refusals(definition: Any) -> list[str]:
    validator = jsonschema.Draft202012Validator(build_json_schema())
    return [str(each.message) for each in validator.iter_errors(definition)]


def test_every_definition_of_the_guide_meets_the_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(build_json_schema())
    texts = [
        text for page in GUIDE.glob("pipeline*.md") for text in _BLOCK.findall(page.read_text())
    ]
    definitions = [each for each in map(yaml.safe_load, texts) if "into" in each]
    assert len(definitions) >= 6
    assert [problem for each in definitions for problem in _refusals(each)] == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"intoo": []},
        {"source": {"kind": "files", "paths": "a", "path": "b"}},
        {"source": {"kind": "github"}},
        {"source": "github"},
        {"retry": {"attempts": 0}},
        {"into": [{"graph": "company", "map": {"nodes": [{"type": "Person"}]}}]},
        {"into": [{"graph": "company", "mode": "replace", "map": "people.map.yaml"}]},
    ],
)
def test_what_a_reader_would_refuse_is_refused_by_the_schema(wrong: dict[str, Any]) -> None:
    good = yaml.safe_load(PEOPLE)
    assert _refusals(good) == []
    assert _refusals({**good, **wrong}) != []


def test_every_section_of_the_reference_is_in_the_schema() -> None:
    schema = build_json_schema()
    sources = schema["$defs"]["source"]["anyOf"]
    parts = [*schema["$defs"].values(), *sources]
    known = {frozenset(each["properties"]) for each in parts if "properties" in each}
    assert {frozenset(each.names) for each in SECTION_SCHEMAS} <= known
