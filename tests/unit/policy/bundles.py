"""Bundles that tests share."""

from __future__ import annotations

from omnigraph.policy.decisions import Policy
from omnigraph.policy.policy_bundle import parse_bundle

TEAM = """\
version: 1
groups:
  stewards: [act-ines]
  analysts: [act-jo, act-kim]
  agents: [bot]
  partners: [pat]
protected_branches: [main]
rules:
  - id: analysts-read-anywhere
    allow: {actors: {group: analysts}, actions: [read, export], branch_scope: any}
  - id: analysts-write-drafts
    allow: {actors: {group: analysts}, actions: [change], branch_scope: unprotected}
  - id: analysts-fork
    allow: {actors: {group: analysts}, actions: [branch_create], target_branch_scope: unprotected}
  - id: analysts-query
    allow: {actors: {group: analysts}, actions: [invoke_query]}
  - id: stewards-publish
    allow:
      actors: {group: stewards}
      actions: [branch_merge, schema_apply]
      target_branch_scope: protected
  - id: agents-call-these
    allow:
      actors: {group: agents}
      actions: [invoke_query]
      queries: [find_user, "report_*"]
      carries: [read]
  - id: partners-see-companies
    allow: {actors: {group: partners}, actions: [read, change], types: [Company]}
"""
NOTHING = "version: 1\ngroups: {all: [ada]}\nrules: []\n"


def compile_text(text: str = TEAM) -> Policy:
    return Policy(parse_bundle(text, file="team.yaml"))
