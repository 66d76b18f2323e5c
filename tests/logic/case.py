"""A parsed `.gqt` file as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from logic.generate import Generator, Recipe


class CaseError(ValueError):
    """A file that breaks a rule of the format; `line` counts from 1."""

    def __init__(self, message: str, *, line: int) -> None:
        super().__init__(f"line {line}: {message}")
        self.line = line


@dataclass(frozen=True, slots=True)
class Place:
    """The lines of a section: its header line and its body, counted from 0, end exclusive."""

    header: int
    end: int


class LoadMode(StrEnum):
    """What a load does with the entities that are there."""

    OVERWRITE = "overwrite"
    APPEND = "append"
    MERGE = "merge"
    PATCH = "patch"


class Dialect(StrEnum):
    """How forgiving a load is."""

    STRICT = "strict"
    COMPATIBLE = "compatible"


# ---- expectations ----


@dataclass(frozen=True, slots=True)
class ShapeColumn:
    """A column of an expected shape."""

    name: str
    type_name: str
    is_nullable: bool


@dataclass(frozen=True, slots=True)
class ExpectPage:
    """Whether a page follows, if the query has pages, and how many rows all of them have."""

    has_next: bool | None
    total: int | None


@dataclass(frozen=True, slots=True)
class ExpectRows:
    """Rows as JSON lines, their columns (None for `show`), plan facts, and what pages there are."""

    lines: tuple[str, ...]
    is_ordered: bool
    place: Place
    shape: tuple[ShapeColumn, ...] | None = None
    shape_place: Place | None = None
    plan: tuple[str, ...] = ()
    page: ExpectPage = ExpectPage(None, None)


@dataclass(frozen=True, slots=True)
class ExpectLines:
    """The exact lines of an export."""

    lines: tuple[str, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class ExpectOk:
    """Success, whatever the counts."""

    place: Place


@dataclass(frozen=True, slots=True)
class ExpectAffected:
    """The counts of a mutation."""

    nodes: int
    edges: int
    place: Place


@dataclass(frozen=True, slots=True)
class ExpectLoaded:
    """The number of records a load took, by type."""

    counts: tuple[tuple[str, int], ...]
    place: Place


@dataclass(frozen=True, slots=True)
class ExpectOutcome:
    """What a branch merge did."""

    word: str
    place: Place


@dataclass(frozen=True, slots=True)
class ExpectError:
    """A failure whose message matches the text."""

    text: str
    place: Place


Expectation = (
    ExpectRows
    | ExpectLines
    | ExpectOk
    | ExpectAffected
    | ExpectLoaded
    | ExpectOutcome
    | ExpectError
)


# ---- parameters ----


@dataclass(frozen=True, slots=True)
class GivenParams:
    """A JSON object as text."""

    text: str


@dataclass(frozen=True, slots=True)
class GeneratedParams:
    """One generator per parameter."""

    seed: int
    generators: tuple[tuple[str, Generator], ...]


Params = GivenParams | GeneratedParams | None


# ---- steps ----


@dataclass(frozen=True, slots=True)
class QueryStep:
    """A read, `branch list` or `show`."""

    text: str
    params: Params
    expect: Expectation
    line: int
    branch: str | None = None


@dataclass(frozen=True, slots=True)
class MutateStep:
    """A mutation, a branch statement that changes something, or settings lines only."""

    text: str
    params: Params
    expect: Expectation
    line: int
    branch: str | None = None


@dataclass(frozen=True, slots=True)
class LoadStep:
    """A load of JSON lines."""

    text: str
    mode: LoadMode
    dialect: Dialect
    expect: Expectation
    line: int
    branch: str | None = None


@dataclass(frozen=True, slots=True)
class GeneratedLoadStep:
    """A load of generated batches, one commit each."""

    recipe: Recipe
    mode: LoadMode
    expect: Expectation
    line: int
    branch: str | None = None


@dataclass(frozen=True, slots=True)
class ExportStep:
    """An export of everything, or of one type."""

    type_name: str | None
    expect: Expectation
    line: int
    branch: str | None = None


@dataclass(frozen=True, slots=True)
class RestartStep:
    """Close the graph and open it again."""

    line: int


Step = QueryStep | MutateStep | LoadStep | GeneratedLoadStep | ExportStep | RestartStep


@dataclass(frozen=True, slots=True)
class Loop:
    """Steps repeated with `${variable}` standing for each value."""

    variable: str
    values: tuple[str, ...]
    steps: tuple[Step, ...]


# ---- files ----


@dataclass(frozen=True, slots=True)
class Header:
    """The comment lines before the first section."""

    issue: int | None
    red_on: str | None = None
    notes: tuple[str, ...] = ()
    traversal: str | None = None


@dataclass(frozen=True, slots=True)
class Environment:
    """Where a file asks to be run."""

    target: str
    storage: str
    seeds: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RunnerOptions:
    """The `runner` section."""

    timeout_ms: int
    environments: tuple[Environment, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """A whole file; `skip_reason` is set when it needs something we do not run."""

    header: Header
    schema: str
    seed: str | Recipe
    steps: tuple[Step | Loop, ...]
    runner: RunnerOptions | None = None
    skip_reason: str | None = None
