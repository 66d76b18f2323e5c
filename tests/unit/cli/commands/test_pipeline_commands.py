from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

import omnigraph
from omnigraph.cli.commands import pipeline_commands
from omnigraph.cli.views.pipeline_views import PipelineRun, ScheduledRuns
from omnigraph.cli.views.progress_bars import LoadBars
from omnigraph.errors import SourceFailedError
from omnigraph.pipelines.config.definition import Pipeline
from omnigraph.pipelines.ledger.run_ledger import Ledger, TargetRun, encode_target
from omnigraph.pipelines.run.pipeline_run import RunOptions
from omnigraph.pipelines.run.scheduler import ScheduledRun
from unit.cli.small_company import Answer, Run

SCHEMA = "node Person {\n  handle: String @key\n  name: String\n}\n"
DEFINITION = """\
graphs: {company: "${STORE}"}
source: {kind: files, paths: people.jsonl}
schedule: "0 * * * *"
into:
  - graph: company
    mode: append
    map:
      nodes:
        - type: Person
          set: {handle: lower(login), name: {template: "Dr. {last}"}}
"""


@pytest.fixture
def definitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STORE", str(tmp_path / "g.omni"))
    omnigraph.create(tmp_path / "g.omni", schema=SCHEMA).close()
    folder = tmp_path / "pipelines"
    folder.mkdir()
    (folder / "people.yaml").write_text(DEFINITION)
    return folder


# Spark parses the expression: the worker that has it started already is the right one.
@pytest.mark.xdist_group("spark")
def test_validate_checks_mappings_against_schemas(
    run: Run, answer: Answer, definitions: Path
) -> None:
    result = run("pipeline", "validate", "--folder", definitions)
    assert (result.exit_code, result.stdout) == (0, "people: valid, 1 target\n")
    document = answer("pipeline", "validate", "people", "--folder", definitions)
    assert document["pipelines"][0]["valid"] is True
    (definitions / "people.yaml").write_text(DEFINITION.replace("name: {", "nme: {"))
    result = run("pipeline", "validate", "--folder", definitions)
    assert result.exit_code == 1
    place = f"{definitions}/people.yaml"
    assert (
        f"error: {place}:10:39: Person has no property 'nme' (did you mean 'name'?)"
        in result.stderr
    )
    assert f"error: {place}:9:11: Person: no value is set for name" in result.stderr


def test_validate_tells_what_is_wrong_with_every_file(run: Run, definitions: Path) -> None:
    (definitions / "a.yaml").write_text("sorce: x\n")
    (definitions / "b.yaml").write_text("into: [")
    result = run("pipeline", "validate", "--folder", definitions)
    assert result.exit_code == 1
    assert "a.yaml:1:1: pipeline: unknown field 'sorce' (did you mean 'source'?)" in result.stderr
    assert "b.yaml:1:8: this is not YAML" in result.stderr
    assert result.stdout == "a: 3 problems\nb: 1 problem\npeople: valid, 1 target\n"
    document = json.loads(run("pipeline", "validate", "--folder", definitions, "--json").stdout)
    assert [each["valid"] for each in document["pipelines"]] == [False, False, True]
    assert document["pipelines"][0]["problems"][0] == {
        "file": str(definitions / "a.yaml"),
        "line": 1,
        "column": 1,
        "path": "sorce",
        "code": "unknown_field",
        "message": "pipeline: unknown field 'sorce'",
        "hint": "did you mean 'source'?",
    }


def test_validate_looks_at_every_file_that_is_named(run: Run, definitions: Path) -> None:
    text = DEFINITION.replace("name: {", "nme: {") + "schedule: never\nsorce: x\n"
    (definitions / "people.yaml").write_text(text)
    (definitions / "a.yaml").write_text("sorce: x\n")
    result = run("pipeline", "validate", "peple", "people", "a", "--folder", definitions)
    assert result.exit_code == 1
    told = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    starts = [line.removeprefix(f"error: {definitions}/").partition(" ")[0] for line in told]
    assert "pipeline 'peple' not found (did you mean 'people'?)" in told[0]
    assert starts[1:5] == [f"people.yaml:{at}:" for at in ("9:11", "10:39", "11:1", "12:1")]
    assert [start.partition(":")[0] for start in starts[5:]] == ["a.yaml"] * 3
    assert result.stdout.splitlines()[0] == "peple: 1 problem"


def test_a_definition_that_cannot_be_read_stops_no_other(run: Run, definitions: Path) -> None:
    (definitions / "a.yaml").write_text("sorce: x\n")
    for asked in ("status", "schedule"):
        result = run("pipeline", asked, "--folder", definitions)
        assert result.exit_code == 1
        assert "a.yaml:1:1: pipeline: unknown field 'sorce'" in result.stderr
        # Its file is not there: that is told, for it was looked at.
        wanted = "never ran" if asked == "status" else "no such file"
        assert wanted in result.stdout


def test_a_missing_secret_keeps_nobody_from_validating(
    run: Run, definitions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STORE")
    result = run("pipeline", "validate", "--folder", definitions)
    assert result.exit_code == 0
    assert "graph 'company' is not checked: STORE is not set" in result.stdout
    result = run("pipeline", "run", "people", "--folder", definitions)
    assert result.exit_code == 1
    assert "not set: ${STORE}" in result.stderr


def test_a_schema_file_is_enough_to_check_a_mapping(run: Run, definitions: Path) -> None:
    (definitions / "s.pg").write_text(SCHEMA.replace("name", "label"))
    text = DEFINITION.replace('"${STORE}"', "{uri: nothing.omni, schema: s.pg}")
    (definitions / "people.yaml").write_text(text)
    result = run("pipeline", "validate", "--folder", definitions)
    assert result.exit_code == 1
    assert "Person has no property 'name'" in result.stderr


def test_plan_shows_what_a_run_would_do_without_the_source(
    run: Run, answer: Answer, definitions: Path
) -> None:
    document = answer("pipeline", "plan", "people", "--folder", definitions)
    (target,) = document["targets"]
    assert (target["graph"], target["branch"], target["mode"]) == (
        "graph.company",
        "main",
        "append",
    )
    assert target["types"][0]["columns"] == {
        "handle": "(lower(login))",
        "name": "concat('Dr. ', cast((last) AS string))",
    }
    assert (document["sources"], document["approval"]) == (
        [{"name": "source", "kind": "files"}],
        "none",
    )
    lines = run("pipeline", "plan", "people", "--folder", definitions).stdout.splitlines()
    assert lines[1:5] == [
        "  from source (files)",
        "  into company/main (append)",
        "    node Person",
        "      handle  (lower(login))",
    ]


def test_plan_lists_every_secret_that_is_not_set(answer: Answer, definitions: Path) -> None:
    text = DEFINITION.replace("people.jsonl", '"${FILES}/people.jsonl"')
    text = text.replace(
        "mode: append",
        'mode: append\n    rejects: "${BAD}"\n    on_error: quarantine\n    max_rejected: 100%',
    )
    (definitions / "people.yaml").write_text(text + 'ledger: "${RUNS}/x"\n')
    document = answer("pipeline", "plan", "people", "--folder", definitions)
    assert sorted(document["missing_secrets"]) == ["BAD", "FILES", "RUNS"]


def test_run_shows_how_far_it_is(
    run: Run, definitions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[object] = []

    @contextmanager
    def bars() -> Iterator[LoadBars]:
        yield LoadBars(stages=seen.append)

    def ran(pipeline: Pipeline, options: RunOptions) -> NoReturn:
        options.progress(pipeline.name)
        raise SourceFailedError("later")

    monkeypatch.setattr(pipeline_commands, "show_load_bars", bars)
    monkeypatch.setattr("omnigraph.pipelines.run.pipeline_run.run_pipeline", ran)
    assert run("pipeline", "run", "people", "--folder", definitions).exit_code == 1
    assert seen == ["people"]


def test_an_overwrite_is_refused_without_the_digest_of_its_plan(
    run: Run, answer: Answer, definitions: Path
) -> None:
    text = DEFINITION.replace("mode: append", "mode: overwrite")
    (definitions / "people.yaml").write_text(text)
    digest = answer("pipeline", "plan", "people", "--folder", definitions)["definition_digest"]
    result = run("pipeline", "run", "people", "--folder", definitions)
    assert result.exit_code == 1
    assert f"--approve {digest}" in result.stderr


def test_runs_and_status_tell_what_the_ledger_and_the_records_say(
    run: Run, answer: Answer, definitions: Path, tmp_path: Path
) -> None:
    where = ("--folder", definitions)
    assert run("pipeline", "runs", "people", *where).stdout == "no runs\n"
    assert "people: never ran; next " in run("pipeline", "status", *where).stdout
    key = "pipeline:people:company/main:s"
    target = encode_target(TargetRun("company/main", "company", "main", key))
    ledger = Ledger.open(str(tmp_path / "g.omni"), "people")
    log = ledger.start_run({"slot": "s", "digest": "d", "trigger": "manual", "targets": [target]})
    # The process wrote its commit and ended before it could say so.
    with omnigraph.open(tmp_path / "g.omni") as graph:
        row = {"type": "Person", "data": {"handle": "ada", "name": "Ada"}}
        message = f"pipeline people, s, run {log.run_id}"
        commit = graph.branch("main").load([row], mode="append", key=key, message=message).commit
    (found,) = answer("pipeline", "runs", "people", *where)["runs"]
    assert (found["run_id"], found["status"]) == (log.run_id, "running")
    assert found["targets"][0]["commit_id"] == commit.id
    assert found["targets"][0]["rows_written"] == 1
    assert found["targets"][0]["rows_rejected"] is None
    assert commit.id in run("pipeline", "runs", "people", *where).stdout
    (status,) = answer("pipeline", "status", *where)["pipelines"]
    assert status["last_run"]["targets"][0]["status"] == "succeeded"


def test_records_that_were_left_out_are_told_with_the_file_of_their_reasons(
    run: Run, answer: Answer, definitions: Path, tmp_path: Path
) -> None:
    where = ("--folder", definitions)
    target = TargetRun("company/main", "company", "main", "k", "succeeded", "C")
    told = replace(target, rejected=3, rejects=f"{tmp_path}/bad/rejects-1.parquet")
    started = {"slot": "s", "digest": "d", "trigger": "manual", "targets": [encode_target(target)]}
    log = Ledger.open(str(tmp_path / "g.omni"), "people").start_run(started)
    log.record_target(told)
    log.add_event("finished", {"status": "succeeded"})
    (found,) = answer("pipeline", "runs", "people", *where)["runs"]
    assert found["targets"][0]["rows_rejected"] == 3
    assert found["targets"][0]["rejects"] == told.rejects
    (status,) = answer("pipeline", "status", *where)["pipelines"]
    assert status["last_run"]["targets"][0]["rejects"] == told.rejects
    line = f"  company/main left out 3 rows, reasons in {told.rejects}"
    assert line in run("pipeline", "status", *where).stdout.splitlines()
    (ended,) = Ledger.open(str(tmp_path / "g.omni"), "people").list_runs()
    assert line in list(PipelineRun(ended).to_lines())
    assert line in list(ScheduledRuns([ScheduledRun("people", "s", ended)]).to_lines())


@pytest.mark.parametrize(
    "asked", [("validate",), ("plan", "people"), ("status",), ("runs", "people")]
)
def test_no_command_tells_a_value_of_the_environment(
    run: Run, definitions: Path, monkeypatch: pytest.MonkeyPatch, asked: tuple[str, ...]
) -> None:
    monkeypatch.setenv("STORE", "http://me:s3cret-word@127.0.0.1:1/g.omni")
    plain = DEFINITION.replace("lower(login)", "login").replace('{template: "Dr. {last}"}', "last")
    (definitions / "people.yaml").write_text(plain)
    result = run("pipeline", *asked, "--folder", definitions)
    assert result.exit_code == 1
    assert "s3cret-word" not in result.stdout + result.stderr
    assert "127.0.0.1" not in result.stdout + result.stderr


def test_a_source_that_is_not_there_fails_the_run_and_is_in_the_ledger(
    run: Run, answer: Answer, definitions: Path
) -> None:
    result = run("pipeline", "run", "people", "--folder", definitions, "--as", "ada")
    assert result.exit_code == 1
    assert "people.jsonl: no such file" in result.stderr
    (found,) = answer("pipeline", "runs", "people", "--folder", definitions)["runs"]
    assert (found["status"], found["actor_id"]) == ("failed", "ada")


@pytest.mark.parametrize(
    "arguments", [("--available-now",), ("--stream", "--slot", "x")], ids=["now", "slot"]
)
def test_options_that_exclude_each_other_are_refused(
    run: Run, definitions: Path, arguments: tuple[str, ...]
) -> None:
    result = run("pipeline", "run", "people", "--folder", definitions, *arguments)
    assert result.exit_code == 2


def test_a_pipeline_that_is_not_defined_is_told(run: Run, definitions: Path) -> None:
    result = run("pipeline", "plan", "peple", "--folder", definitions)
    assert result.exit_code == 1
    assert "pipeline 'peple' not found" in result.stderr
    assert "did you mean 'people'?" in result.stderr
    result = run("pipeline", "status", "--folder", definitions / "nothing")
    assert result.exit_code == 1
    assert "is not a folder" in result.stderr
