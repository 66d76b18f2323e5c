from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from omnigraph import __version__
from omnigraph.cli.app import app, build_command_tree
from unit.cli.command_tree import verbs

SCHEMA = """node Person {
  name: String @key
  age: I32?
}
edge Knows: Person -> Person
"""
QUERY = """query everyone() {
  match { $p: Person }
  return { $p.name }
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "s.pg").write_text(SCHEMA)
    (tmp_path / "q.gq").write_text(QUERY)
    return tmp_path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_version_prints_the_program_and_the_schema_format() -> None:
    result = run("version")
    assert result.stdout.splitlines() == [f"omnigraph {__version__}", "internal-schema 5"]
    for flag in ("--version", "-v"):
        assert (run(flag).exit_code, run(flag).stdout) == (0, result.stdout)


def test_the_legend_has_every_verb_in_one_of_its_groups() -> None:
    result = run("--help")
    assert result.exit_code == 0
    legend = " ".join(result.stdout.partition("Commands by what they need:")[2].split())
    heads = re.findall(r"(?:^|\. )(\w+)[^:.]*: ([^.]+)", legend)
    assert [head for head, _ in heads] == ["any", "served", "direct", "control", "local"]
    named = Counter(name for _, names in heads for name in names.split(", "))
    assert {name: count for name, count in named.items() if count != 1} == {}
    synonyms = {"get": "show"}
    for verb in verbs():
        path = [synonyms.get(word, word) for word in verb.path]
        assert named[path[0]] + named[" ".join(path)] >= 1, verb
    first_words = {name.partition(" ")[0] for name in named}
    assert set(build_command_tree().commands) <= first_words


def test_lint_of_a_good_file_exits_with_0(folder: Path) -> None:
    result = run("lint", "--schema", folder / "s.pg", "--query", folder / "q.gq")
    assert result.exit_code == 0, result.output
    assert "ok     read      everyone" in result.stdout
    assert result.stdout.rstrip().endswith("1 query, 0 errors, 0 warnings")


def test_lint_of_a_type_error_exits_with_1_and_points_at_it(folder: Path) -> None:
    (folder / "q.gq").write_text(QUERY.replace("$p.name", "$p.nam"))
    result = run("lint", "--schema", folder / "s.pg", "--query", folder / "q.gq")
    assert result.exit_code == 1
    assert "q.gq:3:15: error[T6]" in result.stderr
    assert "did you mean 'name'?" in result.stderr


def test_lint_json_is_the_documented_document(folder: Path) -> None:
    (folder / "q.gq").write_text(QUERY + QUERY.replace("everyone", "b").replace("Person", "Nope"))
    result = run("lint", "--schema", folder / "s.pg", "--query", folder / "q.gq", "--json")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert list(document) == [
        "status",
        "schema_source",
        "query_path",
        "queries_processed",
        "errors",
        "warnings",
        "infos",
        "results",
        "findings",
        "code",
    ]
    assert document["status"] == "error"
    assert document["schema_source"] == {"kind": "file", "path": str(folder / "s.pg")}
    assert document["queries_processed"] == 2
    assert [(each["name"], each["kind"], each["status"]) for each in document["results"]] == [
        ("everyone", "read", "ok"),
        ("b", "read", "error"),
    ]
    assert document["results"][0]["operation"]["result"] == [
        {"name": "name", "kind": "string", "nullable": False}
    ]
    assert [each["code"] for each in document["findings"]] == ["T1"]


def test_lint_json_of_an_unreadable_file_is_one_q000(folder: Path) -> None:
    (folder / "q.gq").write_text("query q( {\n")
    result = run("lint", "--schema", folder / "s.pg", "--query", folder / "q.gq", "--json")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert document["results"] == []
    assert [(each["severity"], each["code"]) for each in document["findings"]] == [
        ("error", "Q000")
    ]


def test_lint_json_carries_the_edit_that_would_mend_a_finding(folder: Path) -> None:
    (folder / "q.gq").write_text(QUERY.replace("everyone()", "everyone"))
    result = run("lint", "--schema", folder / "s.pg", "--query", folder / "q.gq", "--json")
    (finding,) = json.loads(result.stdout)["findings"]
    assert (finding["code"], finding["cause"]) == ("Q000", "Q002")
    assert finding["suggestion"] == {
        "applicability": "machine_applicable",
        "edits": [{"start": 14, "end": 14, "replacement": "()"}],
    }


def test_lint_json_of_a_broken_schema_reports_the_schema(folder: Path) -> None:
    (folder / "s.pg").write_text("node Person { name: Sting }\n")
    result = run("lint", "--schema", folder / "s.pg", "--query", folder / "q.gq", "--json")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert (document["status"], document["queries_processed"]) == ("error", 0)
    assert [each["code"] for each in document["findings"]] == ["S001"]


def test_wrong_arguments_exit_with_2(folder: Path) -> None:
    assert run("lint", "--schema", folder / "s.pg").exit_code == 2
    assert run("schema", "plan", "--from", folder / "s.pg").exit_code == 2
    assert run("nonsense").exit_code == 2


def test_a_missing_file_is_named(folder: Path) -> None:
    result = run("lint", "--schema", folder / "no.pg", "--query", folder / "q.gq")
    assert result.exit_code == 1
    assert "no.pg: No such file" in result.stderr
    assert result.stdout == ""


def test_schema_check_says_what_a_schema_declares(folder: Path) -> None:
    result = run("schema", "check", folder / "s.pg", "--json")
    document = json.loads(result.stdout)
    assert (document["status"], document["nodes"], document["edges"]) == (
        "ok",
        ["Person"],
        ["Knows"],
    )
    assert document["shape_hash"].startswith("sha256:")


def test_schema_check_reports_every_error_of_a_file(folder: Path) -> None:
    (folder / "s.pg").write_text("node A { x: Sting }\nedge E: A -> B\n")
    result = run("schema", "check", folder / "s.pg")
    assert result.exit_code == 1
    assert "s.pg:1:13: error[S001]" in result.stderr
    assert "s.pg:2:14: error[S005]" in result.stderr


def test_schema_plan_json_is_the_documented_document(folder: Path) -> None:
    (folder / "new.pg").write_text(SCHEMA.replace("age: I32?", "age: I32?\n  city: String?"))
    result = run(
        "schema", "plan", "--from", folder / "s.pg", "--schema", folder / "new.pg", "--json"
    )
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {
        "uri": str(folder / "s.pg"),
        "supported": True,
        "step_count": 1,
        "steps": [
            {
                "kind": "add_property",
                "type_kind": "node",
                "type_name": "Person",
                "property_name": "city",
                "property_type": {
                    "scalar": "String",
                    "nullable": True,
                    "list": False,
                    "enum_values": None,
                },
            }
        ],
    }


def test_schema_plan_of_a_type_change_is_unsupported_with_its_code(folder: Path) -> None:
    (folder / "new.pg").write_text(SCHEMA.replace("I32?", "[I32]?"))
    result = run("schema", "plan", "--from", folder / "s.pg", "--schema", folder / "new.pg")
    assert result.exit_code == 0
    assert "unsupported change on node:Person.age [OG-MF-106, destructive]" in result.stdout
    assert result.stdout.rstrip().endswith("1 step, NOT supported")


def test_fmt_changes_files_and_check_only_tells(folder: Path) -> None:
    (folder / "s.pg").write_text("node   A{x:I32 // kept\n}")
    told = run("fmt", "--check", folder)
    assert told.exit_code == 1
    assert f"would change {folder / 's.pg'}" in told.stdout
    assert (folder / "s.pg").read_text().startswith("node   A")
    assert run("fmt", folder).exit_code == 0
    assert "x: I32 // kept" in (folder / "s.pg").read_text()
    assert run("fmt", "--check", folder).exit_code == 0


def test_fmt_leaves_a_broken_file_alone(folder: Path) -> None:
    (folder / "s.pg").write_bytes(b"node \xff{")
    result = run("fmt", folder / "s.pg")
    assert result.exit_code == 1
    assert "not UTF-8" in result.stderr
    assert (folder / "s.pg").read_bytes() == b"node \xff{"


def test_fmt_goes_on_after_a_file_with_a_problem(folder: Path) -> None:
    (folder / "a.pg").write_text("node A{}")
    (folder / "b.pg").write_text("node {")
    (folder / "c.gq").mkdir()
    result = run("fmt", folder / "nope.gq", folder, "--json")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert str(folder / "a.pg") in document["changed"]
    assert [each["code"] for each in document["diagnostics"]] == ["S001"]
    assert document["problems"] == [f"{folder / 'nope.gq'}: No such file or directory"]


def test_fmt_formats_what_a_link_leads_to(folder: Path) -> None:
    (folder / "real.pg").write_text("node   A {}")
    (folder / "link.pg").symlink_to(folder / "real.pg")
    assert run("fmt", folder / "link.pg").exit_code == 0
    assert (folder / "link.pg").is_symlink()
    assert (folder / "real.pg").read_text() == "node A {}\n"


def test_fmt_leaves_a_read_only_file_alone(folder: Path) -> None:
    path = folder / "s.pg"
    path.write_text("node   A {}")
    path.chmod(0o444)
    result = run("fmt", path)
    assert result.exit_code == 1
    assert "read-only" in result.stderr
    assert path.read_text() == "node   A {}"
    assert [each.name for each in folder.glob(".*")] == []


def test_an_endless_file_is_refused() -> None:
    result = run("schema", "check", "/dev/zero")
    assert result.exit_code == 1
    assert "larger than" in result.stderr


@pytest.mark.parametrize("redirection", [">/dev/full", ">&-", "| head -c 1 >/dev/null"])
def test_output_that_cannot_be_written_gives_no_traceback(folder: Path, redirection: str) -> None:
    program = Path(sys.executable).with_name("omnigraph")
    command = f"{program} schema check {folder / 's.pg'} --json {redirection}"
    finished = subprocess.run(
        ["sh", "-c", command], capture_output=True, text=True, check=False, timeout=60
    )
    assert "Traceback" not in finished.stderr
    assert "Exception ignored" not in finished.stderr


def test_control_characters_of_a_source_never_reach_the_terminal(folder: Path) -> None:
    (folder / "s.pg").write_text("node A { x: \x1b[31m }\n")
    result = run("schema", "check", folder / "s.pg")
    assert result.exit_code == 1
    assert "\x1b" not in result.stderr
    assert "\\x1b[31m" in result.stderr


def test_every_text_can_be_printed_in_every_encoding(folder: Path) -> None:
    (folder / "q.gq").write_text(QUERY.replace("$p.name", '$p.name = "日本語" as x, $p.nämé'))
    program = Path(sys.executable).with_name("omnigraph")
    paths = ["--schema", str(folder / "s.pg"), "--query", str(folder / "q.gq")]
    finished = subprocess.run(
        [str(program), "lint", *paths, "--json"],
        capture_output=True,
        env={"PYTHONIOENCODING": "cp1252"},
        check=False,
        timeout=60,
    )
    assert b"Traceback" not in finished.stderr
    assert json.loads(finished.stdout)["status"] == "error"


def test_fmt_refuses_other_files(folder: Path) -> None:
    (folder / "x.txt").write_text("")
    result = run("fmt", folder / "x.txt")
    assert result.exit_code == 1
    assert "not a .pg or .gq file" in result.stderr
