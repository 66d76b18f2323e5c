"""Files of cases: what a bundle is expected to allow and to deny."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from omnigraph.config.yaml_reader import (
    FieldKind,
    FieldSpec,
    Findings,
    SectionSchema,
    parse_document,
    position_of,
    read_section,
    read_text,
    require_version,
)
from omnigraph.errors import PolicyInvalidError
from omnigraph.lang.quoting import sanitize_text
from omnigraph.policy.acts import Act, Action
from omnigraph.policy.decisions import Policy
from omnigraph.policy.policy_bundle import VERSION

_EXPECTED: Final = ("allow", "deny")
CASES: Final = SectionSchema(
    "cases",
    "A file of expected decisions.",
    (
        FieldSpec("version", FieldKind.INTEGER, "The version of the format: 1.", True),
        FieldSpec("cases", FieldKind.SECTIONS, "The cases.", True, ()),
    ),
)
CASE: Final = SectionSchema(
    "case",
    "One expected decision.",
    (
        FieldSpec("id", FieldKind.TEXT, "Its name in reports.", True),
        FieldSpec("actor", FieldKind.TEXT, "Who acts.", True),
        FieldSpec("action", FieldKind.TEXT, "The action.", True, None, tuple(map(str, Action))),
        FieldSpec("branch", FieldKind.TEXT, "The branch."),
        FieldSpec("target_branch", FieldKind.TEXT, "The target branch."),
        FieldSpec("query", FieldKind.TEXT, "The stored query."),
        FieldSpec("type", FieldKind.TEXT, "The type."),
        FieldSpec("meets", FieldKind.TEXTS, "Rules whose `requires` the proposal meets."),
        FieldSpec("expect", FieldKind.TEXT, "`allow` or `deny`.", True, None, _EXPECTED),
    ),
)


@dataclass(frozen=True, slots=True)
class PolicyCase:
    """An act of an actor, and whether it is to be allowed."""

    id: str
    actor: str
    act: Act
    is_allowed: bool


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A case that is decided otherwise than expected."""

    case: PolicyCase
    message: str
    rule: str | None

    def to_json(self) -> dict[str, str | None]:
        """The document of a mismatch."""
        expected = "allow" if self.case.is_allowed else "deny"
        return {
            "id": self.case.id,
            "expected": expected,
            "message": self.message,
            "rule": self.rule,
        }

    def __str__(self) -> str:
        expected = "allow" if self.case.is_allowed else "deny"
        rule = "" if self.rule is None else f" (rule {self.rule})"
        return f"{self.case.id}: expected {expected}, but {self.message}{rule}"


def load_cases(path: Path) -> tuple[PolicyCase, ...]:
    """The cases in a file; `PolicyInvalidError` lists all its problems."""
    findings = Findings(str(path), error=PolicyInvalidError)
    section = read_section(parse_document(read_text(path, findings), findings), CASES, findings)
    require_version(section, VERSION, findings)
    cases: dict[str, PolicyCase] = {}
    for node in section.values["cases"]:
        given = read_section(node, CASE, findings)
        name = given.get_text("id")
        if name and name in cases:
            message = f"case: two cases have the id '{sanitize_text(name)}'"
            findings.add_problem(position_of(node), message)
        action = given.find_text("action")
        act = Act(
            Action.READ if action is None else Action(action),
            given.find_text("branch"),
            given.find_text("target_branch"),
            given.find_text("query"),
            given.find_text("type"),
            given.values["meets"] or (),
        )
        cases[name] = PolicyCase(
            name, given.get_text("actor"), act, given.get_text("expect") == "allow"
        )
    findings.raise_if_any()
    return tuple(cases.values())


def find_mismatches(policy: Policy, cases: tuple[PolicyCase, ...]) -> list[Mismatch]:
    """Every case that is decided otherwise than expected."""
    decided = ((case, policy.decide(case.actor, case.act)) for case in cases)
    return [
        Mismatch(case, found.message, found.rule)
        for case, found in decided
        if found.is_allowed != case.is_allowed
    ]
