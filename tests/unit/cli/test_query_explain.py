"""`omnigraph explain`."""

from __future__ import annotations

from pathlib import Path

import pytest

from unit.cli.small_company import ADD, EVERYONE, Answer, Run

FRIENDS = """query friends($who: String) {
  match { $p: Person { name: $who } $p knows $f }
  return { $f.name as friend, $f.age as age }
  order { friend }
}
"""
WHO = ("--params", '{"who": "ada"}')


def test_a_query_is_explained_with_the_rows_and_times_of_its_operators(
    answer: Answer, store: Path
) -> None:
    document = answer("explain", "--store", store, "-e", FRIENDS, *WHO)
    assert list(document) == ["query_name", "target", "operators", "graph_commit_id"]
    assert document["query_name"] == "friends"
    assert document["target"] == {"branch": "main", "snapshot": None}
    operators = document["operators"]
    assert all(
        set(each)
        == {"operator", "detail", "access", "index", "estimated_rows", "actual_rows", "time_ms"}
        for each in operators
    )
    kinds = [each["operator"] for each in operators]
    # The result is first, what it is made from comes below.
    assert kinds.index("Project") < kinds.index("Expand") < kinds.index("Scan")
    expand = operators[kinds.index("Expand")]
    assert expand["actual_rows"] == 1
    assert expand["time_ms"] >= 0
    assert expand["access"]


def test_a_query_that_is_not_run_has_no_measured_rows(answer: Answer, store: Path) -> None:
    operators = answer("explain", "--store", store, "-e", FRIENDS, *WHO, "--no-run")["operators"]
    assert operators
    assert all(each["actual_rows"] is None and each["time_ms"] is None for each in operators)
    assert any(each["estimated_rows"] is not None for each in operators)


def test_people_get_a_table(run: Run, store: Path) -> None:
    result = run("explain", "--store", store, "-e", FRIENDS, *WHO)
    assert result.exit_code == 0
    assert result.stderr == ""
    title, columns, *rows = result.stdout.splitlines()
    assert title == "plan of friends on branch main"
    assert columns.split() == ["operator", "access", "index", "estimated", "rows", "ms", "detail"]
    assert rows[-1].startswith("Scan")
    assert "$p: Person" in rows[-1]


def test_the_past_can_be_explained(answer: Answer, store: Path) -> None:
    past = answer("commit", "list", store)["commits"][-1]["graph_commit_id"]
    document = answer("explain", "--store", store, "-e", FRIENDS, *WHO, "--snapshot", past)
    assert document["graph_commit_id"] == past
    counts = {each["actual_rows"] for each in document["operators"]}
    assert counts <= {0, None}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-e", FRIENDS), "parameter 'who' not provided"),
        (("-e", ADD, "--params", '{"name": "z"}'), "mutation"),
        (("-e", "branch list"), "a statement, not a query"),
        (("-e", EVERYONE.replace("age", "agee")), "did you mean 'age'?"),
        (("-e", ""), "empty"),
        (("-e", EVERYONE + EVERYONE.replace("everyone", "again")), "everyone, again"),
        (
            ("-e", EVERYONE, "--snapshot", "01ARZ3NDEKTSV4RRFFQ69G5FAV"),
            "01ARZ3NDEKTSV4RRFFQ69G5FAV",
        ),
        (("-e", EVERYONE, "--timeout", "0"), "the query was not done after"),
    ],
)
def test_what_cannot_be_explained_is_refused(
    run: Run, store: Path, arguments: tuple[str, ...], message: str
) -> None:
    result = run("explain", "--store", store, *arguments)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_nothing_is_written_to_a_graph_that_is_explained(answer: Answer, store: Path) -> None:
    before = answer("commit", "list", store)
    answer("explain", "--store", store, "-e", FRIENDS, *WHO)
    assert answer("commit", "list", store) == before
