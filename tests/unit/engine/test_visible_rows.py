"""What an actor reaches of rows that a policy hides from him, by every method that reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from omnigraph.engine.branch import Branch
from omnigraph.engine.graph import Graph, create_graph, open_graph
from omnigraph.errors import (
    BlobNotFoundError,
    MergeConflictError,
    PolicyDeniedError,
    PolicyInvalidError,
    RowsGuardedError,
)

SCHEMA = """
node Person { name: String @key }
node Company { name: String @key  public: Bool?  owner: String?  logo: Blob? }
edge Works: Person -> Company { since: I64? }
edge Owns: Company -> Company
"""
BUNDLE = """
version: 1
groups: {partners: [pat, sue], editors: [ed], owners: [sue]}
protected_branches: [main]
rules:
  - id: partners-see-some
    allow:
      actors: {group: partners}
      actions: [read, export]
      types:
        Company: "$it.public = true or $it.owner = $actor"
        Person: all
        Works: all
        Owns: all
  - id: owners-see-drafts
    allow: {actors: {group: owners}, actions: [read], branch_scope: unprotected}
  - id: partners-change
    allow: {actors: {group: partners}, actions: [change]}
  - id: partners-merge
    allow: {actors: {group: partners}, actions: [branch_merge], target_branch_scope: any}
  - id: editors-do-all
    allow: {actors: {group: editors}, actions: [read, change, export, branch_create]}
  - id: editors-merge
    allow: {actors: {group: editors}, actions: [branch_merge], target_branch_scope: any}
"""
COMPANIES = {"open": True, "secret": False, "other": True, "unknown": None}
SEEN = {"open", "other"}
# No answer to a partner has these words.
HIDDEN = ("secret", "unknown")


@pytest.fixture
def uri(tmp_path: Path) -> str:
    (tmp_path / "policy.yaml").write_text(BUNDLE)
    graph = create_graph(tmp_path / "g.omni", schema=SCHEMA, durable=False)
    lines: list[dict[str, Any]] = [
        {"type": "Person", "data": {"name": name}} for name in ("ann", "bob")
    ]
    lines += [
        {
            "type": "Company",
            "data": {"name": name, "public": is_public, "owner": "sue", "logo": "base64:aGk="},
        }
        for name, is_public in COMPANIES.items()
    ]
    works = (("ann", "open"), ("ann", "secret"), ("bob", "unknown"))
    lines += [{"edge": "Works", "from": person, "to": to} for person, to in works]
    owns = (("open", "secret"), ("secret", "other"), ("open", "other"))
    lines += [{"edge": "Owns", "from": owner, "to": to} for owner, to in owns]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    graph.branch().load(path, mode="append")
    graph.create_branch("draft")
    graph.close()
    return str(tmp_path / "g.omni")


@pytest.fixture
def graph(uri: str, tmp_path: Path) -> Iterator[Graph]:
    with open_graph(uri, actor="pat", policy=tmp_path / "policy.yaml", durable=False) as opened:
        yield opened


@pytest.fixture
def main(graph: Graph) -> Branch:
    return graph.branch()


def names_of(branch: Branch) -> set[str]:
    found = branch.query("query q() { match { $c: Company } return { $c.name as n } }")
    return {row["n"] for row in found.to_arrow().to_pylist()}


def test_a_condition_knows_the_actor_and_its_groups(graph: Graph) -> None:
    assert names_of(graph.branch()) == SEEN
    assert names_of(graph.acting_as("sue").branch()) == set(COMPANIES)
    assert names_of(graph.acting_as("ed").branch()) == set(COMPANIES)


def test_a_rule_without_a_condition_wins_where_it_applies(graph: Graph) -> None:
    sue = graph.acting_as("sue")
    with pytest.raises(RowsGuardedError):
        list(sue.branch().history("Company", "secret"))
    assert len(list(sue.branch("draft").history("Company", "secret"))) == 1


def test_actors_share_a_text_and_not_what_they_see(graph: Graph) -> None:
    for _ in range(2):
        assert names_of(graph.acting_as("ed").branch()) == set(COMPANIES)
        assert names_of(graph.branch()) == SEEN


def test_counts_are_those_of_what_is_seen(main: Branch) -> None:
    counts = [main.count(name) for name in ("Company", "Works", "Owns", "Person")]
    assert counts == [2, 1, 1, 2]


def test_entities_and_blobs_that_are_hidden_are_not_there(main: Branch) -> None:
    snapshot = main.snapshot()
    assert snapshot.entity("Company", "secret") is None
    assert snapshot.entity("Company", "open") is not None
    assert snapshot.blob("node", "Company", "open", "logo").read() == b"hi"
    refusals = []
    for name in ("secret", "nothing"):
        with pytest.raises(BlobNotFoundError) as refused:
            snapshot.blob("node", "Company", name, "logo")
        refusals.append(str(refused.value).replace(name, "…"))
    assert refusals[0] == refusals[1]


def test_an_edge_with_a_hidden_end_is_not_there(graph: Graph) -> None:
    every = graph.acting_as("ed").branch().snapshot().to_arrow("Works").to_pylist()
    snapshot = graph.branch().snapshot()
    found = {
        row["@dst"]
        for row in every
        if snapshot.entity("Works", row["@id"], kind="edge") is not None
    }
    assert found == {"open"}


def test_tables_have_the_rows_that_are_seen(main: Branch) -> None:
    snapshot = main.snapshot()
    assert set(snapshot.to_arrow("Company")["@id"].to_pylist()) == SEEN
    assert snapshot.to_arrow("Works")["@dst"].to_pylist() == ["open"]
    assert snapshot.dataset("Owns").count_rows() == 1
    assert set(snapshot.to_arrow("Person")["@id"].to_pylist()) == {"ann", "bob"}


READS: dict[str, Callable[[Graph], object]] = {
    "history": lambda graph: list(graph.branch().history("Company", "secret")),
    "history of what is seen": lambda graph: list(graph.branch().history("Company", "open")),
    "history of an edge": lambda graph: list(graph.branch().history("Works", "x", kind="edge")),
    "blame": lambda graph: graph.branch().blame("Company", "secret"),
    "diff": lambda graph: graph.diff("main", "draft", types=["Company"]),
    "diff of a snapshot": lambda graph: graph.branch().snapshot().diff("draft", types=["Works"]),
    "changes": lambda graph: graph.branch().changes(types=["Company"]),
    "networkx": lambda graph: graph.branch().snapshot().to_networkx(["Company"]),
    "rustworkx": lambda graph: graph.branch().snapshot().to_rustworkx(["Works"]),
    "igraph": lambda graph: graph.branch().snapshot().to_igraph(["Company"]),
    "pyg": lambda graph: graph.branch().snapshot().to_pyg(["Company"]),
    "export": lambda graph: list(graph.branch().export(types=["Company"])),
    "export of edges": lambda graph: list(graph.branch().export(types=["Owns"])),
}


@pytest.mark.parametrize("name", READS)
def test_what_cannot_leave_rows_out_is_refused(name: str, graph: Graph) -> None:
    with pytest.raises(RowsGuardedError) as refused:
        READS[name](graph)
    assert not any(word in str(refused.value) for word in HIDDEN)
    assert refused.value.types


WHOLE: dict[str, Callable[[Graph], object]] = {
    "schema": lambda graph: graph.branch().snapshot().schema,
    "export": lambda graph: list(graph.branch().export()),
    "diff": lambda graph: graph.diff("main", "draft"),
    "changes": lambda graph: graph.branch().changes(),
    "networkx": lambda graph: graph.branch().snapshot().to_networkx(),
    "tables": lambda graph: graph.branch().snapshot().tables(),
}


@pytest.mark.parametrize("name", WHOLE)
def test_what_concerns_all_rows_is_denied(name: str, graph: Graph) -> None:
    with pytest.raises(PolicyDeniedError):
        WHOLE[name](graph)


def test_types_that_are_not_limited_are_read_as_ever(graph: Graph) -> None:
    main = graph.branch()
    assert len(list(main.history("Person", "ann"))) == 1
    assert b"ann" in b"".join(main.export(types=["Person"]))


def test_mutations_by_conditions_and_patterns_touch_what_is_seen(graph: Graph) -> None:
    draft = graph.branch("draft")
    by_condition = 'query m() { update Company set { public: true } where name = "secret" }'
    assert draft.mutate(by_condition).affected_nodes == 0
    delete = "query m() { match { $c: Company } delete $c }"
    assert draft.mutate(delete).affected_nodes == len(SEEN)
    left = set(
        graph.acting_as("ed").branch("draft").snapshot().to_arrow("Company")["@id"].to_pylist()
    )
    assert left == set(COMPANIES) - SEEN


def test_explain_shows_the_conditions(main: Branch) -> None:
    shown = main.snapshot().explain("query q() { match { $c: Company } return { $c.name } }")
    assert "Policy" in str(shown)
    assert '($c.public = true) or ($c.owner = "pat")' in str(shown)
    whole = main.snapshot().explain("query q() { match { $p: Person } return { $p.name } }")
    assert "Policy" not in str(whole)


def test_pages_of_a_read_go_on_under_the_same_guard(main: Branch) -> None:
    text = (
        "query q($page: String?) { match { $c: Company } return { $c.name as n }"
        " order { n } limit 1 after $page total }"
    )
    first = main.query(text)
    second = main.query(text, params={"page": first.cursor})
    names = [page.to_arrow().to_pylist() for page in (first, second)]
    assert names == [[{"n": "open"}], [{"n": "other"}]]
    assert (first.total, second.cursor) == (2, None)


def test_a_policy_that_does_not_fit_the_schema_is_refused_when_it_is_opened(
    uri: str, tmp_path: Path
) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(BUNDLE.replace("$it.public", "$it.publik"))
    with pytest.raises(PolicyInvalidError, match="Company has no property 'publik'"):
        open_graph(uri, actor="pat", policy=path)


def test_nothing_is_read_of_a_commit_whose_schema_a_condition_does_not_fit(
    uri: str, tmp_path: Path
) -> None:
    with open_graph(uri, durable=False) as plain:
        plain.branch().apply_schema(SCHEMA.replace("owner: String?", "owner: String?  open: Bool?"))
    path = tmp_path / "newer.yaml"
    path.write_text(BUNDLE.replace("$it.public", "$it.open"))
    with open_graph(uri, actor="pat", policy=path, durable=False) as graph:
        assert names_of(graph.branch()) == set()
        with pytest.raises(RowsGuardedError, match="does not fit the schema of this commit"):
            names_of(graph.branch("draft"))


def test_conflicts_of_a_merge_show_no_values_of_limited_types(graph: Graph) -> None:
    editor = graph.acting_as("ed")
    for name, owner in (("main", "mine"), ("draft", "theirs")):
        editor.branch(name).mutate(
            f'query u() {{ update Company set {{ owner: "{owner}" }} where name = "secret" }}'
        )
    main, owners = graph.branch(), ("sue", "mine", "theirs")
    with pytest.raises(MergeConflictError) as refused:
        main.merge("draft")
    plan = main.plan_merge("draft")
    for conflict in (*refused.value.conflicts, *plan.conflicts):
        assert (conflict.entity_id, conflict.properties) == ("secret", ("owner",))
        assert (conflict.base, conflict.ours, conflict.theirs) == ({}, {}, {})
    assert not any(owner in str(refused.value) for owner in owners)
    (shown,) = editor.branch().plan_merge("draft").conflicts
    states = (shown.base, shown.ours, shown.theirs)
    assert states == tuple({"owner": owner} for owner in owners)
