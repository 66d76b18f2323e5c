"""Hooks: commands that read a document about a run, and services that it is posted to."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import IO, Final

from omnigraph.pipelines.config.report_settings import ON_FAILURE, ON_SUCCESS, Hook
from omnigraph.pipelines.ledger.run_ledger import SUCCEEDED, Run
from omnigraph.pipelines.reports.report_sender import ReportFailedError, post_report
from omnigraph.schema.schema_shape import JsonObject

# Of what a command prints, the end is shown.
_OUTPUT_BYTES_MAX: Final = 4096
_LINE_CHARACTERS_MAX: Final = 200


def event_of(run: Run) -> str:
    """The hooks that a run calls."""
    return ON_SUCCESS if run.status == SUCCEEDED else ON_FAILURE


def build_document(run: Run) -> JsonObject:
    """The run as `pipeline runs --json` has it, without positions, and a text for people."""
    document = run.to_json()
    del document["source_position"]
    return {"event": event_of(run), "text": describe_run(run), **document}


def describe_run(run: Run) -> str:
    """A run in one line."""
    reason = f": {run.errors[0]}" if run.errors else ""
    return f"pipeline {run.pipeline}, slot {run.slot or '?'}, {run.status}{reason}"


def run_hook(hook: Hook, document: JsonObject, folder: Path) -> None:
    """Run a hook to its end, or to that of its time."""
    content = json.dumps(document).encode()
    if hook.webhook is None:
        _run_command(hook, content, folder)
        return
    headers = {"Content-Type": "application/json", **hook.headers}
    post_report(hook.webhook, content, headers=headers, timeout_s=hook.timeout_s)


def _run_command(hook: Hook, content: bytes, folder: Path) -> None:
    # Files, not pipes: a command need not read, and one that is stopped may leave children.
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as printed:
        given.write(content)
        given.seek(0)
        try:
            process = subprocess.Popen(  # noqa: S603 — the definition names it; no shell reads it
                hook.command,
                cwd=folder,
                stdin=given,
                stdout=printed,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as failure:
            reason = getattr(failure, "strerror", None) or str(failure)
            raise ReportFailedError(f"it cannot be started: {reason}") from None
        try:
            code = process.wait(hook.timeout_s)
        except BaseException as failure:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if isinstance(failure, subprocess.TimeoutExpired):
                raise ReportFailedError(f"it took more than {hook.timeout_s} s") from None
            raise
        if code != 0:
            raise ReportFailedError(f"it ended with {code}{_read_last_line(printed)}")


def _read_last_line(printed: IO[bytes]) -> str:
    size = printed.seek(0, os.SEEK_END)
    printed.seek(max(0, size - _OUTPUT_BYTES_MAX))
    lines = printed.read().decode(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f": {last[:_LINE_CHARACTERS_MAX]}" if last else ""
