"""A compiled bundle and its decisions, which are kept in a bounded table."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Final

from omnigraph.errors import PolicyDeniedError
from omnigraph.policy.acts import ROW_ACTIONS, Act, Action
from omnigraph.policy.cedar import CedarPolicy
from omnigraph.policy.policy_bundle import Bundle, BundleKind, load_bundle
from omnigraph.policy.requirements import Requirement
from omnigraph.policy.row_conditions import require_fitting_conditions
from omnigraph.query.row_limits import ACTOR, GROUPS, RowLimits
from omnigraph.schema.catalog import Catalog

# A decision takes Cedar as long as a small query; a few hundred bytes each are kept of so many.
DECISIONS_MAX: Final = 16_384

_PROPOSAL_HINT: Final = "open a proposal, and merge that: `omnigraph proposal open`"
_ACTOR_HINT: Final = "name an actor: `actor=`, --as, or operator.actor of the operator config"


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether an act is allowed, by which rule, and how that is put into words.

    `conditional` are rules that would allow a denied merge to a proposal that meets them. `rules`
    are all that allow the act, of which `rule` is the first.
    """

    is_allowed: bool
    message: str
    rule: str | None = None
    conditional: tuple[Requirement, ...] = ()
    rules: tuple[str, ...] = ()
    # Of a type: what its rows must satisfy to be seen, each of them enough; all rows without any.
    conditions: tuple[str, ...] = ()


class Policy:
    """A bundle, compiled for one graph or for the server; safe to share between threads."""

    def __init__(self, bundle: Bundle, *, graph: str = "graph") -> None:
        self.bundle = bundle
        self._type_names = sorted({name for rule in bundle.rules for name in rule.types or ()})
        self.limits_types = bool(self._type_names)
        limited = {rule.group for rule in bundle.rules if rule.queries is not None}
        self._limited = frozenset(actor for name in limited for actor in bundle.groups[name])
        limited_types = {name for rule in bundle.rules for name, _ in rule.conditions}
        self._conditional_types = sorted(limited_types)
        self._rules = {rule.id: rule for rule in bundle.rules}
        self._limits: dict[tuple[str | None, Act], RowLimits | None] = {}
        self._cedar = CedarPolicy(bundle, graph=graph)
        self._known: dict[tuple[str | None, Act], Decision] = {}

    def check_schema(self, catalog: Catalog) -> None:
        """Refuse the bundle if its conditions on rows do not fit the schema of its graph."""
        require_fitting_conditions(self.bundle, catalog)

    def has_query_limits(self, actor: str | None) -> bool:
        """Whether rules name the stored queries that an actor may invoke."""
        return actor in self._limited

    def check(self, actor: str | None, act: Act) -> None:
        """Raise `PolicyDeniedError` unless an act is allowed to an actor."""
        found = self._known.get((actor, act)) or self.decide(actor, act)
        if not found.is_allowed:
            hint = _PROPOSAL_HINT if found.conditional else None
            hint = _ACTOR_HINT if actor is None else hint
            raise PolicyDeniedError(found.message, actor=actor, action=act.action, hint=hint)

    def check_some(self, actor: str | None, act: Act) -> None:
        """Raise `PolicyDeniedError` unless an act is allowed, of at least one type."""
        try:
            self.check(actor, act)
        except PolicyDeniedError:
            named = (act._replace(type_name=name) for name in self._type_names)
            if not any(self.decide(actor, each).is_allowed for each in named):
                raise

    def decide(self, actor: str | None, act: Act) -> Decision:
        """The decision about an act; what cannot be decided raises `PolicyFailedError`."""
        if actor is None:
            return Decision(False, f"policy denies {act}: no actor is named")
        if actor not in self.bundle.actors:
            # Not kept: anything may call itself anything.
            return Decision(False, f"policy denies {act} to unknown actor '{actor}'")
        key = actor, act
        found = self._known.get(key)
        if found is None:
            found = self._evaluate(actor, act)
            while len(self._known) >= DECISIONS_MAX:
                self._known.pop(next(iter(self._known)), None)
            self._known[key] = found
        return found

    def _evaluate(self, actor: str, act: Act) -> Decision:
        rules = self._cedar.find_permits(actor, act)
        if rules:
            message = f"policy allows {act} to actor '{actor}'"
            decision = Decision(True, message, rules[0], rules=tuple(rules))
            conditions = self._collect_conditions(act, decision)
            return replace(decision, conditions=conditions) if conditions else decision
        denial = f"policy denies {act} to actor '{actor}'"
        conditional = self._find_conditional(actor, act)
        if not conditional:
            return Decision(False, denial)
        needs = " or ".join(f"{each.requires} (rule '{each.rule}')" for each in conditional)
        return Decision(False, f"{denial} without {needs}", conditional=conditional)

    def find_row_limits(self, actor: str | None, act: Act) -> RowLimits | None:
        """What an actor may see of types whose rows rules limit; None if he sees all rows."""
        if not self._conditional_types or act.action not in ROW_ACTIONS:
            return None
        key = actor, act
        if key in self._limits:
            return self._limits[key]
        found = [
            (name, conditions)
            for name in self._conditional_types
            if (conditions := self.list_conditions(actor, act._replace(type_name=name)))
        ]
        limits = None
        if found and actor is not None:
            texts = " ".join(text for _, conditions in found for text in conditions)
            # Actors that see the same share what is compiled for it.
            asked = actor if f"${ACTOR}" in texts else ""
            groups = self._list_groups(actor) if f"${GROUPS}" in texts else ()
            limits = RowLimits(asked, groups, tuple(found))
        if actor in self.bundle.actors:
            while len(self._limits) >= DECISIONS_MAX:
                self._limits.pop(next(iter(self._limits)), None)
            self._limits[key] = limits
        return limits

    def list_conditions(self, actor: str | None, act: Act) -> tuple[str, ...]:
        """The conditions of the rules that allow an act on a type; none if one has no condition."""
        return self.decide(actor, act).conditions

    def _collect_conditions(self, act: Act, decision: Decision) -> tuple[str, ...]:
        if act.type_name is None or act.action not in ROW_ACTIONS:
            return ()
        rules = [self._rules[each] for each in decision.rules]
        found = [each.find_condition(act.type_name) for each in rules]
        texts = [each for each in found if each is not None]
        return tuple(dict.fromkeys(texts)) if len(texts) == len(found) else ()

    def _list_groups(self, actor: str) -> tuple[str, ...]:
        """The groups of an actor, by name."""
        groups = self.bundle.groups
        return tuple(sorted(name for name in groups if actor in groups[name]))

    def list_requirements(self, target: str) -> tuple[Requirement, ...]:
        """What each rule with `requires` wants of a merge into a branch."""
        return self.bundle.list_requirements(target)

    def _find_conditional(self, actor: str, act: Act) -> tuple[Requirement, ...]:
        """The rules that would allow a merge, of a proposal that has what they require."""
        if act.action is not Action.BRANCH_MERGE or act.target_branch is None:
            return ()
        wanted = self.list_requirements(act.target_branch)
        return tuple(
            each
            for each in wanted
            if each.rule in self._cedar.find_permits(actor, act._replace(met=(each.rule,)))
        )


def load_policy(path: str | os.PathLike[str], *, graph: str = "graph") -> Policy:
    """The bundle of a graph in a file, compiled."""
    return Policy(load_bundle(path, kind=BundleKind.GRAPH), graph=graph)
