"""`omnigraph shell`, from standard input and at a prompt."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

import omnigraph
from omnigraph.cli.shell.shell_prompt import SchemaCompleter, read_typed
from omnigraph.cli.shell.shell_session import COMMANDS, ShellSession
from unit.cli.small_company import Run

NAMES = "match { $p: Person } return { $p.name as name } order { $p.name }\n"


def test_inputs_are_run_one_after_another(run: Run, store: Path) -> None:
    text = NAMES + 'insert Person { name: "zoe" }\n' + NAMES.replace(" return", "\nreturn") + "\n"
    result = run("shell", store, "--format", "csv", text=text)
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[:4] == ["name", "ada", "bob", "eve"]
    assert lines[4].startswith("shell: 1 node, 0 edges on main: commit ")
    assert lines[5:] == ["name", "ada", "bob", "eve", "zoe"]


def test_parameters_branches_and_states_hold_until_they_change(run: Run, store: Path) -> None:
    query = "query q($who: String) { match { $p: Person { name: $who } } return { $p.age as a } }\n"
    text = "\\set who ada\n" + query + "branch create draft;\n\\branch draft\n"
    text += 'delete Person where name = "ada"\n' + query + "\\branch main\n" + query + "\\at 0\n"
    result = run("shell", store, "--json", text=text + query + "\\set who\n" + query)
    documents = _read_documents(result.stdout)
    assert [each.get("row_count") for each in documents[:-1]] == [1, None, 0, 1, 0]
    assert documents[1]["branch"] == "draft"
    assert documents[-1]["code"] == "bad_request"
    assert result.exit_code == 1


def test_the_first_mistake_ends_what_is_piped_in(run: Run, store: Path) -> None:
    result = run("shell", store, text="\\brnch\n" + NAMES)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "there is no command \\brnch" in result.stderr
    assert "did you mean 'branch'?" in result.stderr


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("\\at", "the state is missing"),
        ("\\branch draft", "draft"),
        ("\\schema Persn", "there is no type Persn"),
        ("\\format xml", "'xml' is not a format"),
        ("\\log many", "'many' is not a number of commits"),
        ("\\timing maybe", "'maybe' is neither on nor off"),
        ("\\run", "the path of the file is missing"),
        ("\\run none.gq", "none.gq"),
        ('\\at 0\ninsert Person { name: "x" }', "the shell reads a state of the past"),
        ("match { $p: Persn } return { $p.name }", "Persn"),
    ],
)
def test_a_mistake_is_reported(run: Run, store: Path, text: str, problem: str) -> None:
    result = run("shell", store, text=text)
    assert result.exit_code == 1
    assert problem in result.stderr


@pytest.mark.parametrize(
    ("text", "place", "shown"),
    [
        ("match { $p: Persn } return { $p.name }", "shell:1:13", "unknown node type 'Persn'"),
        ("match { $p: Person }\nreturn { $p.nam };", "shell:2:13", "did you mean 'name'?"),
        ("update Person set { age: 1 }", "shell:1:29", "expected 'where', found the end"),
        ("\\explain match { $p: Persn } return { 1 as n }", "shell:1:13", "'Persn'"),
        ("query q() { return { $p.n } }", "shell:1:22", "'$p' is not bound"),
    ],
)
def test_a_mistake_is_shown_in_what_was_typed(
    run: Run, store: Path, text: str, place: str, shown: str
) -> None:
    result = run("shell", store, text=text)
    assert result.exit_code == 1
    assert place in result.stderr
    assert shown in result.stderr
    assert "query shell()" not in result.stderr


def test_commands_show_what_they_say(run: Run, store: Path, tmp_path: Path) -> None:
    (tmp_path / "q.gq").write_text(f"query q() {{ {NAMES.replace('$p.name as', '6 * 7 as')} }}")
    text = "\\help\n\\branch\n\\schema Knows\n\\log 1\n\\timing on\n"
    text += f"\\run {tmp_path / 'q.gq'}\n\\explain {NAMES}\\quit\n"
    found = run("shell", store, text=text + NAMES)
    assert found.exit_code == 0, found.stderr
    for name in COMMANDS:
        assert f"\\{name}" in found.stdout
    for part in ("edge Knows: Person -> Person {", "timing is on", "42", "plan of shell"):
        assert part in found.stdout
    assert re.search(r"time: \d+\.\d ms", found.stdout)
    assert "ada" not in found.stdout


def test_a_prompt_edits_completes_and_remembers(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    with (
        omnigraph.open(store) as graph,
        create_pipe_input() as keys,
        create_app_session(input=keys, output=DummyOutput()),
    ):
        session = ShellSession(graph)
        typed = read_typed(session)
        keys.send_text("match { $p: Person }\rreturn { $p.name }\r\r")
        assert next(typed) == "match { $p: Person }\nreturn { $p.name }\n"
        offered = SchemaCompleter(session).get_completions(Document("update Kn"), CompleteEvent())
        assert [(each.text, each.start_position) for each in offered] == [("Knows", -2)]
        keys.send_text("\x03\\log\r")
        assert next(typed) == "\\log"
        # Of an input that is not whole, an empty line ends the shell too.
        keys.send_text("match {\r\x04")
        assert list(typed) == []
    history = tmp_path / "home" / "shell_history"
    assert "$p: Person" in history.read_text()
    assert history.stat().st_mode & 0o077 == 0


def _read_documents(text: str) -> list[dict[str, object]]:
    decoder, found, start = json.JSONDecoder(), [], 0
    while start < len(text.rstrip()):
        document, start = decoder.raw_decode(text, start)
        found.append(document)
        while start < len(text) and text[start].isspace():
            start += 1
    return found
