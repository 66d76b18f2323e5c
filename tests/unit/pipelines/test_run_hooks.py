"""Hooks at the end of a run: what they get, and that they never change its result."""

from __future__ import annotations

import json
import os
import select
import sys
import textwrap
from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import PipelineInvalidError, SecretMissingError, SourceRefusedError
from omnigraph.pipelines.config.definition import Pipeline
from omnigraph.pipelines.ledger.run_ledger import Ledger
from omnigraph.pipelines.run.pipeline_run import RunOptions, run_pipeline
from unit.pipelines.definitions import PEOPLE, SCHEMA, read
from unit.pipelines.http_receiver import open_receiver
from unit.pipelines.reported_runs import HIDDEN, run_once

# A process that was killed ends at once, unless the machine has much other work.
END_S = 60


def _define(folder: Path, hooks: str) -> Pipeline:
    return read(folder, textwrap.dedent(hooks) + PEOPLE)


def test_a_command_reads_a_document_about_the_run_once(tmp_path: Path) -> None:
    program = "import sys; open('seen.json', 'w').write(sys.stdin.read())"
    hooks = f"""
    on_success:
      - command: [{sys.executable}, -c, "{program}"]
    on_failure:
      - command: [{sys.executable}, -c, "open('failed', 'w')"]
    """
    run = run_once(_define(tmp_path, hooks))
    seen = json.loads((tmp_path / "seen.json").read_text())
    assert (seen["event"], seen["run_id"], seen["status"]) == ("on_success", run.id, "succeeded")
    assert seen["text"] == "pipeline people, slot s, succeeded"
    counts = ("rows_read", "rows_written", "rows_rejected", "error_code")
    assert [seen["targets"][0][name] for name in counts] == [1, 1, 0, None]
    assert "source_position" not in seen
    assert (run.warnings, (tmp_path / "failed").exists()) == ((), False)


def test_a_webhook_gets_failures_without_secrets_and_is_tried_again(tmp_path: Path) -> None:
    with open_receiver() as service:
        service.statuses = [503]
        hooks = f"""
        on_failure:
          - {{webhook: "{service.url}/alerts", headers: {{Authorization: "Bearer ${{TOKEN}}"}}}}
        """
        run = run_once(_define(tmp_path, hooks), SourceRefusedError(f"no access with {HIDDEN}"))
    (path, headers, _), (*_, body) = service.posts
    assert (path, headers["Authorization"]) == ("/alerts", f"Bearer {HIDDEN}")
    document = json.loads(body)
    (target,) = document["targets"]
    assert (document["status"], target["error_code"]) == ("failed", "source_refused")
    assert document["text"] == "pipeline people, slot s, failed: no access with ${TOKEN}"
    assert HIDDEN not in body.decode()
    assert (run.status, run.warnings) == ("failed", ())


def test_a_hook_that_fails_is_a_warning_and_the_run_stays_as_it_was(tmp_path: Path) -> None:
    with open_receiver() as service:
        service.statuses = [404]
        hooks = f"""
        on_success:
          - {{command: [{sys.executable}, -c, "print('no mail'); print(); exit(3)"]}}
          - {{command: [./not-there]}}
          - {{webhook: "{service.url}/gone"}}
          - {{webhook: "not an address"}}
        """
        pipeline = _define(tmp_path, hooks)
        run = run_once(pipeline)
    assert (run.status, run.targets[0].status) == ("succeeded", "succeeded")
    assert run.warnings == (
        f"on_success ({sys.executable}) failed: it ended with 3: no mail",
        "on_success (./not-there) failed: it cannot be started: No such file or directory",
        f"on_success (webhook) failed: {service.url} answers 404",
        "on_success (webhook) failed: the service: the address or a header cannot be sent",
    )
    assert run.to_json()["warnings"] == list(run.warnings)
    # Warnings stay in the ledger.
    assert Ledger.open(pipeline.graphs["company"].uri, "people").list_runs() == [run]


@pytest.mark.slow
def test_a_command_ends_with_its_time_and_so_do_its_children(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "held")
    program = "exec 9> held; sleep 300 & echo $! $$ >&9; wait"
    hook = f'on_success: [{{command: [/bin/sh, -c, "{program}"], timeout: 1}}]\n'
    with open(os.open(tmp_path / "held", os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0) as held:
        run = run_once(_define(tmp_path, hook))
        assert run.warnings == ("on_success (/bin/sh) failed: it took more than 1 s",)
        assert len((held.read() or b"").split()) == 2
        # It ends when the last of them ends.
        assert select.select([held], [], [], END_S)[0]
        assert held.read() == b""


def test_runs_that_are_stopped_or_never_begin_call_the_hooks_of_failures(tmp_path: Path) -> None:
    program = "import sys; open('seen.jsonl', 'a').write(sys.stdin.read() + chr(10))"
    pipeline = _define(
        tmp_path, f'on_failure: [{{command: [{sys.executable}, -c, "{program}"]}}]\n'
    )
    with pytest.raises(KeyboardInterrupt):
        run_once(pipeline, KeyboardInterrupt())
    text = Path(pipeline.file).read_text().replace("people.jsonl", "'${MISSING_PEOPLE}'")
    with pytest.raises(SecretMissingError):
        run_pipeline(read(tmp_path, text), RunOptions(environment={}))
    seen = [json.loads(line) for line in (tmp_path / "seen.jsonl").read_text().splitlines()]
    assert [(each["status"], each["error_code"]) for each in seen] == [
        ("interrupted", None),
        ("failed", "secret_missing"),
    ]


def test_a_hook_without_its_secret_fails_alone(tmp_path: Path) -> None:
    pipeline = _define(tmp_path, "on_failure: [{webhook: '${UNSET_URL}'}]\n")
    omnigraph.create(pipeline.graphs["company"].uri, schema=SCHEMA).close()
    with pytest.raises(SecretMissingError, match="UNSET_URL"):
        run_pipeline(pipeline, RunOptions(environment={}))
    (run,) = Ledger.open(pipeline.graphs["company"].uri, "people").list_runs()
    assert (run.status, run.error_code) == ("failed", "secret_missing")
    assert run.warnings == ("on_failure (webhook) failed: not set: ${UNSET_URL}",)


@pytest.mark.parametrize(
    ("hook", "message"),
    [
        ("{}", "give either 'command' or 'webhook'"),
        ("{command: [a], webhook: 'https://x'}", "give either 'command' or 'webhook'"),
        ("{command: notify --all}", r"no shell reads the command \(write a list: \[notify, --all"),
        ("{command: []}", "the command is empty"),
        ("{webhook: 'https://ada:pw@x'}", "'webhook' holds a password"),
        ("{webhook: 'https://x', headers: {X-Api-Key: abc}}", "'X-Api-Key' holds a secret"),
        ("{command: [a], headers: {a: b}}", "'headers' are of a webhook"),
    ],
)
def test_hooks_that_cannot_work_are_problems(tmp_path: Path, hook: str, message: str) -> None:
    with pytest.raises(PipelineInvalidError, match=message):
        _define(tmp_path, f"on_failure: [{hook}]\n")
