from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from unit.cli.small_company import Answer, Run


def append(*lines: dict[str, object]) -> str:
    return "".join(json.dumps(line) + "\n" for line in lines)


def person(name: str, **properties: object) -> dict[str, object]:
    return {"type": "Person", "data": {"name": name, **properties}}


def names(answer: Answer, store: Path, *target: str) -> list[str]:
    text = "query q() { match { $p: Person } return { $p.name as name } order { $p.name asc } }"
    document = answer("query", "--store", store, "-e", text, *target)
    return [row["name"] for row in document["rows"]]


def test_a_load_answers_with_the_documented_document(answer: Answer, empty: Path) -> None:
    data = empty.parent / "people.jsonl"
    document = answer("load", empty, "--data", data, "--mode", "append", "--as", "ada")
    assert list(document) == [
        "uri",
        "branch",
        "branch_created",
        "mode",
        "nodes",
        "edges",
        "total_entities",
        "actor_id",
        "commit",
    ]
    assert document["uri"] == str(empty)
    assert (document["branch"], document["mode"]) == ("main", "append")
    assert document["branch_created"] is False
    assert document["nodes"] == [{"name": "Person", "entities_loaded": 3}]
    assert document["edges"] == [{"name": "Knows", "entities_loaded": 1}]
    assert document["total_entities"] == 4
    commit = document["commit"]
    assert commit["actor_id"] == "ada"
    assert commit == answer("commit", "show", commit["graph_commit_id"], "--uri", empty)


def test_a_load_says_in_words_what_it_did(run: Run, empty: Path) -> None:
    result = run("load", empty, "--data", empty.parent / "people.jsonl", "--mode", "append")
    assert result.exit_code == 0
    *counts, last = result.stdout.splitlines()
    assert counts == ["node  Person  3", "edge  Knows   1"]
    assert last.startswith("loaded 4 entities into main: commit 01")
    assert result.stderr == f"omnigraph load → {empty} (direct, local)\n"


def test_quiet_leaves_out_where_a_write_goes(run: Run, empty: Path) -> None:
    data = ("--data", empty.parent / "people.jsonl", "--mode", "append")
    assert run("--quiet", "load", empty, *data).stderr == ""


def test_a_document_is_alone_on_standard_output(run: Run, empty: Path) -> None:
    data = ("--data", empty.parent / "people.jsonl", "--mode", "append")
    result = run("load", empty, *data, "--json")
    assert json.loads(result.stdout)["total_entities"] == 4
    assert result.stderr == f"omnigraph load → {empty} (direct, local)\n"


def test_entities_of_many_types_are_one_commit_and_counted_by_name(
    run: Run, answer: Answer, folder: Path
) -> None:
    schema, data, graph = folder / "zoo.pg", folder / "zoo.jsonl", folder / "zoo.omni"
    schema.write_text(
        "node Zebra { name: String @key }\nnode Ant { name: String @key }\n"
        "edge Sees: Zebra -> Ant\nedge Fears: Ant -> Zebra\n"
    )
    assert run("init", graph, "--schema", schema).exit_code == 0
    data.write_text(
        append(
            {"edge": "Sees", "from": "z", "to": "a"},
            {"type": "Zebra", "data": {"name": "z"}},
            {"edge": "Fears", "from": "a", "to": "z"},
            {"edge": "Fears", "from": "b", "to": "z"},
            {"type": "Ant", "data": {"name": "b"}},
            {"type": "Ant", "data": {"name": "a"}},
        )
    )
    document = answer("load", graph, "--data", data, "--mode", "append")
    counts = {
        kind: [(each["name"], each["entities_loaded"]) for each in document[kind]]
        for kind in ("nodes", "edges")
    }
    assert counts == {"nodes": [("Ant", 2), ("Zebra", 1)], "edges": [("Fears", 2), ("Sees", 1)]}
    assert document["total_entities"] == 6
    assert [each["graph_commit_id"] for each in answer("commit", "list", graph)["commits"]] == [
        document["commit"]["graph_commit_id"],
        document["commit"]["parent_commit_id"],
    ]


def test_the_mode_and_the_data_are_required(run: Run, store: Path) -> None:
    assert run("load", store, "--data", "x").exit_code == 2
    assert run("load", store, "--mode", "append").exit_code == 2
    assert run("load", store, "--data", "x", "--mode", "upsert").exit_code == 2


def test_data_that_is_not_a_file_is_named(run: Run, store: Path) -> None:
    for path, told in (("nope.jsonl", "nope.jsonl: no such file"), ("-", "standard input")):
        result = run("load", store, "--data", path, "--mode", "append")
        assert result.exit_code == 1
        assert told in result.stderr
        assert result.stdout == ""


def test_plain_lines_of_a_type_are_loaded_from_the_argument(
    run: Run, answer: Answer, store: Path, folder: Path
) -> None:
    people, edges = folder / "plain.jsonl", folder / "edges.jsonl"
    people.write_text(append({"name": "cyd", "age": 7}, {"name": "dan"}))
    edges.write_text(append({"from": "cyd", "to": "dan", "since": "2024-01-02"}))
    given = ("--store", store, "--mode", "append")
    assert answer("load", people, "--type", "Person", *given)["total_entities"] == 2
    loaded = answer("load", edges, "--type", "Knows", *given)
    assert loaded["edges"] == [{"name": "Knows", "entities_loaded": 1}]
    assert names(answer, store) == ["ada", "bob", "cyd", "dan", "eve"]
    untyped = run("load", people, *given)
    assert untyped.exit_code == 1
    assert "hint: for records without a type: --type NAME" in untyped.stderr
    typed_twice = run("load", folder / "people.jsonl", "--type", "Person", *given)
    assert "names its own type" in typed_twice.stderr


@pytest.mark.on_disk
def test_the_graph_of_a_load_may_come_from_the_environment(
    answer: Answer, store: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_GRAPH", str(store))
    data = folder / "plain.jsonl"
    data.write_text(append({"name": "cyd"}))
    answer("load", data, "--type", "Person", "--mode", "append")
    assert names(answer, store) == ["ada", "bob", "cyd", "eve"]


def test_a_folder_of_files_is_one_load(answer: Answer, store: Path) -> None:
    parts = store.parent / "parts"
    parts.mkdir()
    for name in ("yan", "zoe"):
        (parts / f"{name}.jsonl").write_text(append(person(name)))
    document = answer("load", store, "--data", parts, "--mode", "append")
    assert document["total_entities"] == 2
    pattern = parts / "*.jsonl"
    assert answer("load", store, "--data", pattern, "--mode", "merge")["total_entities"] == 2


def test_a_refused_load_tells_every_violation_and_writes_nothing(
    run: Run, answer: Answer, store: Path
) -> None:
    before = answer("commit", "list", store)
    data = store.parent / "bad.jsonl"
    data.write_text(append(person("zoe", age=200), person("yan", age=3), person("xi", age=-1)))
    result = run("load", store, "--data", data, "--mode", "append", "--quiet")
    assert result.exit_code == 1
    assert result.stdout == ""
    told = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert len(told) == 2
    for line, number, value in zip(told, (1, 3), ("200", "-1"), strict=True):
        assert f"bad.jsonl line {number}: " in line
        assert "Person.age" in line
        assert value in line
        assert line.endswith("[range]")
    assert "nothing was written" in result.stderr
    assert answer("commit", "list", store) == before


def test_a_refused_load_is_a_document_with_json(run: Run, store: Path) -> None:
    data = store.parent / "bad.jsonl"
    data.write_text(append(person("zoe", age=200)))
    result = run("load", store, "--data", data, "--mode", "append", "--json", "--quiet")
    assert result.exit_code == 1
    assert result.stderr == ""
    document = json.loads(result.stdout)
    fields = ["error", "code", "reason", "retryable", "hint", "violations", "count"]
    assert list(document) == fields
    assert [document[name] for name in fields[1:4]] == ["bad_request", "write_refused", False]
    assert document["count"] == 1
    (violation,) = document["violations"]
    assert violation["place"].endswith("bad.jsonl line 1")
    assert (violation["type_name"], violation["property"]) == ("Person", "age")
    assert (violation["value"], violation["rule"]) == ("200", "range")


def test_many_violations_are_counted(run: Run, store: Path) -> None:
    data = store.parent / "bad.jsonl"
    data.write_text(append(*(person(f"p{number}", age=200) for number in range(30))))
    result = run("load", store, "--data", data, "--mode", "append", "--quiet")
    assert result.stderr.count("error: ") == 20
    assert "… and 10 more" in result.stderr


def test_an_unknown_property_on_the_last_line_loads_nothing(
    run: Run, answer: Answer, store: Path
) -> None:
    data = store.parent / "bad.jsonl"
    data.write_text(append(person("zoe"), person("yan", shoe=44)))
    result = run("load", store, "--data", data, "--mode", "append")
    assert result.exit_code == 1
    assert "line 2" in result.stderr
    assert "shoe" in result.stderr
    assert names(answer, store) == ["ada", "bob", "eve"]


def test_append_of_an_existing_key_fails_and_merge_replaces(
    run: Run, answer: Answer, store: Path
) -> None:
    data = store.parent / "again.jsonl"
    data.write_text(append(person("ada", age=37)))
    refused = run("load", store, "--data", data, "--mode", "append")
    assert refused.exit_code == 1
    assert "Person 'ada' already exists" in refused.stderr
    assert "hint: use mode 'merge'" in refused.stderr
    answer("load", store, "--data", data, "--mode", "merge")
    text = 'query q() { match { $p: Person { name: "ada" } } return { $p.age as age } }'
    assert answer("query", "--store", store, "-e", text)["rows"] == [{"age": 37}]


def test_a_missing_branch_needs_a_base(run: Run, answer: Answer, store: Path) -> None:
    data = store.parent / "more.jsonl"
    data.write_text(append(person("zoe")))
    arguments = ("load", store, "--data", data, "--mode", "merge", "--branch", "new")
    refused = run(*arguments)
    assert refused.exit_code == 1
    assert "--from" in refused.stderr
    assert answer("branch", "list", "--uri", store) == {"branches": ["main"]}
    document = answer(*arguments, "--from", "main")
    assert (document["branch_created"], document["base_branch"]) == (True, "main")
    assert names(answer, store, "--branch", "new") == ["ada", "bob", "eve", "zoe"]
    again = answer(*arguments, "--from", "main")
    assert (again["branch_created"], again["base_branch"]) == (False, "main")


def test_a_refused_load_says_that_the_branch_it_created_stays(
    run: Run, answer: Answer, store: Path
) -> None:
    data = store.parent / "bad.jsonl"
    data.write_text(append(person("zoe", age=200)))
    arguments = ("load", store, "--data", data, "--mode", "merge", "--branch", "new")
    refused = run(*arguments, "--from", "main")
    assert refused.exit_code == 1
    assert "branch new was created for this load and stays" in refused.stderr
    assert answer("branch", "list", "--uri", store) == {"branches": ["main", "new"]}
    assert "stays" not in run(*arguments, "--from", "main").stderr
    data.write_text(append(person("zoe", age=20)))
    assert answer(*arguments, "--from", "main")["branch_created"] is False


def test_a_load_with_a_key_is_made_once(answer: Answer, store: Path) -> None:
    data = store.parent / "more.jsonl"
    data.write_text(append(person("zoe")))
    arguments = ("load", store, "--data", data, "--mode", "append", "--key", "monday")
    first = answer(*arguments, "--message", "weekly")
    assert answer(*arguments)["commit"] == first["commit"]
    shown = answer("commit", "show", first["commit"]["graph_commit_id"], "--uri", store)
    assert shown == first["commit"]


def test_a_load_has_the_message_it_is_given(run: Run, store: Path) -> None:
    data = store.parent / "more.jsonl"
    data.write_text(append(person("zoe")))
    run("load", store, "--data", data, "--mode", "append", "--message", "weekly import")
    assert "weekly import" in run("commit", "list", store, "--limit", "1").stdout


def test_a_load_on_another_state_than_expected_exits_with_4(
    run: Run, answer: Answer, store: Path
) -> None:
    data = store.parent / "more.jsonl"
    data.write_text(append(person("zoe")))
    newest, older, *_ = answer("commit", "list", store)["commits"]
    arguments = ("load", store, "--data", data, "--mode", "append", "--if-commit")
    refused = run(*arguments, older["graph_commit_id"], "--json", "--quiet")
    assert refused.exit_code == 4
    assert "precondition_failure" in json.loads(refused.stdout)
    answer(*arguments, newest["graph_commit_id"])


@pytest.mark.slow
@pytest.mark.on_disk
def test_records_instead_of_a_path_are_told_from_an_output_problem(store: Path) -> None:
    program = Path(sys.executable).with_name("omnigraph")
    records = append(person("zoe")) * 200
    command = [str(program), "load", str(store), "--data", records, "--mode", "append", "--quiet"]
    finished = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert finished.returncode == 1
    assert "File name too long" in finished.stderr
    assert "output" not in finished.stderr


def test_a_table_file_needs_its_type(run: Run, answer: Answer, store: Path) -> None:
    data = store.parent / "more.csv"
    data.write_text("name,age\nzoe,30\n")
    assert run("load", store, "--data", data, "--mode", "append").exit_code == 1
    answer("load", store, "--data", data, "--mode", "append", "--type", "Person")
    assert names(answer, store) == ["ada", "bob", "eve", "zoe"]
    data.write_text("name,age\nyan,31\n")
    answer("load", store, "--data", f"Person={data}", "--mode", "append")
    assert names(answer, store) == ["ada", "bob", "eve", "yan", "zoe"]
    twice = run("load", store, "--data", f"Person={data}", "--mode", "append", "--type", "Knows")
    assert "the data is of type Person, and --type is Knows" in twice.stderr


def test_the_compatible_dialect_reads_what_the_strict_one_refuses(
    run: Run, answer: Answer, store: Path
) -> None:
    data = store.parent / "pretty.jsonl"
    data.write_text(json.dumps(person("zoe", shoe=44), indent=2))
    arguments = ("load", store, "--data", data, "--mode", "append")
    assert run(*arguments).exit_code == 1
    answer(*arguments, "--dialect", "compatible")
    assert "zoe" in names(answer, store)


def test_an_overwrite_elsewhere_needs_consent(run: Run, folder: Path) -> None:
    data = ("--data", folder / "people.jsonl", "--mode", "overwrite")
    refused = run("load", "s3://b/g", *data)
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "--yes" in refused.stderr
    refused = run("load", "s3://b/g", *data, "--json")
    assert (refused.exit_code, refused.stderr) == (1, "")
    assert "--yes" in json.loads(refused.stdout)["hint"]


@pytest.mark.on_disk
def test_overwriting_a_local_graph_needs_no_consent(
    answer: Answer, store: Path, folder: Path
) -> None:
    data = folder / "less.jsonl"
    data.write_text(append(person("ada"), {"edge": "Knows", "from": "ada", "to": "ada"}))
    answer("load", f"file://{store}", "--data", data, "--mode", "overwrite")
    assert names(answer, store) == ["ada"]


def test_a_dry_run_writes_nothing_and_says_what_it_would_do(
    run: Run, answer: Answer, store: Path, folder: Path
) -> None:
    before = answer("commit", "list", store)
    data = folder / "more.jsonl"
    data.write_text(append(person("cyd")))
    given = ("load", store, "--data", data, "--mode", "append", "--dry-run")
    assert answer(*given)["dry_run"] is True
    shown = run(*given)
    assert shown.stdout.splitlines()[-1] == "would load 1 entity into main; nothing was written"
    assert shown.stderr == ""
    assert run(*given, "--branch", "b", "--from", "main").exit_code == 2
    older = 'query q() { update Person set { age: 1 } where name = "ada" }'
    mutated = answer("mutate", "--store", store, "-e", older, "--dry-run")
    assert (mutated["affected_nodes"], mutated["commit"]) == (1, None)
    (folder / "wider.pg").write_text(
        (folder / "s.pg").read_text() + "node Town { name: String @key }"
    )
    applied = run("schema", "apply", store, "--schema", folder / "wider.pg", "--dry-run")
    assert applied.stdout.splitlines()[-1] == "1 step planned; nothing was written"
    assert run("cleanup", store, "--keep", "1", "--dry-run").exit_code == 0
    assert run("cleanup", store, "--keep", "1", "--dry-run", "--confirm").exit_code == 2
    assert answer("commit", "list", store) == before


def test_json_over_several_lines_gets_a_hint_about_the_dialect(
    run: Run, answer: Answer, empty: Path
) -> None:
    path = empty.parent / "pretty.json"
    path.write_text(json.dumps({"type": "Person", "data": {"name": "ada"}}, indent=2))
    line = ("load", empty, "--data", path, "--mode", "append")
    refused = run(*line)
    assert refused.exit_code == 1
    assert "--dialect compatible" in refused.stderr
    assert answer(*line, "--dialect", "compatible")["total_entities"] == 1
    path.write_text('{"type": "Person", "data": {"name": "a" "b"}}\n')
    assert "--dialect" not in run(*line).stderr
