"""The upgrades that there are, in order, and the function that runs those that a graph needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from omnigraph.errors import GraphNotFoundError
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.object_store import Objects
from omnigraph.storage.tables.lance_tables import Tables
from omnigraph.versioning.graph_format import (
    CURRENT,
    DIGESTS,
    FIRST_NUMBER,
    SHARED_NAMES,
    GraphFormat,
    encode_format,
    read_format,
)
from omnigraph.versioning.upgrade.move_tags import MoveTags
from omnigraph.versioning.upgrade.seal_objects import SealObjects


@dataclass(frozen=True, slots=True)
class UpgradedGraph:
    """What a step works on."""

    objects: Objects
    tables: Tables
    now_us: Callable[[], int]


class UpgradeStep(Protocol):
    """One kind of change. It may stop anywhere, and finds what is left when it runs again."""

    def run(self, *, is_dry: bool) -> int:
        """Change every object that needs it; how many. A dry run verifies them, and only counts."""


@dataclass(frozen=True, slots=True)
class NamedStep:
    """A step by the name that reports have for it."""

    name: str
    build: Callable[[UpgradedGraph], UpgradeStep]


@dataclass(frozen=True, slots=True)
class FormatUpgrade:
    """What leads from one format number to the next one, in the order in which it is done."""

    source: int
    target: GraphFormat
    steps: tuple[NamedStep, ...]


def _build_move_tags(graph: UpgradedGraph) -> UpgradeStep:
    return MoveTags(graph.objects, graph.now_us)


def _build_seal_objects(graph: UpgradedGraph) -> UpgradeStep:
    return SealObjects(graph.objects, graph.tables)


UPGRADES: Final = (
    FormatUpgrade(
        FIRST_NUMBER,
        GraphFormat(2, frozenset({DIGESTS, SHARED_NAMES})),
        # Tags first: their new events get digests with all others.
        (
            NamedStep("move_tags", _build_move_tags),
            NamedStep("add_digests", _build_seal_objects),
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class FinishedStep:
    """A step of an upgrade, and how many names or objects it changed, or would change."""

    name: str
    changed: int


@dataclass(frozen=True, slots=True)
class UpgradeReport:
    """What an upgrade did, or would do; without steps, the graph had the current format."""

    is_dry: bool
    source: GraphFormat
    target: GraphFormat
    steps: tuple[FinishedStep, ...] = ()

    @property
    def is_needed(self) -> bool:
        """Whether the graph had an older format."""
        return self.source != self.target

    def to_json(self) -> dict[str, object]:
        """The report as a document."""
        return {
            "dry_run": self.is_dry,
            "from": _describe_format(self.source),
            "to": _describe_format(self.target),
            "steps": [{"name": step.name, "changed": step.changed} for step in self.steps],
        }


def upgrade_graph(
    objects: Objects, tables: Tables, *, now_us: Callable[[], int], is_dry: bool = False
) -> UpgradeReport:
    """Bring a graph to the current format."""
    source = _require_format(objects)
    steps: list[FinishedStep] = []
    found = source
    for upgrade in UPGRADES:
        if upgrade.source != found.number:
            continue
        for step in upgrade.steps:
            changed = step.build(UpgradedGraph(objects, tables, now_us)).run(is_dry=is_dry)
            steps.append(FinishedStep(step.name, changed))
        # Last: whatever a program believes of this format is true by now.
        if not is_dry:
            objects.replace(layout.FORMAT, encode_format(upgrade.target))
        found = upgrade.target
    assert found == CURRENT, "the upgrades do not lead to the current format"
    return UpgradeReport(is_dry, source, found, tuple(steps))


def _require_format(objects: Objects) -> GraphFormat:
    found = read_format(objects)
    if found is None:
        raise GraphNotFoundError(objects.uri)
    return found


def _describe_format(found: GraphFormat) -> dict[str, object]:
    return {"format": found.number, "features": sorted(found.features)}
