"""Settings, statements and whole files."""

from __future__ import annotations

from dataclasses import dataclass, field

from omnigraph.diagnostics.source import NO_SPAN, Span
from omnigraph.query.ast.declarations import Query
from omnigraph.schema.ast import Name


@dataclass(frozen=True, slots=True)
class SetSetting:
    """`set name = value;`; a bare word is `is_word`."""

    name: Name
    value: int | str
    is_word: bool = False
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class ResetSetting:
    """`reset name;`, or `reset all;` with no name."""

    name: Name | None
    span: Span = field(default=NO_SPAN, compare=False)


Setting = SetSetting | ResetSetting


@dataclass(frozen=True, slots=True)
class Show:
    """`show name;`, or `show all;` with no name."""

    name: Name | None
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class BranchCreate:
    """`branch create name [from parent]`."""

    name: Name
    parent: Name | None = None
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class BranchDelete:
    """`branch delete name`."""

    name: Name
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class BranchMerge:
    """`branch merge source [into target]`."""

    source: Name
    target: Name | None = None
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class BranchList:
    """`branch list`."""

    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Explain:
    """`explain query …`."""

    query: Query
    span: Span = field(default=NO_SPAN, compare=False)


BranchStatement = BranchCreate | BranchDelete | BranchMerge | BranchList
Statement = BranchStatement | Show | Explain


@dataclass(frozen=True, slots=True)
class File:
    """Settings lines, then either query declarations or one statement."""

    settings: tuple[Setting, ...]
    queries: tuple[Query, ...] = ()
    statement: Statement | None = None
