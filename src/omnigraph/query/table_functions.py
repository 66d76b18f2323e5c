"""The table functions, which `for` goes through: their columns and options.

Every function takes `edges:`, and may take `nodes:`; those that weigh edges take `weight:`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Final

from omnigraph.query.typed_tree import Value

NODES_OPTION: Final = "nodes"
EDGES_OPTION: Final = "edges"
WEIGHT_OPTION: Final = "weight"


class ColumnKind(Enum):
    """What a column of a table function holds."""

    NODE = "node"
    TEXT = "String"
    INTEGER = "I64"
    FLOAT = "F64"
    # A number of edges, or a sum of weights.
    LENGTH = "I64 or F64"


class OptionKind(Enum):
    """What an option takes."""

    NUMBER = "a number"
    INTEGER = "an integer"
    FLAG = "a Bool"
    WORD = "a text"
    IDS = "a list of ids"


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column; the first one is always a node."""

    name: str
    kind: ColumnKind


@dataclass(frozen=True, slots=True)
class TableOption:
    """An option, what it is where it is left out, and the values that it may have."""

    name: str
    kind: OptionKind
    default: Value = None
    minimum: float = -math.inf
    maximum: float = math.inf
    words: tuple[str, ...] = ()
    is_required: bool = False

    def find_problem(self, value: Value) -> str | None:
        """Why a value cannot be given; null is as good as none where there is no default."""
        if value is None:
            return None if self.default is None and not self.is_required else "cannot be null"
        if self.words and value not in self.words:
            return f"is {' or '.join(map(repr, self.words))}, not {str(value)!r}"
        if isinstance(value, tuple):
            return _find_list_problem(self, value)
        if isinstance(value, int | float) and not self.minimum <= value <= self.maximum:
            return f"{self._format_range()}, not {value}"
        return None

    def _format_range(self) -> str:
        if math.isinf(self.maximum):
            return f"is at least {self.minimum}"
        return f"is between {self.minimum} and {self.maximum}"


def _find_list_problem(option: TableOption, values: tuple[Value, ...]) -> str | None:
    if any(each is None for each in values):
        return "cannot hold null"
    return None if values or option.is_required else "has no id"


@dataclass(frozen=True, slots=True)
class TableSignature:
    """A table function."""

    name: str
    summary: str
    columns: tuple[TableColumn, ...]
    options: tuple[TableOption, ...] = ()
    is_weighing: bool = False

    def find_option(self, name: str) -> TableOption | None:
        """The option of a name, but for those that all functions take."""
        return next((each for each in self.options if each.name == name), None)

    @property
    def option_names(self) -> tuple[str, ...]:
        """The names of all options."""
        weight = (WEIGHT_OPTION,) if self.is_weighing else ()
        return (NODES_OPTION, EDGES_OPTION, *weight, *(each.name for each in self.options))


class TableFunction(StrEnum):
    """The name of a table function."""

    PAGERANK = "pagerank"
    COMPONENTS = "components"
    COMMUNITIES = "communities"
    DEGREES = "degrees"
    BETWEENNESS = "betweenness"
    CLOSENESS = "closeness"
    TRIANGLES = "triangles"
    CORES = "cores"
    DISTANCES = "distances"
    SIMILAR = "similar"


LABELS: Final = "labels"
LOUVAIN: Final = "louvain"
JACCARD: Final = "jaccard"
OVERLAP: Final = "overlap"

_NODE: Final = TableColumn("node", ColumnKind.NODE)
_SCORE: Final = TableColumn("score", ColumnKind.FLOAT)
_SAMPLES: Final = TableOption("samples", OptionKind.INTEGER, 256, minimum=1)
_ROUNDS_MAX: Final = 1_000_000

TABLE_SIGNATURES: Final = {
    TableFunction(each.name): each
    for each in (
        TableSignature(
            "pagerank",
            "the share of a random walk along the edges; all shares sum to 1",
            (_NODE, _SCORE),
            (
                TableOption("damping", OptionKind.NUMBER, 0.85, minimum=0, maximum=1),
                TableOption("tolerance", OptionKind.NUMBER, 1e-9, minimum=0),
                TableOption("rounds", OptionKind.INTEGER, 100, minimum=1, maximum=_ROUNDS_MAX),
                TableOption("sources", OptionKind.IDS),
            ),
            is_weighing=True,
        ),
        TableSignature(
            "components",
            "what is connected, named by its least node; strong: both ways along the edges",
            (
                _NODE,
                TableColumn("component", ColumnKind.TEXT),
                TableColumn("size", ColumnKind.INTEGER),
            ),
            (TableOption("strong", OptionKind.FLAG, False),),
        ),
        TableSignature(
            "communities",
            "groups with many edges inside, named by their least node",
            (_NODE, TableColumn("community", ColumnKind.TEXT)),
            (
                TableOption("method", OptionKind.WORD, LABELS, words=(LABELS, LOUVAIN)),
                TableOption("rounds", OptionKind.INTEGER, 20, minimum=1, maximum=_ROUNDS_MAX),
                TableOption("resolution", OptionKind.NUMBER, 1.0, minimum=0),
            ),
            is_weighing=True,
        ),
        TableSignature(
            "degrees",
            "the nodes that edges lead to, those that they come from, and the weight of all edges",
            (
                _NODE,
                TableColumn("out", ColumnKind.INTEGER),
                TableColumn("in", ColumnKind.INTEGER),
                TableColumn("weight", ColumnKind.FLOAT),
            ),
            is_weighing=True,
        ),
        TableSignature(
            "betweenness",
            "the share of the shortest ways between two other nodes that lead over the node",
            (_NODE, _SCORE),
            (_SAMPLES,),
            is_weighing=True,
        ),
        TableSignature(
            "closeness",
            "the inverse of the mean distance to the node, times the share of nodes that reach it",
            (_NODE, _SCORE),
            (_SAMPLES,),
            is_weighing=True,
        ),
        TableSignature(
            "triangles",
            "the triangles at the node, and their share of the pairs of its neighbours",
            (
                _NODE,
                TableColumn("triangles", ColumnKind.INTEGER),
                TableColumn("clustering", ColumnKind.FLOAT),
            ),
        ),
        TableSignature(
            "cores",
            "the largest k of a part of the graph, the node in it, where all have k neighbours",
            (_NODE, TableColumn("core", ColumnKind.INTEGER)),
        ),
        TableSignature(
            "distances",
            "the shortest distance from each source that reaches the node, in edges or by weight",
            (
                _NODE,
                TableColumn("source", ColumnKind.NODE),
                TableColumn("distance", ColumnKind.LENGTH),
            ),
            (
                TableOption("sources", OptionKind.IDS, is_required=True),
                TableOption("max", OptionKind.NUMBER, minimum=0),
            ),
            is_weighing=True,
        ),
        TableSignature(
            "similar",
            "the nodes with most neighbours in common with the node",
            (_NODE, TableColumn("other", ColumnKind.NODE), _SCORE),
            (
                TableOption("metric", OptionKind.WORD, JACCARD, words=(JACCARD, OVERLAP)),
                TableOption("k", OptionKind.INTEGER, 10, minimum=1),
                TableOption("min", OptionKind.NUMBER, 0.0, minimum=0, maximum=1),
            ),
        ),
    )
}
