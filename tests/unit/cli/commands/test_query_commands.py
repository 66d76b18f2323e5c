from __future__ import annotations

import json
from pathlib import Path

import pytest

from unit.cli.small_company import ADD, EVERYONE, Answer, Run


def test_a_query_answers_with_the_documented_document(answer: Answer, store: Path) -> None:
    document = answer("query", "--store", store, "--query", store.parent / "everyone.gq")
    head = answer("commit", "list", store)["commits"][0]["graph_commit_id"]
    assert document == {
        "query_name": "everyone",
        "target": {"branch": "main", "snapshot": None},
        "row_count": 3,
        "columns": ["name", "age"],
        "rows": [
            {"name": "ada", "age": 36},
            {"name": "bob", "age": None},
            {"name": "eve", "age": 41},
        ],
        "graph_commit_id": head,
    }


def test_rows_are_a_table_for_people(run: Run, store: Path) -> None:
    result = run("query", "--store", store, "-e", EVERYONE)
    assert result.exit_code == 0
    assert result.stderr == ""
    assert result.stdout.splitlines() == [
        "3 rows from branch main via everyone",
        "name | age",
        "-----+-----",
        "ada  | 36",
        "bob  | null",
        "eve  | 41",
    ]


@pytest.mark.parametrize(
    ("format_", "lines"),
    [
        ("kv", ["3 rows from branch main via everyone", "row 1", "name: ada", "age: 36"]),
        ("csv", ["name,age", "ada,36", "bob,null", "eve,41"]),
        ("table", ["3 rows from branch main via everyone", "name | age"]),
    ],
)
def test_formats_are_chosen_by_name(run: Run, store: Path, format_: str, lines: list[str]) -> None:
    result = run("query", "--store", store, "-e", EVERYONE, "--format", format_)
    assert result.stdout.splitlines()[: len(lines)] == lines


def test_format_json_is_the_document(run: Run, answer: Answer, store: Path) -> None:
    result = run("query", "--store", store, "-e", EVERYONE, "--format", "json")
    assert json.loads(result.stdout) == answer("query", "--store", store, "-e", EVERYONE)
    first, *rows = run(
        "query", "--store", store, "-e", EVERYONE, "--format", "jsonl"
    ).stdout.splitlines()
    assert json.loads(first)["kind"] == "metadata"
    assert len(rows) == 3


@pytest.mark.parametrize(
    "flags",
    [
        ("-e", "x", "--query", "q.gq"),
        ("-e", "x", "--params", "{}", "--params-file", "p.json"),
        ("-e", "x", "--branch", "main", "--snapshot", "01H"),
        ("-e", "x", "--format", "csv", "--json"),
        ("-e", "x", "--format", "xml"),
    ],
)
def test_flags_that_exclude_each_other_exit_with_2(
    run: Run, store: Path, flags: tuple[str, ...]
) -> None:
    assert run("query", "--store", store, *flags).exit_code == 2


def test_a_query_by_name_alone_needs_a_server(run: Run, store: Path) -> None:
    for verb in ("query", "mutate"):
        result = run(verb, "everyone", "--store", store)
        assert result.exit_code == 1
        assert "needs a server" in result.stderr
    assert "--query PATH or -e GQ" in run("query", "--store", store).stderr


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_text_is_refused(run: Run, store: Path, text: str) -> None:
    assert run("query", "--store", store, "-e", text).exit_code == 1


def test_several_queries_need_a_name(run: Run, answer: Answer, store: Path) -> None:
    text = EVERYONE + EVERYONE.replace("everyone", "again")
    result = run("query", "--store", store, "-e", text)
    assert result.exit_code == 1
    assert "the text declares everyone, again" in result.stderr
    assert run("query", "nope", "--store", store, "-e", text).exit_code == 1
    assert answer("query", "again", "--store", store, "-e", text)["query_name"] == "again"


@pytest.mark.parametrize("params", ["[1]", "{", "1", '{"a": NaN}', "[" * 100_000])
def test_parameters_must_be_a_json_object(run: Run, store: Path, params: str) -> None:
    result = run("query", "--store", store, "-e", EVERYONE, "--params", params)
    assert result.exit_code == 1
    assert "--params: not " in result.stderr
    assert result.stdout == ""


def test_parameters_come_from_the_flag_or_a_file(answer: Answer, store: Path) -> None:
    text = "query q($n: String) { match { $p: Person { name: $n } } return { $p.age as age } }"
    given = answer("query", "--store", store, "-e", text, "--params", '{"n": "ada"}')
    assert given["rows"] == [{"age": 36}]
    path = store.parent / "p.json"
    path.write_text('{"n": "eve"}')
    given = answer("query", "--store", store, "-e", text, "--params-file", path)
    assert given["rows"] == [{"age": 41}]


def test_a_missing_parameter_is_named(run: Run, store: Path) -> None:
    text = "query q($n: String) { match { $p: Person { name: $n } } return { $p.age as age } }"
    result = run("query", "--store", store, "-e", text)
    assert result.exit_code == 1
    assert "parameter 'n' not provided" in result.stderr


def test_diagnostics_name_the_file_they_are_about(run: Run, store: Path) -> None:
    path = store.parent / "typo.gq"
    path.write_text(EVERYONE.replace("$p.age", "$p.agee", 1))
    result = run("query", "--store", store, "--query", path)
    assert result.exit_code == 1
    assert f"{path}:3:32: error[T6]" in result.stderr
    assert "did you mean 'age'?" in result.stderr
    assert result.stdout == ""


def test_a_snapshot_shows_what_was(answer: Answer, run: Run, store: Path) -> None:
    before = answer("commit", "list", store)["commits"][0]["graph_commit_id"]
    answer("mutate", "--store", store, "-e", ADD, "--params", '{"name": "zoe"}')
    now = answer("query", "--store", store, "-e", EVERYONE)
    then = answer("query", "--store", store, "-e", EVERYONE, "--snapshot", before)
    assert (now["row_count"], then["row_count"]) == (4, 3)
    assert then["target"] == {"branch": None, "snapshot": before}
    assert then["graph_commit_id"] == before
    table = run("query", "--store", store, "-e", EVERYONE, "--snapshot", before)
    assert table.stdout.startswith(f"3 rows from snapshot {before} via everyone\n")


def test_a_mutation_answers_with_the_documented_document(answer: Answer, store: Path) -> None:
    head = answer("commit", "list", store)["commits"][0]["graph_commit_id"]
    params = ("--params", '{"name": "zoe", "age": 3}')
    document = answer("mutate", "--store", store, "-e", ADD, *params, "--as", "ada")
    assert list(document) == [
        "branch",
        "query_name",
        "affected_nodes",
        "affected_edges",
        "actor_id",
        "commit",
    ]
    assert (document["branch"], document["query_name"]) == ("main", "add")
    assert (document["affected_nodes"], document["affected_edges"]) == (1, 0)
    assert document["actor_id"] == document["commit"]["actor_id"] == "ada"
    assert document["commit"]["parent_commit_id"] == head


def test_a_mutation_that_matches_nothing_writes_nothing(
    run: Run, answer: Answer, store: Path
) -> None:
    text = 'query q() { delete Person where name = "nobody" }'
    assert answer("mutate", "--store", store, "-e", text)["commit"] is None
    result = run("mutate", "--store", store, "-e", text)
    assert result.exit_code == 0
    assert "nothing was written" in result.stdout
    assert result.stderr == ""


def test_a_mutation_that_breaks_a_rule_fails(run: Run, store: Path) -> None:
    arguments = ("mutate", "--store", store, "-e", ADD, "--params", '{"name": "z", "age": 999}')
    result = run(*arguments)
    assert result.exit_code == 1
    assert "Person.age" in result.stderr
    assert result.stdout == ""
    document = json.loads(run(*arguments, "--json").stdout)
    assert document["violations"][0]["rule"] == "range"


def test_a_lost_precondition_exits_with_4(run: Run, answer: Answer, store: Path) -> None:
    stale, head = (
        each["graph_commit_id"] for each in reversed(answer("commit", "list", store)["commits"])
    )
    arguments = ("mutate", "--store", store, "-e", ADD, "--params", '{"name": "zoe"}')
    lost = run(*arguments, "--if-commit", stale)
    assert lost.exit_code == 4
    assert lost.stdout == ""
    assert head in lost.stderr
    document = json.loads(run(*arguments, "--if-commit", stale, "--json").stdout)
    assert document["precondition_failure"] == {"expected": stale, "actual": head}
    assert document["reason"] == "precondition_failed"
    assert "code" not in document
    assert answer(*arguments, "--if-commit", head)["affected_nodes"] == 1


def test_reads_and_mutations_are_not_mixed_up(run: Run, store: Path) -> None:
    read = run("mutate", "--store", store, "-e", EVERYONE)
    assert read.exit_code == 1
    assert read.stdout == ""
    written = run("query", "--store", store, "-e", ADD, "--params", '{"name": "z"}')
    assert written.exit_code == 1
    assert written.stdout == ""


def test_statements_run_where_they_belong(run: Run, answer: Answer, store: Path) -> None:
    created = answer("mutate", "--store", store, "-e", 'branch create "review/x"')
    assert created == {
        "uri": str(store),
        "from": "main",
        "name": "review/x",
        "actor_id": None,
    }
    listed = answer("query", "--store", store, "-e", "branch list")
    assert listed["target"] is None
    assert listed["graph_commit_id"] is None
    assert listed["rows"] == [{"name": "main"}, {"name": "review/x"}]
    answer("mutate", "--store", store, "-e", 'branch delete "review/x"')
    assert "omnigraph mutate" in run("query", "--store", store, "-e", "branch create a").stderr
    assert "omnigraph query" in run("mutate", "--store", store, "-e", "branch list").stderr
    plan = run("query", "--store", store, "-e", f"explain {EVERYONE}")
    assert plan.exit_code == 0
    assert "via explain" in plan.stdout


def test_a_statement_takes_nothing_that_queries_take(run: Run, store: Path) -> None:
    for flags in (("NAME",), ("--params", "{}"), ("--branch", "main")):
        result = run("query", "--store", store, "-e", "branch list", *flags)
        assert result.exit_code == 1
        assert f"does not take {flags[0]}" in result.stderr


def test_a_text_that_is_not_utf8_is_refused_where_it_stops_being_so(run: Run, store: Path) -> None:
    path = store.parent / "bad.gq"
    path.write_bytes(b"query q\xff() {}")
    result = run("query", "--store", store, "--query", path)
    assert result.exit_code == 1
    assert f"{path}:1:8: error[Q001]: the file is not UTF-8 text: byte 0xff" in result.stderr


def test_a_dash_reads_the_text_from_standard_input(run: Run, store: Path) -> None:
    result = run("query", "-", "--store", store, "--format", "csv", text=EVERYONE)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines()[:2] == ["name,age", "ada,36"]
