"""What a verb answers: one object for programs and for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from omnigraph.clusters.cluster_findings import ClusterFinding, ClusterFindings, Severity
from omnigraph.clusters.cluster_plan import Change
from omnigraph.clusters.desired import Desired
from omnigraph.clusters.revision import RevisionContent
from omnigraph.clusters.stored_documents import JsonObject

_SIGNS: Final = {"create": "+", "update": "~", "delete": "-"}
_COUNTED: Final = ("to create", "to update", "to delete", "blocked")
_APPLIED: Final[JsonObject] = {"status": "applied", "conditions": []}


@dataclass(frozen=True, slots=True)
class ClusterDocument:
    """The document of a verb; `summary` says the same in sentences."""

    fields: JsonObject
    findings: tuple[ClusterFinding, ...] = ()
    summary: tuple[str, ...] = field(default=())

    @property
    def is_ok(self) -> bool:
        """Whether no finding is an error."""
        return not any(each.severity is Severity.ERROR for each in self.findings)

    def to_json(self) -> JsonObject:
        """The document for programs."""
        diagnostics = [each.to_json() for each in self.findings]
        return {"ok": self.is_ok, **self.fields, "diagnostics": diagnostics}

    def to_lines(self) -> Iterable[str]:
        """The lines for people; findings are printed as problems."""
        return self.summary


def format_changes(changes: Iterable[JsonObject]) -> Iterator[str]:
    """A line for each change that an apply made or did not make, and why not."""
    for each in changes:
        reason = f" ({each['reason']})" if "reason" in each else ""
        yield f"{_SIGNS[each['operation']]} {each['resource']}: {each['disposition']}{reason}"


def format_plan(changes: Iterable[JsonObject]) -> Iterator[str]:
    """The lines of a plan: each change with what it brings about, and how many there are."""
    counts: Counter[str] = Counter()
    for each in changes:
        is_blocked = "reason" in each
        counts["blocked" if is_blocked else f"to {each['operation']}"] += 1
        reason = f": blocked ({each['reason']})" if is_blocked else ""
        yield f"{_SIGNS[each['operation']]} {each['resource']}{reason}"
        yield from (f"    {step['summary']}" for step in each.get("migration", {}).get("steps", ()))
        yield from format_pipeline(each.get("pipeline"))
        for verb in ("gains", "loses"):
            yield from (f"    {verb}: {line}" for line in each.get("grants", {}).get(verb, ()))
    shown = ", ".join(f"{counts[name]} {name}" for name in _COUNTED if counts[name])
    yield shown or "nothing to change"


def format_pipeline(pipeline: JsonObject | None) -> Iterator[str]:
    """What a pipeline reads and writes, and when."""
    if pipeline is not None:
        targets = ", ".join(pipeline["targets"])
        verb = "overwrites" if pipeline.get("overwrites") else "writes to"
        when = pipeline.get("schedule", "no schedule")
        yield f"    reads {', '.join(pipeline['kinds'])}; {verb} {targets}; {when}"


def warn_pending(changes: Iterable[Change], findings: ClusterFindings) -> None:
    """Warn of each change that an apply left undone, with what allows it."""
    for each in changes:
        if each.is_pending:
            is_deferred = each.disposition == "deferred"
            code = "apply_unsupported_change" if is_deferred else "apply_dependency_blocked"
            remedy = f"; allow it with: {format_approval(each.resource)}"
            message = f"not done: {each.reason}{remedy if each.is_gated else ''}"
            findings.add_warning(code, each.resource, message)


def format_revision(revision: JsonObject) -> str:
    """A revision in one line: who made it, when, and how much it changed."""
    shown = (revision.get(name, "-") for name in ("revision", "recorded_at", "verb", "actor"))
    count = len(revision["changes"])
    return "  ".join(map(str, (*shown, f"{count} change{'' if count == 1 else 's'}")))


def format_approval(resource: str) -> str:
    """The command that allows a change that destroys data."""
    return f"omnigraph cluster approve {resource} --as ACTOR"


def describe_desired(desired: Desired) -> JsonObject:
    """The digests and dependencies of a configuration."""
    return {
        "resource_digests": {
            address: each.digest for address, each in sorted(desired.resources.items())
        },
        "dependencies": [{"from": one, "to": other} for one, other in desired.dependencies],
    }


def describe_broken(broken: Mapping[str, Sequence[str]]) -> JsonObject:
    """What a plan that fails shows of schemas that lack what pipelines name."""
    radius = [{"resource": each, "affected": list(names)} for each, names in broken.items()]
    return {"blast_radius": radius} if radius else {}


def describe_resources(desired: Desired) -> list[JsonObject]:
    """Every resource of a configuration."""
    return [
        {"address": address, "kind": str(each.kind), "digest": each.digest}
        | ({} if each.path is None else {"path": each.path})
        for address, each in sorted(desired.resources.items())
    ]


def describe_statuses(content: RevisionContent) -> JsonObject:
    """The status of every resource that is applied or was to be."""
    addresses = sorted(content.resources.keys() | content.statuses.keys())
    return {address: content.statuses.get(address, _APPLIED) for address in addresses}


def summarize_content(content: RevisionContent) -> Iterator[str]:
    """What is not as it was applied, and how much is applied."""
    for address, status in sorted(content.statuses.items()):
        yield f"{address}: {status['status']} ({', '.join(status['conditions'])})"
    yield f"{len(content.resources)} resources are applied"
