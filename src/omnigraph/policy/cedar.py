"""A bundle as a Cedar policy set: one permit for each action of a rule."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from omnigraph.errors import PolicyFailedError
from omnigraph.errors.query_errors import require_extra
from omnigraph.policy.acts import SERVER_ACTIONS, TARGET_ACTIONS, Act, Action
from omnigraph.policy.policy_bundle import Bundle, BundleKind, Rule, Scope

with require_extra("policy"):
    import cedarpy

JsonObject = dict[str, Any]  # Any: a JSON document

_NAMESPACE: Final = "Omnigraph"
_SERVER_ID: Final = "root"
_CONTEXT: Final = {
    "has_branch": "Bool",
    "branch": "String",
    "has_target_branch": "Bool",
    "target_branch": "String",
    "branch_is_protected": "Bool",
    "target_branch_is_protected": "Bool",
    "query": "String",
    "type_name": "String",
    "requirements": "Set<String>",
}
_SEPARATOR: Final = ":"


class CedarPolicy:
    """The rules of a bundle for one graph, or for the server."""

    def __init__(self, bundle: Bundle, *, graph: str) -> None:
        self._bundle = bundle
        is_server = bundle.kind is BundleKind.SERVER
        self._resource = _make_uid("Server", _SERVER_ID) if is_server else _make_uid("Graph", graph)
        document = {
            "staticPolicies": dict(_iter_permits(bundle, self._resource)),
            "templates": {},
            "templateLinks": [],
        }
        text = json.dumps(document)
        try:
            self._schema = cedarpy.Schema.from_str(_build_schema())
            checked = cedarpy.validate_policies(cedarpy.policies_from_json_str(text), self._schema)
            self._policies = cedarpy.PolicySet.from_json_str(text)
            self._entities = cedarpy.Entities.from_json_str(
                json.dumps(_list_entities(bundle, self._resource))
            )
        except ValueError as failure:
            raise PolicyFailedError(f"{bundle.file} cannot be compiled: {failure}") from failure
        if not checked.validation_passed:
            reasons = "; ".join(str(each.error) for each in checked.errors)
            raise PolicyFailedError(f"{bundle.file} cannot be compiled: {reasons}")

    def find_permits(self, actor: str, act: Act) -> list[str]:
        """The ids of the rules that allow an act to an actor, sorted; none for a denial."""
        request = {
            "principal": _make_uid("Actor", actor),
            "action": _make_uid("Action", act.action),
            "resource": self._resource,
            "context": self._describe_context(act),
        }
        try:
            found = cedarpy.is_authorized(request, self._policies, self._entities, self._schema)
        except ValueError as failure:
            raise PolicyFailedError(f"{act} cannot be decided: {failure}") from failure
        # Without a decision, and with a rule that failed, a denial is not an answer either.
        if found.decision is cedarpy.Decision.NoDecision or found.diagnostics.errors:
            reasons = "; ".join(map(str, found.diagnostics.errors))
            raise PolicyFailedError(f"{act} cannot be decided: {reasons}")
        if found.decision is not cedarpy.Decision.Allow:
            return []
        return sorted({each.rpartition(_SEPARATOR)[0] for each in found.diagnostics.reasons})

    def _describe_context(self, act: Act) -> JsonObject:
        protected = self._bundle.protected_branches
        return {
            "has_branch": act.branch is not None,
            "branch": act.branch or "",
            "has_target_branch": act.target_branch is not None,
            "target_branch": act.target_branch or "",
            "branch_is_protected": act.branch in protected,
            "target_branch_is_protected": act.target_branch in protected,
            "query": act.query or "",
            "type_name": act.type_name or "",
            "requirements": list(act.met),
        }


def _make_uid(type_name: str, name: str) -> JsonObject:
    return {"type": f"{_NAMESPACE}::{type_name}", "id": name}


def _list_entities(bundle: Bundle, resource: JsonObject) -> list[JsonObject]:
    parents: dict[str, list[JsonObject]] = {}
    for group, members in bundle.groups.items():
        for actor in members:
            parents.setdefault(actor, []).append(_make_uid("Group", group))
    entities = [(_make_uid("Actor", actor), groups) for actor, groups in parents.items()]
    entities += [(_make_uid("Group", group), []) for group in bundle.groups]
    return [
        {"uid": uid, "attrs": {}, "parents": inside} for uid, inside in (*entities, (resource, []))
    ]


def _build_schema() -> str:
    context = ", ".join(f"{name}: {type_}" for name, type_ in _CONTEXT.items())
    actions = "\n".join(
        f'  action "{action}" appliesTo {{ principal: [Actor],'
        f" resource: [{'Server' if action in SERVER_ACTIONS else 'Graph'}],"
        f" context: {{{context}}} }};"
        for action in Action
    )
    entities = "entity Group; entity Actor in [Group]; entity Graph; entity Server;"
    return f"namespace {_NAMESPACE} {{\n  {entities}\n{actions}\n}}"


def _iter_permits(bundle: Bundle, resource: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    for rule in bundle.rules:
        for action in (*rule.actions, *rule.carries):
            conditions = list(_iter_conditions(rule, action))
            yield (
                f"{rule.id}{_SEPARATOR}{action}",
                {
                    "effect": "permit",
                    "principal": {"op": "in", "entity": _make_uid("Group", rule.group)},
                    "action": {"op": "==", "entity": _make_uid("Action", action)},
                    "resource": {"op": "==", "entity": resource},
                    "conditions": [{"kind": "when", "body": each} for each in conditions],
                },
            )


def _iter_conditions(rule: Rule, action: Action) -> Iterator[JsonObject]:
    is_carried = action in rule.carries
    if rule.scope is not Scope.ANY and not is_carried:
        prefix = "target_branch" if action in TARGET_ACTIONS else "branch"
        is_protected = _read_context(f"{prefix}_is_protected")
        yield _read_context(f"has_{prefix}")
        yield is_protected if rule.scope is Scope.PROTECTED else {"!": {"arg": is_protected}}
    if rule.types is not None:
        yield _match_any("type_name", rule.types)
    if rule.queries is not None:
        yield _match_any("query", rule.queries)
    if rule.requires is not None:
        met = {"left": _read_context("requirements"), "right": {"Value": rule.id}}
        yield {"contains": met}
    if is_carried:
        # Only what a stored query does is carried, never what its caller asks for: `*` is also
        # like the empty name of no query.
        yield {"!=": {"left": _read_context("query"), "right": {"Value": ""}}}


def _match_any(name: str, patterns: tuple[str, ...]) -> JsonObject:
    """A condition that a text of the context is like one of some patterns, `*` being any text."""
    found: JsonObject = {"Value": False}
    for pattern in patterns:
        pieces: list[str | JsonObject] = []
        for place, text in enumerate(pattern.split("*") if name == "query" else [pattern]):
            pieces += ["Wildcard"] if place else []
            pieces += [{"Literal": text}] if text else []
        alternative = {"like": {"left": _read_context(name), "pattern": pieces}}
        found = {"||": {"left": found, "right": alternative}}
    return found


def _read_context(name: str) -> JsonObject:
    return {".": {"left": {"Var": "context"}, "attr": name}}
