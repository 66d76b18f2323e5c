"""The schema of a graph: shown, planned, applied, and linted against."""

from __future__ import annotations

import json
from pathlib import Path

from unit.cli.small_company import SCHEMA, Answer, Run

WITH_CITY = SCHEMA.replace("  photo: Blob?", "  city: String?\n  photo: Blob?")


def test_the_schema_of_a_graph_is_shown_as_it_was_written(
    run: Run, answer: Answer, store: Path
) -> None:
    assert answer("schema", "show", store) == {"schema_source": SCHEMA}
    assert answer("schema", "get", "--store", store) == {"schema_source": SCHEMA}
    assert run("schema", "show", store).stdout == SCHEMA


def test_a_plan_for_a_graph_is_that_of_its_schema_file(answer: Answer, store: Path) -> None:
    new = store.parent / "new.pg"
    new.write_text(WITH_CITY)
    planned = answer("schema", "plan", store, "--schema", new)
    assert planned.pop("uri") == str(store)
    of_files = answer("schema", "plan", "--from", store.parent / "s.pg", "--schema", new)
    assert of_files.pop("uri") == str(store.parent / "s.pg")
    assert planned == of_files
    assert [step["kind"] for step in planned["steps"]] == ["add_property"]


def test_an_unsupported_plan_exits_with_0_and_cannot_be_applied(
    run: Run, answer: Answer, store: Path
) -> None:
    new = store.parent / "new.pg"
    new.write_text(SCHEMA.replace("I32?", "U32?"))
    assert answer("schema", "plan", "--store", store, "--schema", new)["supported"] is False
    refused = run("schema", "apply", store, "--schema", new)
    assert refused.exit_code == 1
    assert "OG-MF-106" in refused.stderr
    assert "--convert" in refused.stderr
    assert refused.stdout == ""
    assert answer("schema", "show", store) == {"schema_source": SCHEMA}
    planned = answer("schema", "plan", "--store", store, "--schema", new, "--convert")
    assert [step["kind"] for step in planned["steps"]] == ["convert_property"]
    answer("schema", "apply", store, "--schema", new, "--convert")
    assert answer("schema", "show", store) == {"schema_source": new.read_text()}


def test_a_plan_is_of_a_graph_or_of_a_file(run: Run, store: Path) -> None:
    schema = ("--schema", store.parent / "s.pg")
    both = run("schema", "plan", store, "--from", store.parent / "s.pg", *schema)
    assert both.exit_code == 2
    neither = run("schema", "plan", *schema)
    assert neither.exit_code == 1
    assert "--from" in neither.stderr


def test_an_applied_schema_is_a_commit_of_its_branch(run: Run, answer: Answer, store: Path) -> None:
    new = store.parent / "new.pg"
    new.write_text(WITH_CITY)
    answer("branch", "create", "f", "--uri", store)
    document = answer("schema", "apply", store, "--schema", new, "--branch", "f", "--as", "ada")
    assert list(document) == [
        "uri",
        "supported",
        "applied",
        "step_count",
        "graph_manifest_version",
        "steps",
    ]
    assert (document["uri"], document["applied"], document["step_count"]) == (str(store), True, 1)
    newest = answer("commit", "list", store, "--branch", "f")["commits"][0]
    assert newest["graph_manifest_version"] == document["graph_manifest_version"]
    assert newest["actor_id"] == "ada"
    assert answer("schema", "show", store, "--branch", "f") == {"schema_source": WITH_CITY}
    assert answer("schema", "show", store) == {"schema_source": SCHEMA}
    again = answer("schema", "apply", store, "--schema", new, "--branch", "f")
    assert (again["applied"], again["step_count"]) == (False, 0)
    result = run("schema", "apply", store, "--schema", new)
    assert result.stdout.splitlines()[-1].startswith("1 step applied: commit 01")
    assert result.stderr == f"omnigraph schema apply → {store} (direct, local)\n"


def test_data_loss_is_not_what_apply_does(run: Run, store: Path) -> None:
    new = store.parent / "new.pg"
    new.write_text(SCHEMA.replace("  photo: Blob?\n", ""))
    result = run("schema", "apply", store, "--schema", new, "--allow-data-loss", "--json")
    assert result.exit_code == 0, result.output
    assert [step["mode"] for step in json.loads(result.stdout)["steps"]] == ["soft"]
    assert "allow_data_loss is ignored" in result.stderr


def test_a_schema_that_declares_nothing_is_not_applied_unasked(run: Run, store: Path) -> None:
    new = store.parent / "empty.pg"
    new.write_text("// Nothing yet.\n")
    planned = run("schema", "plan", store, "--schema", new)
    assert "would drop all" in planned.stdout
    assert planned.stdout.splitlines()[-1] == "1 step, NOT supported"
    refused = run("schema", "apply", store, "--schema", new)
    assert refused.exit_code == 1
    assert "[OG-DS-106] schema: the schema declares nothing" in refused.stderr
    applied = run("schema", "apply", store, "--schema", new, "--allow-data-loss")
    assert "- drop node:Person (soft)" in applied.stdout.splitlines()
    assert "ignored" not in applied.stderr


def test_a_broken_schema_is_not_applied(run: Run, store: Path) -> None:
    new = store.parent / "new.pg"
    new.write_text("node A { x: Sting }\n")
    for verb in ("plan", "apply"):
        result = run("schema", verb, store, "--schema", new)
        assert result.exit_code == 1
        assert f"{new}:1:13: error[S001]" in result.stderr
        assert result.stdout == ""


def test_queries_are_linted_against_a_graph(run: Run, answer: Answer, store: Path) -> None:
    query = ("--query", store.parent / "everyone.gq")
    document = answer("lint", store, *query)
    assert document["status"] == "ok"
    assert document["schema_source"] == {"kind": "graph", "uri": str(store)}
    assert answer("lint", "--store", store, *query) == document
    (store.parent / "everyone.gq").write_text("query q() { match { $p: Nope } return { $p.x } }")
    assert run("lint", store, *query).exit_code == 1


def test_lint_takes_a_graph_or_a_schema_file(run: Run, store: Path) -> None:
    query = ("--query", store.parent / "everyone.gq")
    assert run("lint", store, *query, "--schema", store.parent / "s.pg").exit_code == 2
    neither = run("lint", *query)
    assert neither.exit_code == 1
    assert "--schema" in neither.stderr


def test_a_schema_is_inferred_from_files(run: Run, answer: Answer, tmp_path: Path) -> None:
    people, knows = tmp_path / "team-people.v2.csv", tmp_path / "knows.csv"
    people.write_text("handle,age\nann,30\nbob,\n")
    knows.write_text("from,to\nann,bob\n")
    inferred = run("schema", "infer", people, f"Knows={knows}")
    assert inferred.stdout == (
        "node TeamPeople {\n  handle: String @key\n  age: I64?\n}\n\n"
        "edge Knows: TeamPeople -> TeamPeople {\n  @key(@src, @dst)\n}\n"
    )
    assert answer("schema", "infer", people, f"Knows={knows}") == {"schema_source": inferred.stdout}
    alone = run("schema", "infer", knows)
    assert alone.exit_code == 1
    assert "give the source of the nodes" in alone.stderr
