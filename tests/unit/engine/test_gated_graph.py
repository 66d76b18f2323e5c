"""A graph with a policy: what its actor may do, and what nothing may get around."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import (
    GraphClosedError,
    InvalidArgumentError,
    MigrationUnsupportedError,
    PolicyDeniedError,
    PolicyInvalidError,
)
from unit.policy.bundles import TEAM

SCHEMA = (
    "node Person { name: String @key }\nnode Company { name: String @key }\n"
    "edge WorksAt: Person -> Company"
)
PEOPLE = "query people() { match { $p: Person } return { $p.name } }"
COMPANIES = "query companies() { match { $c: Company } return { $c.name } }"
STAFF = "query staff() { match { $p: Person\n $p worksAt $c } return { $c.name } }"


def _hire(name: str) -> str:
    return f'query hire() {{ insert Person {{ name: "{name}" }} }}'


def _found(name: str) -> str:
    return f'query found() {{ insert Company {{ name: "{name}" }} }}'


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    path = tmp_path / "team.yaml"
    path.write_text(TEAM)
    return path


@pytest.fixture
def graph(tmp_path: Path, bundle: Path) -> Iterator[Graph]:
    uri = str(tmp_path / "g.omni")
    with omnigraph.create(uri, schema=SCHEMA) as plain:
        plain.branch().mutate(_hire("ada"))
        plain.branch().mutate(_found("acme"))
        plain.create_branch("draft")
    with omnigraph.open(uri, actor="act-jo", policy=bundle) as opened:
        yield opened


def test_an_actor_writes_a_draft_and_not_main(graph: Graph) -> None:
    graph.branch("draft").mutate(_hire("bob"))
    with pytest.raises(PolicyDeniedError, match="'change' on branch 'main' to actor 'act-jo'"):
        graph.branch().mutate(_hire("cyd"))
    with pytest.raises(PolicyDeniedError):
        graph.branch().load([], mode="append")
    assert len(graph.branch().query(PEOPLE)) == 1
    assert len(graph.branch("draft").query(PEOPLE)) == 2


def test_only_a_steward_merges_into_a_protected_branch(graph: Graph) -> None:
    graph.branch("draft").mutate(_hire("bob"))
    with pytest.raises(PolicyDeniedError, match="'branch_merge' on branch 'draft' targeting"):
        graph.branch().merge("draft")
    merged = graph.acting_as("act-ines").branch().merge("draft", delete_branch=True)
    assert merged.commit is not None
    assert merged.commit.actor == "act-ines"
    # The deletion is an act of its own, and its denial does not undo the merge.
    assert not merged.branch_deleted
    assert merged.branch_delete_error is not None
    assert "'branch_delete'" in merged.branch_delete_error
    assert "draft" in graph.branches()


def test_who_may_only_merge_decides_for_sides_and_not_for_values(graph: Graph) -> None:
    graph.branch("draft").mutate(_hire("bob"))
    steward = graph.acting_as("act-ines").branch()
    bob = {"type": "Person", "id": "bob"}
    for resolve in ([{**bob, "take": "delete"}], lambda _: "theirs"):
        with pytest.raises(PolicyDeniedError, match="'change' on branch 'main'"):
            steward.merge("draft", resolve=resolve)
    with pytest.raises(InvalidArgumentError, match="is not in a conflict that 'ours' decides"):
        steward.merge("draft", resolve=[{**bob, "take": "ours"}])


def test_a_gate_without_an_actor_denies_and_no_gate_allows(graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(PolicyDeniedError, match="no actor is named"):
        graph.acting_as(None).branch().query(PEOPLE)
    with pytest.raises(PolicyDeniedError, match="unknown actor 'eve'"):
        graph.acting_as("eve").branch("draft").mutate(_hire("eve"))
    with omnigraph.open(str(tmp_path / "g.omni"), actor="eve") as plain:
        plain.branch().mutate(_hire("eve"))


def test_a_source_is_not_read_for_a_load_that_is_denied(graph: Graph) -> None:
    def records() -> Iterator[dict[str, object]]:
        yield {"type": f"{1 // 0}: the source was read"}

    with pytest.raises(PolicyDeniedError):
        graph.branch().load(records(), mode="append")


def test_a_repeated_request_is_asked_for_too(graph: Graph) -> None:
    steward = graph.acting_as("act-ines")
    graph.branch("draft").mutate(_hire("bob"))
    first = steward.branch().merge("draft", key="k")
    assert steward.branch().merge("draft", key="k").id == first.id
    with pytest.raises(PolicyDeniedError):
        graph.branch().merge("draft", key="k")


def test_a_rule_by_type_covers_reads_of_its_types_only(graph: Graph) -> None:
    partner = graph.acting_as("pat").branch()
    assert len(partner.query(COMPANIES)) == 1
    assert partner.count("Company") == 1
    assert partner.to_arrow("Company").num_rows == 1
    assert partner.entity("Company", "acme") is not None
    assert partner.changes(types=["Company"]) is not None
    for query in (PEOPLE, STAFF):
        with pytest.raises(PolicyDeniedError, match=r"of type '(Person|WorksAt)'"):
            partner.query(query)
    for call in (
        lambda: partner.count("Person"),
        lambda: partner.entity("Person", "ada"),
        lambda: partner.schema,
        partner.export,
        partner.changes,
        lambda: partner.diff("draft"),
    ):
        with pytest.raises(PolicyDeniedError):
            call()


def test_a_rule_by_type_covers_writes_of_its_types_only(graph: Graph, tmp_path: Path) -> None:
    partner = graph.acting_as("pat").branch()
    partner.mutate(_found("initech"))
    both = 'query both() { insert Company { name: "x" }\n insert Person { name: "y" } }'
    for text in (_hire("bob"), both):
        with pytest.raises(PolicyDeniedError, match="of type 'Person'"):
            partner.mutate(text)
    copied = "query copy() { match { $p: Person } create Company { name: $p.name } }"
    with pytest.raises(PolicyDeniedError, match=r"'read'.*of type 'Person'"):
        partner.mutate(copied)
    partner.mutate('query own() { match { $c: Company { name: "initech" } } delete $c }')
    partner.mutate(_found("initech"))
    with pytest.raises(PolicyDeniedError, match="of type 'Person'"):
        partner.load([{"type": "Person", "data": {"name": "z"}}], mode="append")
    with omnigraph.open(str(tmp_path / "g.omni")) as plain:
        assert plain.branch().count("Person") == 1
        assert plain.branch().count("Company") == 2
        assert plain.check().problems == ()


def test_a_stored_query_carries_its_read_and_opens_nothing_else(graph: Graph) -> None:
    agent = graph.acting_as("bot").branch()
    with pytest.raises(PolicyDeniedError):
        agent.query(PEOPLE)
    invoked = Graph(agent.session.invoke_query("report_people"))
    assert len(invoked.branch().query(PEOPLE)) == 1
    with pytest.raises(PolicyDeniedError):
        invoked.branch("draft").mutate(_hire("bob"))
    with pytest.raises(PolicyDeniedError, match="by query 'secret'"):
        agent.session.invoke_query("secret")


def test_handles_of_several_actors_share_the_graph_and_end_with_it(graph: Graph) -> None:
    other = graph.acting_as("act-kim")
    assert other.actor == "act-kim"
    assert graph.actor == "act-jo"
    other.close()
    with pytest.raises(GraphClosedError):
        other.branch()
    assert len(graph.branch().query(PEOPLE)) == 1
    third = graph.acting_as("act-kim").acting_as("act-jo")
    graph.close()
    with pytest.raises(GraphClosedError):
        third.branch()


def test_acting_as_another_actor_opens_nothing(graph: Graph) -> None:
    shared = graph.branch().session.resources
    assert graph.acting_as("act-kim").branch().session.resources is shared


def test_a_policy_that_is_wrong_or_not_one_is_refused_before_the_graph_is_opened(
    tmp_path: Path,
) -> None:
    (tmp_path / "p.yaml").write_text("version: 1\nrulse: []\n")
    with pytest.raises(PolicyInvalidError, match="rulse"):
        omnigraph.open(str(tmp_path / "none.omni"), policy=tmp_path / "p.yaml")
    with pytest.raises(InvalidArgumentError, match="policy"):
        omnigraph.open(str(tmp_path / "none.omni"), policy=3)  # type: ignore[arg-type]  # wrong


WRITES_SCHEMAS = """\
version: 1
groups:
  designers: [act-dee]
rules:
  - id: designers-apply
    allow:
      actors: { group: designers }
      actions: [schema_apply]
      target_branch_scope: any
"""


def test_a_refused_schema_names_no_entity_to_an_actor_who_may_not_read(
    graph: Graph, tmp_path: Path
) -> None:
    (tmp_path / "designers.yaml").write_text(WRITES_SCHEMAS)
    tight = SCHEMA.replace("name: String @key", 'name: String @key @check(name, "^z")', 1)
    with (
        omnigraph.open(graph.uri, actor="act-dee", policy=tmp_path / "designers.yaml") as opened,
        pytest.raises(MigrationUnsupportedError) as refused,
    ):
        opened.branch().apply_schema(tight)
    assert "1 entity contradicts" in str(refused.value)
    assert "ada" not in str(refused.value)
    with (
        omnigraph.open(graph.uri) as plain,
        pytest.raises(MigrationUnsupportedError, match="'ada'"),
    ):
        plain.branch().apply_schema(tight)
