"""What a rule deletes: entities that a record says are gone, and those that a source lacks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from omnigraph.config.yaml_reader import Findings, Position, Section, read_section
from omnigraph.pipelines.config.expectations import RejectLimit, read_share
from omnigraph.pipelines.config.operations_schema import OP


@dataclass(frozen=True, slots=True)
class ChangeOperations:
    """The expression that says what a record does to its entity, and which values mean what."""

    sql: str
    position: Position
    inserts: tuple[str, ...]
    updates: tuple[str, ...]
    deletes: tuple[str, ...]

    @property
    def values(self) -> tuple[str, ...]:
        """All values that mean something."""
        return (*self.inserts, *self.updates, *self.deletes)


def read_operations(node: yaml.Node | None, findings: Findings) -> ChangeOperations | None:
    """The section `op` of a rule."""
    if node is None:
        return None
    section = read_section(node, OP, findings)
    values = {name: tuple(section.values[name]) for name in ("insert", "update", "delete")}
    found = ChangeOperations(
        section.get_text("column"), section.position_of("column"), *values.values()
    )
    for value in dict.fromkeys(found.values):
        if found.values.count(value) > 1:
            findings.add_problem(section.position, f"op: '{value}' means two things")
    return found


def read_delete_limit(section: Section, findings: Findings) -> RejectLimit | None:
    """How many entities that a source lacks a rule deletes at most; None if it deletes none."""
    return read_share("delete_missing", section, findings, of="entities")


def find_conflicts(section: Section) -> Iterator[str]:
    """What excludes each other in a rule that deletes."""
    if section.has_field("op") and section.has_field("delete_missing"):
        yield "'op' says which entities are deleted: 'delete_missing' excludes it"
