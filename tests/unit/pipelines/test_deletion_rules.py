"""What definitions say about deletions, and what `validate` says about schedules that overwrite."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import PipelineInvalidError, TooManyDeletedError
from omnigraph.pipelines.config.definition_validator import validate_definition
from omnigraph.pipelines.config.expectations import RejectLimit
from omnigraph.pipelines.mapping.mapping_checks import check_mapping
from omnigraph.pipelines.run.pipeline_run import RunOptions
from omnigraph.pipelines.run.scheduler import run_due
from omnigraph.pipelines.run.target_attempt import iter_delete_limits, require_delete_limit
from unit.pipelines.definitions import PEOPLE, SCHEMA, catalog, read, with_map, written

PERSON = "set: {handle: login, name: n, level: l}"
NOW = datetime(2026, 3, 5, 12, 0, tzinfo=UTC)


def _with_rule(more: str) -> str:
    return PEOPLE.replace("- type: Person", f"- type: Person\n          {more}")


def test_a_rule_names_its_operations_or_what_may_be_missing(tmp_path: Path) -> None:
    named = read(tmp_path, _with_rule("op: {column: kind, delete: [d, D], update: u}"))
    operations = named.targets[0].mapping.rules[0].operations
    assert operations is not None
    assert (operations.sql, operations.deletes) == ("kind", ("d", "D"))
    assert operations.values == ("insert", "u", "d", "D")
    missing = read(tmp_path, _with_rule("delete_missing: 2.5%"))
    assert missing.targets[0].mapping.rules[0].missing_max == RejectLimit(percent=2.5)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("op: {delete: d}", "people.yaml:9:15: op: 'column' is missing"),
        ("op: {column: op, drop: d}", "op: unknown field 'drop'"),
        ("op: {column: op, delete: x, update: x}", "op: 'x' means two things"),
        ("delete_missing: some", "'some' is not a number of entities"),
        ("delete_missing: 101%", "'101%' is not a number of entities"),
        (
            "delete_missing: 1%\n          op: {column: op}",
            "'op' says which entities are deleted: 'delete_missing' excludes it",
        ),
    ],
)
def test_what_is_wrong_has_a_line_and_a_column(tmp_path: Path, rule: str, message: str) -> None:
    with pytest.raises(PipelineInvalidError) as refused:
        read(tmp_path, _with_rule(rule))
    assert message in str(refused.value)


def test_a_source_of_what_is_new_lacks_almost_everything(tmp_path: Path) -> None:
    text = _with_rule("delete_missing: 5%").replace(".jsonl}", ".jsonl, new_files: true}")
    with pytest.raises(PipelineInvalidError, match="a run reads only what is new in source"):
        read(tmp_path, text)


def test_another_rule_of_the_type_that_reads_what_is_new_lacks_almost_everything_too(
    tmp_path: Path,
) -> None:
    text = """
    graphs: {company: company.omni}
    sources:
      all: {kind: files, paths: all.jsonl}
      new: {kind: files, paths: new, format: json, new_files: true}
    into:
      - graph: company
        map:
          edges:
            - {type: Knows, source: all, delete_missing: 5%, from: a, to: b}
            - {type: TYPE, source: new, from: a, to: b}
    """
    with pytest.raises(PipelineInvalidError, match="Knows: a run reads only what is new in new"):
        read(tmp_path, text.replace("TYPE", "knows"))
    assert read(tmp_path, text.replace("TYPE", "Serves")).targets


def test_the_limit_of_an_edge_is_found_by_its_name_in_any_case(tmp_path: Path) -> None:
    text = with_map("edges:\n  - {type: knows, delete_missing: 5%, from: a, to: b}")
    (target,) = read(tmp_path, text).targets
    assert dict(iter_delete_limits(target, catalog())) == {"edge:Knows": RejectLimit(percent=5.0)}
    with pytest.raises(TooManyDeletedError):
        require_delete_limit(target, catalog(), "edge:Knows", 1, 10)


def test_deletions_need_a_merge_and_a_key(tmp_path: Path) -> None:
    def find_problems(rule: str, mode: str) -> list[str]:
        mapped = read(tmp_path, with_map(f"nodes:\n  - {rule}")).targets[0].mapping
        return [each.message for each in check_mapping(mapped, catalog(), mode=mode).problems]

    note = "{type: Note, delete_missing: 5%, set: {text: t}}"
    (message,) = find_problems(note, "merge")
    assert message == "Note has no key by which 'delete_missing' finds the records of an entity"
    person = f"{{type: Person, op: {{column: op}}, {PERSON}}}"
    assert find_problems(person, "merge") == []
    assert find_problems(person, "append") == ["Person: 'mode: append' deletes nothing by records"]


def test_a_schedule_that_overwrites_needs_an_approval_and_takes_it(tmp_path: Path) -> None:
    text = PEOPLE.replace("graph: company\n", "graph: company\n    mode: overwrite\n")
    path = written(tmp_path, f'schedule: "0 * * * *"\n{text}')
    omnigraph.create(tmp_path / "company.omni", schema=SCHEMA).close()
    pipeline = read(tmp_path, path.read_text())
    (remark,) = validate_definition(path).remarks
    assert remark.endswith(f"run the schedule with --approve {pipeline.digest}")
    (refused,) = run_due([pipeline], NOW, RunOptions())
    assert refused.error is not None
    assert "this definition is not approved" in refused.error
    (ran,) = run_due([pipeline], NOW, RunOptions(approved=(pipeline.digest,)))
    assert ran.error is not None
    # It went on to its source, which is not there.
    assert "people.jsonl" in ran.error
