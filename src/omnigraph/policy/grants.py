"""Who can do what: every actor of a bundle is asked about, so the answer is that of the gate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from omnigraph.policy.acts import BRANCH_ACTIONS, SERVER_ACTIONS, TARGET_ACTIONS, Act, Action
from omnigraph.policy.decisions import Policy
from omnigraph.policy.policy_bundle import BundleKind

_UNPROTECTED: Final = "unprotected"


class Grant(NamedTuple):
    """What one actor can do; `scope` is `protected`, `unprotected` or empty for the whole graph.

    `limit` is the type or the stored query that the grant is limited to, such as `type:Company`.
    """

    actor: str
    action: str
    scope: str = ""
    limit: str = ""


class Permitted(NamedTuple):
    """An actor who can do something, and the rule that allows it."""

    actor: str
    rule: str


def find_permitted(policy: Policy, act: Act) -> list[Permitted]:
    """Every actor who can do something, by name."""
    decided = ((actor, policy.decide(actor, act)) for actor in sorted(policy.bundle.actors))
    return [Permitted(actor, found.rule) for actor, found in decided if found.rule is not None]


def list_grants(policy: Policy) -> frozenset[Grant]:
    """Everything that a bundle allows, to be compared with that of another one."""
    found: set[Grant] = set()
    for action in Action:
        is_server = action in SERVER_ACTIONS
        if is_server == (policy.bundle.kind is BundleKind.SERVER):
            for scope, act in _iter_places(policy, action):
                found |= _collect_grants(policy, scope, act)
    return frozenset(found)


def _iter_places(policy: Policy, action: Action) -> Iterator[tuple[str, Act]]:
    if action not in BRANCH_ACTIONS | TARGET_ACTIONS:
        yield "", Act(action)
        return
    protected = policy.bundle.protected_branches
    # Any name that is not protected stands for all of them.
    other = next(name for name in _iter_names() if name not in protected)
    for scope, name in (*(("protected", each) for each in sorted(protected)[:1]), (other, other)):
        shown = "protected" if scope == "protected" else "unprotected"
        is_target = action in TARGET_ACTIONS
        yield shown, Act(action, target_branch=name) if is_target else Act(action, name)


def _iter_names() -> Iterator[str]:
    name = _UNPROTECTED
    while True:
        yield name
        name += "-"


def _collect_grants(policy: Policy, scope: str, act: Act) -> set[Grant]:
    whole = {each.actor for each in find_permitted(policy, act)}
    found = {Grant(actor, act.action, scope) for actor in whole}
    rules = policy.bundle.rules
    types = {name for rule in rules for name in rule.types or ()}
    queries = {name for rule in rules if rule.queries for name in rule.queries}
    if act.action is Action.INVOKE_QUERY or any(act.action in rule.carries for rule in rules):
        # A pattern is asked for by itself: it matches what it stands for.
        limits = [(f"query:{name}", act._replace(query=name)) for name in queries | {"*"}]
    else:
        limits = []
    limits += [(f"type:{name}", act._replace(type_name=name)) for name in types]
    for limit, narrower in limits:
        limited = {each.actor for each in find_permitted(policy, narrower)} - whole
        found |= {Grant(actor, act.action, scope, limit) for actor in limited}
    return found
