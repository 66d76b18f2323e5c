"""An agent at a cluster: its queries, its proposal by the tools, and what its token may not do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

import omnigraph
from served import PEOPLE, SCHEMA, RunningServer, apply_cluster, serve_cluster
from unit.server.test_agent_routes import call, names_of, visit

GRAPH = "/graphs/team"
CONFIG = """\
version: 1
graphs:
  team: {schema: team.pg, queries: team.gq}
policies:
  own: {file: own.yaml, applies_to: [team]}
"""
QUERIES = """\
query find_person($name: String) {
  match { $p: Person { name: $name } }
  return { $p.name as name, $p.age as age }
}
query count_people() { match { $p: Person } return { count($p) as people } }
query list_companies() { match { $c: Company } return { $c.name } }
"""
POLICY = """\
version: 1
groups: {agents: [bot], stewards: [ines]}
protected_branches: [main]
rules:
  - id: call-two
    allow: {actors: {group: agents}, actions: [invoke_query],
      queries: [find_person, count_people], carries: [read]}
  - id: propose
    allow: {actors: {group: agents}, actions: [branch_create, propose]}
  - id: draft
    allow: {actors: {group: agents}, actions: [change], branch_scope: unprotected}
  - id: review
    allow: {actors: {group: stewards}, actions: [read, review]}
  - id: merge
    allow:
      actors: {group: stewards}
      actions: [branch_merge]
      target_branch_scope: protected
      requires: {approvals: 1, from: stewards}
"""
ADHOC = "query everyone() { match { $p: Person } return { $p.name } }"
AGE = "query age() { update Person set { age: 8 } where name = 'eve' }".replace("'", '"')
LINE = '{"type": "Person", "data": {"name": "eve", "age": 7}}'


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder: Path = tmp_path_factory.mktemp("agents")
    files = {"cluster.yaml": CONFIG, "team.pg": SCHEMA, "team.gq": QUERIES, "own.yaml": POLICY}
    for name, text in files.items():
        (folder / name).write_text(text)
    apply_cluster(folder, is_first=True)
    with omnigraph.open(folder / "graphs/team.omni", durable=False) as graph:
        graph.branch().load(PEOPLE, mode="append")
    with serve_cluster(folder, actors=("bot", "ines")) as found:
        yield found


def send(running: RunningServer, actor: str, path: str, **body: Any) -> tuple[int, dict[str, Any]]:
    with running.connect(actor) as client:
        answer = client.post(f"{GRAPH}{path}", json=body)
        return answer.status_code, answer.json()


def test_an_agent_calls_two_queries_and_writes_none_of_its_own(running: RunningServer) -> None:
    status, found = send(running, "bot", "/queries/find_person", params={"name": "ada"})
    assert (status, found["rows"]) == (200, [{"name": "ada", "age": 36}])
    assert send(running, "bot", "/queries/count_people")[0] == 200
    assert send(running, "bot", "/queries/list_companies")[0] == 404
    status, denied = send(running, "bot", "/query", query=ADHOC)
    assert (status, "'read'" in denied["error"]) == (403, True)
    # The text of a stored query is a query of its own, too.
    assert send(running, "bot", "/query", query=QUERIES, name="count_people")[0] == 403

    async def work(client: Client) -> None:
        offered = await names_of(client)
        assert {"find_person", "count_people"} <= offered
        assert not {"list_companies", "query", "proposal_approve", "proposal_merge"} & offered
        found = await call(client, "find_person", name="bob")
        assert found["rows"] == [{"name": "bob", "age": 20}]
        with pytest.raises(MCPError):
            await client.call_tool("query", {"query": ADHOC})

    visit(running, f"{GRAPH}/mcp", work, actor="bot")


def test_a_proposal_of_an_agent_is_merged_by_a_steward_as_it_was_approved(
    running: RunningServer,
) -> None:
    opened: dict[str, Any] = {}

    async def propose(client: Client) -> None:
        opened.update(await call(client, "proposal_open", title="Add eve", data=LINE, key="k"))
        for name in ("proposal_approve", "proposal_merge"):
            with pytest.raises(MCPError):
                await client.call_tool(name, {"number": 1})

    visit(running, f"{GRAPH}/mcp", propose, actor="bot")
    one = f"/proposals/{opened['number']}"
    for path, body in (
        (f"{one}/reviews", {"verdict": "approve"}),
        (f"{one}/merge", {}),
        ("/branches/merge", {"source": opened["source"], "target": "main"}),
    ):
        status, denied = send(running, "bot", path, **body)
        assert (status, "policy denies" in denied["error"]) == (403, True), path
    # A steward cannot go round the review either.
    direct = {"source": opened["source"], "target": "main"}
    assert send(running, "ines", "/branches/merge", **direct)[0] == 403
    assert send(running, "ines", f"{one}/merge")[0] == 403

    status, approved = send(running, "ines", f"{one}/reviews", verdict="approve")
    assert (status, approved["unmet"]) == (200, [])
    head = approved["head_commit_id"]
    assert send(running, "bot", "/mutate", query=AGE, branch=opened["source"])[0] == 200
    with running.connect("ines") as client:
        now = client.get(f"{GRAPH}{one}").json()
    assert [each["stale"] for each in now["reviews"]] == [True]
    assert "1 of an earlier commit" in now["unmet"][0]["missing"][0]
    assert send(running, "ines", f"{one}/merge", head=head)[0] == 412
    assert send(running, "ines", f"{one}/merge")[0] == 403

    assert send(running, "ines", f"{one}/reviews", verdict="approve")[0] == 200
    status, merged = send(running, "ines", f"{one}/merge")
    assert (status, merged["outcome"]) == (200, "fast_forward")
    status, again = send(running, "ines", f"{one}/merge")
    assert (status, again["commit"]) == (200, merged["commit"])
    status, found = send(running, "bot", "/queries/find_person", params={"name": "eve"})
    assert found["rows"] == [{"name": "eve", "age": 8}]
