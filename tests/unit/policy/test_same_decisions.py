"""A server and the engine decide alike: both ask one compiled bundle."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import PolicyDeniedError
from served import create_people, serve_people

POLICY = """\
version: 1
groups: {admins: [ada], team: [bob]}
protected_branches: [main]
rules:
  - id: all-fork
    allow: {actors: {group: admins}, actions: [branch_create]}
  - id: admins-change
    allow: {actors: {group: admins}, actions: [change], branch_scope: any}
  - id: admins-merge
    allow: {actors: {group: admins}, actions: [branch_merge], target_branch_scope: protected}
  - id: team-drafts
    allow: {actors: {group: team}, actions: [change], branch_scope: unprotected}
  - id: team-merge
    allow: {actors: {group: team}, actions: [branch_merge], target_branch_scope: unprotected}
"""
G = "/graphs/people"
# The acts that are allowed, of each actor with each branch as the target.
ALLOWED = {
    *(("ada", "change", "main"), ("ada", "change", "draft"), ("ada", "merge", "main")),
    *(("bob", "change", "draft"), ("bob", "merge", "draft")),
}
ACTS = [
    (actor, act, branch)
    for actor in ("ada", "bob", "eve")
    for act in ("change", "merge")
    for branch in ("main", "draft")
]


def insert(number: int) -> str:
    return f'query hire() {{ insert Person {{ name: "p{number}" }} }}'


@pytest.mark.slow
def test_a_server_and_the_engine_decide_alike(tmp_path: Path) -> None:
    (tmp_path / "served").mkdir()
    with serve_people(tmp_path / "served", actors=("ada", "bob", "eve"), policy=POLICY) as running:
        with running.connect("ada") as client:
            assert client.post(f"{G}/branches", json={"name": "draft"}).status_code == 200
        served = {}
        for number, (actor, act, branch) in enumerate(ACTS):
            source = "draft" if branch == "main" else "main"
            change = {"query": insert(number), "branch": branch}
            merge = {"source": source, "target": branch}
            with running.connect(actor) as client:
                path = "mutate" if act == "change" else "branches/merge"
                answer = client.post(f"{G}/{path}", json=change if act == "change" else merge)
            served[actor, act, branch] = answer.status_code
    uri = create_people(tmp_path / "people.omni")
    opened = {}
    policy = tmp_path / "served/policy.yaml"
    with omnigraph.open(uri, actor="ada", policy=policy) as graph:
        graph.create_branch("draft")
        for number, (actor, act, branch) in enumerate(ACTS):
            target = graph.acting_as(actor).branch(branch)
            try:
                if act == "change":
                    target.mutate(insert(number))
                else:
                    target.merge("draft" if branch == "main" else "main")
                opened[actor, act, branch] = 200
            except PolicyDeniedError:
                opened[actor, act, branch] = 403
    assert served == opened
    assert {each for each, status in opened.items() if status == 200} == ALLOWED
