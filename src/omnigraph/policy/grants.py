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

    `limit` is the type or the stored query that the grant is limited to, such as `type:Company`, or
    `type:Company where ($it.public = true)`.
    """

    actor: str
    action: str
    scope: str = ""
    limit: str = ""


class Permitted(NamedTuple):
    """An actor who can do something, the rule that allows it, and what that requires first."""

    actor: str
    rule: str
    requires: str = ""


def format_conditions(conditions: tuple[str, ...]) -> str:
    """How a limit says which rows of a type it is about."""
    return f" where {' or '.join(f'({each})' for each in conditions)}" if conditions else ""


def find_permitted(policy: Policy, act: Act) -> list[Permitted]:
    """Every actor who can do something, by name; some only to a proposal that meets a rule."""
    found: list[Permitted] = []
    for actor in sorted(policy.bundle.actors):
        decided = policy.decide(actor, act)
        if decided.rule is not None:
            found.append(Permitted(actor, decided.rule))
        found += [Permitted(actor, at.rule, str(at.requires)) for at in decided.conditional]
    return found


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
    permitted = find_permitted(policy, act)
    whole = {each.actor for each in permitted if not each.requires}
    found = {Grant(actor, act.action, scope) for actor in whole}
    found |= {
        Grant(each.actor, act.action, scope, f"proposals with {each.requires}")
        for each in permitted
        if each.requires
    }
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
        permitted = find_permitted(policy, narrower)
        limited = {each.actor for each in permitted if not each.requires} - whole
        for actor in limited:
            rows = format_conditions(policy.list_conditions(actor, narrower))
            found.add(Grant(actor, act.action, scope, f"{limit}{rows}"))
    return found
