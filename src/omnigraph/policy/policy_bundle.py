"""Bundles from YAML: groups, protected branches and rules that allow."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

import yaml

from omnigraph.config.yaml_reader import (
    FieldKind,
    FieldSpec,
    Findings,
    Position,
    Section,
    SectionSchema,
    is_null,
    iter_named_nodes,
    parse_document,
    position_of,
    read_section,
    read_text,
    require_version,
)
from omnigraph.errors import PolicyInvalidError
from omnigraph.lang.quoting import sanitize_text
from omnigraph.lang.spellcheck import suggest_similar
from omnigraph.policy.acts import (
    BRANCH_ACTIONS,
    CARRIED_ACTIONS,
    ROW_ACTIONS,
    SERVER_ACTIONS,
    TARGET_ACTIONS,
    TYPE_ACTIONS,
    Action,
)
from omnigraph.policy.requirements import Requirement, Requires
from omnigraph.query.row_limits import find_grammar_problem

VERSION: Final = 1
# A name, in which `*` stands for any text. Another text is like no query.
_QUERY_PATTERN: Final = re.compile(r"[A-Za-z0-9_*-]+", re.ASCII)
_ACTIONS: Final = tuple(map(str, Action))
_ALL_ROWS: Final = "all"


class Scope(StrEnum):
    """Which branches a rule covers."""

    ANY = "any"
    PROTECTED = "protected"
    UNPROTECTED = "unprotected"


class BundleKind(StrEnum):
    """What a bundle is bound to."""

    GRAPH = "graph"
    SERVER = "server"


_SCOPES: Final = tuple(map(str, Scope))
BUNDLE: Final = SectionSchema(
    "policy",
    "A policy bundle: a file that says who may do what.",
    (
        FieldSpec("version", FieldKind.INTEGER, "The version of the format: 1.", True),
        FieldSpec("groups", FieldKind.NAMED, "Lists of actors by the name of the group."),
        FieldSpec(
            "protected_branches", FieldKind.TEXTS, "Branches that scopes distinguish.", False
        ),
        FieldSpec("rules", FieldKind.SECTIONS, "What is allowed; all else is denied.", True, ()),
    ),
)
RULE: Final = SectionSchema(
    "rule",
    "One rule of `rules`.",
    (
        FieldSpec("id", FieldKind.TEXT, "Its name in decisions.", True),
        FieldSpec("allow", FieldKind.SECTION, "Whom it allows what.", True),
    ),
)
ALLOW: Final = SectionSchema(
    "allow",
    "What a rule allows.",
    (
        FieldSpec("actors", FieldKind.SECTION, "`{group: NAME}`.", True),
        FieldSpec("actions", FieldKind.TEXTS, "The actions.", True, (), _ACTIONS),
        FieldSpec(
            "branch_scope",
            FieldKind.TEXT,
            "Which branches, of `read`, `export` and `change`.",
            False,
            None,
            _SCOPES,
        ),
        FieldSpec(
            "target_branch_scope",
            FieldKind.TEXT,
            "Which target branches, of `schema_apply` and `branch_*`.",
            False,
            None,
            _SCOPES,
        ),
        FieldSpec("queries", FieldKind.TEXTS, "Stored queries of `invoke_query`; `*` matches any."),
        FieldSpec(
            "types",
            FieldKind.ANY,
            "Names of types, or `{NAME: all}`; of node types also conditions on their rows.",
        ),
        FieldSpec(
            "carries",
            FieldKind.TEXTS,
            "What the stored queries of the rule may do inside: `read`, `change`.",
            False,
            (),
            tuple(sorted(map(str, CARRIED_ACTIONS))),
        ),
        FieldSpec(
            "requires",
            FieldKind.SECTION,
            "What a proposal must have before `branch_merge` is allowed.",
        ),
    ),
)
REQUIRES: Final = SectionSchema(
    "requires",
    "What a proposal must have before its branch may be merged.",
    (
        FieldSpec("approvals", FieldKind.INTEGER, "How many actors must approve.", False, 0),
        FieldSpec("from", FieldKind.TEXT, "The group whose approvals count; else all actors'."),
        FieldSpec(
            "author_may_approve",
            FieldKind.BOOLEAN,
            "Whether the approval of its author counts.",
            False,
            False,
        ),
        FieldSpec("checks", FieldKind.TEXTS, "Checks that must have passed."),
        FieldSpec(
            "threads_resolved",
            FieldKind.BOOLEAN,
            "Whether every comment on an entity must be resolved.",
            False,
            False,
        ),
        FieldSpec(
            "up_to_date",
            FieldKind.BOOLEAN,
            "Whether the branch must have the newest commit of the target.",
            False,
            False,
        ),
    ),
)
ACTORS: Final = SectionSchema(
    "actors",
    "Whom a rule is for.",
    (FieldSpec("group", FieldKind.TEXT, "A group of `groups`.", True),),
)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule; `queries` and `types` are None where it covers all of them.

    `conditions` are those that nodes of types must satisfy to be seen.
    """

    id: str
    group: str
    actions: tuple[Action, ...]
    scope: Scope = Scope.ANY
    queries: tuple[str, ...] | None = None
    types: tuple[str, ...] | None = None
    carries: tuple[Action, ...] = ()
    requires: Requires | None = None
    conditions: tuple[tuple[str, str], ...] = ()

    def find_condition(self, type_name: str) -> str | None:
        """The condition on the rows of a type that the rule covers."""
        return dict(self.conditions).get(type_name)


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle that was read: its groups with their actors, and its rules in order."""

    file: str
    kind: BundleKind
    groups: Mapping[str, tuple[str, ...]]
    protected_branches: frozenset[str]
    rules: tuple[Rule, ...]
    actors: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        named = (actor for members in self.groups.values() for actor in members)
        object.__setattr__(self, "actors", frozenset(named))

    def list_requirements(self, target: str) -> tuple[Requirement, ...]:
        """What each rule with `requires` wants of a merge into a branch, in the order of rules."""
        is_protected = target in self.protected_branches
        scopes = {Scope.ANY, Scope.PROTECTED if is_protected else Scope.UNPROTECTED}
        return tuple(
            Requirement(rule.id, rule.requires, self._list_approvers(rule.requires))
            for rule in self.rules
            if rule.requires is not None and rule.scope in scopes
        )

    def _list_approvers(self, requires: Requires) -> frozenset[str]:
        named = requires.approvers
        return self.actors if named is None else frozenset(self.groups[named])


def load_bundle(path: str | os.PathLike[str], *, kind: BundleKind | None = None) -> Bundle:
    """The bundle in a file; without a kind, that of its first rule."""
    findings = Findings(os.fspath(path), error=PolicyInvalidError)
    return _build_bundle(read_text(Path(path), findings), findings, kind)


def parse_bundle(text: str, *, file: str, kind: BundleKind | None = None) -> Bundle:
    """The bundle in a text; `PolicyInvalidError` lists all its problems."""
    return _build_bundle(text, Findings(file, error=PolicyInvalidError), kind)


def _build_bundle(text: str, findings: Findings, kind: BundleKind | None) -> Bundle:
    section = read_section(parse_document(text, findings), BUNDLE, findings)
    require_version(section, VERSION, findings)
    groups = _read_groups(section.values["groups"], findings)
    rules: dict[str, Rule] = {}
    for node in section.values["rules"]:
        rule, place = _read_rule(node, groups, findings)
        _require_printable(rule.id, position_of(node), findings)
        if rule.id in rules:
            message = f"rule: two rules have the id '{sanitize_text(rule.id)}'"
            findings.add_problem(position_of(node), message, code="duplicate_rule")
        kind = kind or _guess_kind(rule)
        _check_kind(rule.actions, kind, place, findings)
        rules[rule.id] = rule
    protected = _read_protected(section, findings)
    findings.raise_if_any()
    found = tuple(rules.values())
    return Bundle(findings.file, kind or BundleKind.GRAPH, groups, protected, found)


def _read_protected(section: Section, findings: Findings) -> frozenset[str]:
    """The protected branches; what cannot name a branch would leave one unprotected."""
    names: tuple[str, ...] = section.values["protected_branches"] or ()
    for name in names:
        if "*" in name or name != name.strip():
            message = f"protected_branches: '{sanitize_text(name)}' is not the name of a branch"
            hint = "list each branch by its name: there are no patterns here"
            findings.add_problem(section.position_of("protected_branches"), message, hint=hint)
    return frozenset(names)


def _guess_kind(rule: Rule) -> BundleKind:
    is_server = any(action in SERVER_ACTIONS for action in rule.actions)
    return BundleKind.SERVER if is_server else BundleKind.GRAPH


def _read_groups(node: yaml.MappingNode | None, findings: Findings) -> dict[str, tuple[str, ...]]:
    groups: dict[str, tuple[str, ...]] = {}
    for name, place, members in () if node is None else iter_named_nodes(node):
        if not name.strip():
            findings.add_problem(place, "groups: a group needs a name")
        _require_printable(name, place, findings)
        if not isinstance(members, yaml.SequenceNode) or not members.value:
            message = f"groups: '{sanitize_text(name)}' expects: a list of actors"
            findings.add_problem(position_of(members), message)
            groups[name] = ()
            continue
        groups[name] = tuple(_read_actor(each, name, findings) for each in members.value)
    return groups


def _read_actor(node: yaml.Node, group: str, findings: Findings) -> str:
    name = str(node.value) if isinstance(node, yaml.ScalarNode) and not is_null(node) else ""
    if not name.strip():
        message = f"groups: an actor of '{sanitize_text(group)}' is empty"
        findings.add_problem(position_of(node), message)
    _require_printable(name, position_of(node), findings)
    return name


def _require_printable(name: str, place: Position, findings: Findings) -> None:
    """A name with a line of its own could add a line to the decisions and plans that show it."""
    if not name.isprintable():
        message = f"'{sanitize_text(name)}' has characters that cannot be shown"
        findings.add_problem(place, message)


def _read_rule(
    node: yaml.Node, groups: Mapping[str, object], findings: Findings
) -> tuple[Rule, Position]:
    """A rule, and where its actions are."""
    section = read_section(node, RULE, findings)
    if section.values["allow"] is None:
        return Rule(section.get_text("id"), "", ()), section.position
    allow = read_section(section.values["allow"], ALLOW, findings)
    group = _read_group(allow, groups, findings)
    actions = tuple(dict.fromkeys(map(Action, allow.values["actions"])))
    if not actions and allow.has_field("actions"):
        findings.add_problem(allow.position_of("actions"), "allow: 'actions' is empty")
    queries = allow.values["queries"]
    if queries is not None:
        _check_queries(queries, allow.position_of("queries"), findings)
        _require_actions("queries", actions, {Action.INVOKE_QUERY}, allow, findings)
    carries = tuple(dict.fromkeys(map(Action, allow.values["carries"])))
    if carries:
        _require_actions("carries", actions, {Action.INVOKE_QUERY}, allow, findings)
    scope = _read_scope(actions, allow, findings)
    types, conditions = _read_types(actions, allow, findings)
    requires = _read_requires(actions, allow, groups, findings)
    rule = Rule(
        section.get_text("id"),
        group,
        actions,
        scope,
        queries,
        types,
        carries,
        requires,
        conditions,
    )
    return rule, allow.position_of("actions")


def _read_requires(
    actions: tuple[Action, ...],
    allow: Section,
    groups: Mapping[str, object],
    findings: Findings,
) -> Requires | None:
    node: yaml.Node | None = allow.values["requires"]
    if node is None:
        return None
    _require_actions("requires", actions, {Action.BRANCH_MERGE}, allow, findings)
    given = read_section(node, REQUIRES, findings)
    group = given.find_text("from")
    if group is not None:
        _require_group(group, groups, given.position_of("from"), findings)
    found = Requires(
        given.values["approvals"],
        group,
        given.values["author_may_approve"],
        given.values["checks"] or (),
        given.values["threads_resolved"],
        given.values["up_to_date"],
    )
    if not str(found):
        # It would look like a rule with a condition, and allow every merge of a proposal.
        findings.add_problem(given.position, "requires: nothing is required")
    return found


def _check_queries(names: tuple[str, ...], place: Position, findings: Findings) -> None:
    if not names:
        findings.add_problem(place, "allow: 'queries' is empty")
    for name in filter(None, names):
        if _QUERY_PATTERN.fullmatch(name) is None:
            message = f"allow: '{sanitize_text(name)}' is not the name of a stored query"
            findings.add_problem(place, message)


def _read_group(allow: Section, groups: Mapping[str, object], findings: Findings) -> str:
    if allow.values["actors"] is None:
        return ""
    actors = read_section(allow.values["actors"], ACTORS, findings)
    group = actors.get_text("group")
    if group:
        _require_group(group, groups, actors.position_of("group"), findings)
    return group


def _require_group(
    group: str, groups: Mapping[str, object], place: Position, findings: Findings
) -> None:
    if group not in groups:
        hint = suggest_similar(group, groups) or "declare it under 'groups'"
        message = f"rule: unknown group '{sanitize_text(group)}'"
        findings.add_problem(place, message, hint=hint, code="unknown_group")


def _check_kind(
    actions: Iterable[Action], kind: BundleKind, place: Position, findings: Findings
) -> None:
    is_server = kind is BundleKind.SERVER
    for action in actions:
        if (action in SERVER_ACTIONS) != is_server:
            right = "the cluster" if action in SERVER_ACTIONS else "a graph"
            message = f"allow: '{action}' is not an action of a {kind} bundle"
            hint = f"put it into a bundle that applies to {right}"
            findings.add_problem(place, message, hint=hint, code="wrong_bundle_kind")


def _read_scope(actions: tuple[Action, ...], allow: Section, findings: Findings) -> Scope:
    given = [
        (name, supported)
        for name, supported in (
            ("branch_scope", BRANCH_ACTIONS),
            ("target_branch_scope", TARGET_ACTIONS),
        )
        if allow.has_field(name)
    ]
    if len(given) > 1:
        message = "allow: 'branch_scope' and 'target_branch_scope' exclude each other"
        hint = "write a rule for each"
        findings.add_problem(allow.position_of("target_branch_scope"), message, hint=hint)
        return Scope.ANY
    for name, supported in given:
        _require_actions(name, actions, supported, allow, findings)
        return Scope(allow.get_text(name) or Scope.ANY)
    return Scope.ANY


def _require_actions(
    name: str,
    actions: Iterable[Action],
    supported: Iterable[Action],
    allow: Section,
    findings: Findings,
) -> None:
    """Every action of a rule must support a key, which would else widen or narrow nothing."""
    allowed = frozenset(supported)
    for action in actions:
        if action not in allowed:
            known = ", ".join(sorted(allowed))
            message = f"allow: '{action}' has no '{name}'"
            hint = f"{known} has" if len(allowed) == 1 else f"{known} have"
            findings.add_problem(allow.position_of(name), message, hint=hint)


def _read_types(
    actions: tuple[Action, ...], allow: Section, findings: Findings
) -> tuple[tuple[str, ...] | None, tuple[tuple[str, str], ...]]:
    """The types of a rule, and the conditions on the rows of some of them."""
    node: yaml.Node | None = allow.values["types"]
    if node is None:
        return None, ()
    _require_actions("types", actions, TYPE_ACTIONS, allow, findings)
    names: list[str] = []
    conditions: list[tuple[str, str]] = []
    if isinstance(node, yaml.MappingNode):
        for name, _, value in iter_named_nodes(node):
            names.append(name)
            condition = _read_condition(name, value, findings)
            conditions += [] if condition is None else [(name, condition)]
        if conditions:
            _require_reads(actions, position_of(node), findings)
    else:
        items = node.value if isinstance(node, yaml.SequenceNode) else [node]
        names = [str(each.value) for each in items]
    # No type has another name, so a pattern, for one, would allow nothing.
    if not names or not all(map(str.isidentifier, names)):
        findings.add_problem(position_of(node), "allow: 'types' expects: names of types")
    return tuple(names), tuple(conditions)


def _read_condition(name: str, node: yaml.Node, findings: Findings) -> str | None:
    """The condition on the rows of a type; None if all of them are allowed."""
    shown = sanitize_text(name)
    text = str(node.value) if isinstance(node, yaml.ScalarNode) and not is_null(node) else ""
    if text == _ALL_ROWS:
        return None
    if "$" not in text:
        # It reads nothing: most likely a misspelled `all`.
        message = f"allow: the rows of type '{shown}' are `all`, or those of a condition"
        findings.add_problem(position_of(node), message, hint='as in "$it.public = true"')
    elif not text.isprintable():
        _require_printable(text, position_of(node), findings)
    elif (problem := find_grammar_problem(text)) is not None:
        message = f"allow: the condition of type '{shown}': {problem.message}"
        findings.add_problem(position_of(node), message, hint=problem.hint)
    return text


def _require_reads(actions: Iterable[Action], place: Position, findings: Findings) -> None:
    """A condition says what is seen: a write of a rule would look as if it were limited too."""
    for action in actions:
        if action not in ROW_ACTIONS:
            message = f"allow: '{action}' cannot be limited to rows of a type"
            hint = "write a rule of its own for it: conditions limit 'read' and 'export'"
            findings.add_problem(place, message, hint=hint)
