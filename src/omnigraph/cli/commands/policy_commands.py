"""`omnigraph policy`: check a policy bundle, and ask it who may do what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.cluster_access import open_cluster, resolve_cluster
from omnigraph.cli.command_errors import FAILED, fail
from omnigraph.cli.command_registry import CONTROL_FLAGS, add_group, register_command
from omnigraph.cli.global_options import Capability, Scope
from omnigraph.cli.shared_options import JSON
from omnigraph.cli.views import format_count, print_problems
from omnigraph.cli.views.answer_views import Fields, JsonObject, show
from omnigraph.cli.views.output_streams import align_columns
from omnigraph.error_codes import ErrorCode
from omnigraph.lang.quoting import escape_unprintable

if TYPE_CHECKING:
    from omnigraph.policy.acts import Act
    from omnigraph.policy.decisions import Decision, Policy
    from omnigraph.policy.grants import Permitted

_FILE = Annotated[
    Path | None,
    typer.Option("--file", metavar="PATH", help="A bundle, in place of one that is applied."),
]


@dataclass(frozen=True, slots=True)
class ActOptions:
    """An action, and what it concerns."""

    action: Annotated[
        str, typer.Option("--action", metavar="ACTION", help="Such as read, change, branch_merge.")
    ]
    branch: Annotated[
        str | None, typer.Option("--branch", metavar="NAME", help="The branch, or its source.")
    ] = None
    target_branch: Annotated[
        str | None, typer.Option("--target-branch", metavar="NAME", help="The target branch.")
    ] = None
    query: Annotated[
        str | None, typer.Option("--query", metavar="NAME", help="The stored query.")
    ] = None
    type_name: Annotated[str | None, typer.Option("--type", metavar="NAME", help="The type.")] = (
        None
    )
    meets: Annotated[
        list[str] | None,
        typer.Option(
            "--meets",
            metavar="RULE",
            help="A rule whose `requires` the proposal meets; may be repeated.",
        ),
    ] = None

    def to_act(self) -> Act:
        """The act that is asked about."""
        from omnigraph.lang.spellcheck import suggest_similar
        from omnigraph.policy.acts import Act, Action

        if self.action not in set(Action):
            hint = suggest_similar(self.action, Action) or f"known are {', '.join(Action)}"
            raise typer.BadParameter(f"'{self.action}' is not an action ({hint})")
        places = self.branch, self.target_branch, self.query, self.type_name
        return Act(Action(self.action), *places, tuple(self.meets or ()))

    def to_json(self) -> JsonObject:
        """What was given of it."""
        given = {
            "action": self.action,
            "branch": self.branch,
            "target_branch": self.target_branch,
            "query": self.query,
            "type": self.type_name,
            "meets": self.meets or None,
        }
        return {name: value for name, value in given.items() if value is not None}


def register(app: typer.Typer) -> None:
    """Add the verbs to the command tree."""
    below = add_group(app, "policy", "Check a policy bundle, and ask it who may do what.")
    register_command(below, Capability.CONTROL, takes=CONTROL_FLAGS)(validate)
    register_command(below, Capability.CONTROL, takes=CONTROL_FLAGS, names=("test",))(compare_cases)
    register_command(below, Capability.CONTROL, takes=CONTROL_FLAGS)(explain)
    register_command(below, Capability.CONTROL, takes=CONTROL_FLAGS, names=("who-can",))(
        list_permitted
    )


def validate(scope: Scope, file: _FILE = None, is_json: JSON = False) -> None:
    """Compile a bundle; all problems of a file are listed at once."""
    name, policy = _load_policy(scope, file)
    bundle = policy.bundle
    counts = {"rules": len(bundle.rules), "actors": len(bundle.actors)}
    document = {"file": name, "kind": str(bundle.kind), **counts}
    shown = ", ".join(format_count(count, each[:-1]) for each, count in counts.items())
    show(Fields(document, f"{name}: valid, {shown}"), is_json=is_json)


def compare_cases(
    scope: Scope,
    tests: Annotated[Path, typer.Option("--tests", metavar="PATH", help="The file of cases.")],
    file: _FILE = None,
    is_json: JSON = False,
) -> None:
    """Compare a bundle with expected decisions; exit with 1 if one differs."""
    from omnigraph.policy.policy_cases import find_mismatches, load_cases

    cases = load_cases(tests)
    name, policy = _load_policy(scope, file)
    mismatches = find_mismatches(policy, cases)
    document = {
        "file": name,
        "cases": len(cases),
        "mismatches": [each.to_json() for each in mismatches],
    }
    good = f"{format_count(len(cases), 'case')} passed"
    bad = f"{len(mismatches)} of {format_count(len(cases), 'case')} failed"
    failure = ErrorCode.BAD_REQUEST if mismatches else None
    show(Fields(document, bad if mismatches else good), is_json=is_json, failure=failure)
    if failure:
        if not is_json:
            print_problems(map(str, mismatches))
        raise typer.Exit(FAILED)


def explain(
    scope: Scope,
    # Not `actor`: that is the name of the global option for commits.
    acting: Annotated[str, typer.Option("--actor", metavar="ACTOR", help="Who acts.")],
    asked: ActOptions,
    file: _FILE = None,
    is_json: JSON = False,
) -> None:
    """Show one decision, and the rule that made it; a denial is an answer too."""
    decision = _load_policy(scope, file)[1].decide(acting, asked.to_act())
    show(_Explanation(acting, asked, decision), is_json=is_json)


def list_permitted(
    scope: Scope, asked: ActOptions, file: _FILE = None, is_json: JSON = False
) -> None:
    """List the actors who may do something, with the rule that allows it."""
    from omnigraph.policy.grants import find_permitted

    permitted = find_permitted(_load_policy(scope, file)[1], asked.to_act())
    show(_Permitted(asked, permitted), is_json=is_json)


def _load_policy(scope: Scope, file: Path | None) -> tuple[str, Policy]:
    """The bundle in a file, or the one that a cluster applies, and what it is called."""
    from omnigraph.policy.decisions import Policy
    from omnigraph.policy.policy_bundle import load_bundle

    if file is None:
        name, policy = open_cluster(scope).choose_policy(resolve_cluster(scope).graph)
        return f"policy.{name}", policy
    if scope.is_addressed:
        fail("--file and a cluster exclude each other", hint="leave one of them out")
    return str(file), Policy(load_bundle(file))


@dataclass(frozen=True, slots=True)
class _Explanation:
    actor: str
    asked: ActOptions
    decision: Decision

    def to_json(self) -> JsonObject:
        found = self.decision
        rule = {} if found.rule is None else {"matched_rule": found.rule}
        return {
            "decision": "allow" if found.is_allowed else "deny",
            "actor": self.actor,
            **self.asked.to_json(),
            **rule,
            **({"rows": list(found.conditions)} if found.conditions else {}),
            **self._describe_requirements(),
            "message": found.message,
        }

    def _describe_requirements(self) -> JsonObject:
        found = [
            {"rule": each.rule, "requires": str(each.requires)}
            for each in self.decision.conditional
        ]
        return {"requires": found} if found else {}

    def to_lines(self) -> Iterator[str]:
        document = self.to_json()
        if "meets" in document:
            document["meets"] = ", ".join(document["meets"])
        if "rows" in document:
            document["rows"] = " or ".join(document["rows"])
        for each in document.pop("requires", ()):
            document[f"rule {each['rule']} requires"] = each["requires"]
        for name, value in document.items():
            yield f"{name}: {escape_unprintable(str(value))}"


@dataclass(frozen=True, slots=True)
class _Permitted:
    asked: ActOptions
    permitted: list[Permitted]

    def to_json(self) -> JsonObject:
        found = [
            {"actor": each.actor, "rule": each.rule}
            | ({"requires": each.requires} if each.requires else {})
            for each in self.permitted
        ]
        return {**self.asked.to_json(), "actors": found}

    def to_lines(self) -> Iterator[str]:
        rows = [
            (each.actor, each.rule, f"requires {each.requires}" if each.requires else "")
            for each in self.permitted
        ]
        yield from map(escape_unprintable, align_columns(rows)) if rows else ["no actor"]
