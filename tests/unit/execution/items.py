"""Items with a property of every type, and random conditions about them that are all valid."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from model import ModelGraph
from omnigraph.schema.property_values import (
    DATE_MAX,
    DATE_MIN,
    DATETIME_MAX,
    DATETIME_MIN,
    round_to_f32,
)
from unit.execution.model_views import add_edges, add_nodes, model_graph

SCHEMA = """
node Item {
  name: String @key
  text: String?
  kind: enum(big, small, odd)?
  flag: Bool?
  i32: I32?
  i64: I64?
  u32: U32?
  u64: U64?
  f32: F32?
  f64: F64?
  odd: F64?
  day: Date?
  at: DateTime?
  words: [String]?
  numbers: [I64]?
  floats: [F32]?
  times: [DateTime]?
  vec: Vector(2)?
  file: Blob?
}
node Place { country: String  number: I32  @key(country, number) }
edge Link: Item -> Item { weight: F64?  note: String?  @key(@src, @dst) }
"""
PARAMETERS = (
    "$i: I64, $u: U64, $f: F64, $g: F32, $s: String, $is: [I64], $fs: [F64], $ss: [String],"
    " $t: DateTime, $d: Date, $b: Bool, $none: I64?, $nos: String?, $nolist: [String]?"
)
TEXTS = [
    "", "a", "ab", "abc", "b", "it's", 'say "hi"', "back\\slash", "new\nline", "50%", "a_b", "ünï",
    "😀", "nul\0end\0", "é", "z", "Running cats", "the sea", "`x`", "--", "\uffff", "\U0010ffff",
]  # fmt: skip
INTEGERS = [
    0, 1, -1, 2, 7, 2**24, 2**24 + 1, 2**31 - 1, -(2**31), 2**32 - 1, 2**53, 2**53 + 1,
    -(2**53) - 1, 2**63 - 1, -(2**63), 2**63, 2**63 + 1025, 2**64 - 1,
]  # fmt: skip
FLOATS = [
    0.0, -0.0, 0.1, round_to_f32(0.1), 0.5, -0.5, 1.0, 2.0, 2.5, 7.0, 1e-7, 1e20, -1e300, 5e-324,
    2.0**24, 2.0**53, 2.0**63, 2.0**64, 16777217.0, 3.4028234663852886e38, 9007199254740993.0,
]  # fmt: skip
EPOCH = 'date("1970-01-01")'
ODD = [*FLOATS, math.nan, math.inf, -math.inf]
DAYS = [0, 1, -1, 19000, DATE_MIN, DATE_MAX]
TIMES = [0, 1, -1, 999, 1_600_000_000_123, DATETIME_MIN, DATETIME_MAX]


def items_graph(seed: int, count: int = 60) -> ModelGraph:
    """A graph of random items, places and links."""
    random = Random(seed)
    graph = model_graph(SCHEMA)
    names = [*TEXTS, *(f"item{number}" for number in range(count))][:count]
    add_nodes(graph, "Item", [{"name": name, **_values(random)} for name in names])
    places = [(country, number) for country in ("no", 'a"b') for number in (-1, 0, 7)]
    add_nodes(graph, "Place", [{"country": name, "number": number} for name, number in places])
    ends = [(random.choice(names), random.choice(names)) for _ in range(count)]
    links = [{"@src": source, "@dst": target} | _link_values(random) for source, target in ends]
    add_edges(graph, "Link", links)
    return graph


def _values(random: Random) -> dict[str, Any]:
    return {
        "text": _some(random, TEXTS),
        "kind": _some(random, ["big", "small", "odd"]),
        "flag": _some(random, [True, False]),
        "i32": _some(random, _within(-(2**31), 2**31 - 1)),
        "i64": _some(random, _within(-(2**63), 2**63 - 1)),
        "u32": _some(random, _within(0, 2**32 - 1)),
        "u64": _some(random, _within(0, 2**64 - 1)),
        "f32": _some(random, [x for x in map(round_to_f32, FLOATS) if math.isfinite(x)]),
        "f64": _some(random, FLOATS),
        "odd": _some(random, ODD),
        "day": _some(random, DAYS),
        "at": _some(random, TIMES),
        "words": _some_list(random, TEXTS),
        "numbers": _some_list(random, _within(-(2**63), 2**63 - 1)),
        "floats": _some_list(random, [0.0, -0.0, 0.5, round_to_f32(0.1), 2.0**24]),
        "times": _some_list(random, TIMES),
        "vec": _some(random, [(0.5, 1.0), (round_to_f32(0.1), -0.0), (0.0, 0.0)]),
        "file": _some(random, [b"", b"bytes"]),
    }


def _link_values(random: Random) -> dict[str, Any]:
    return {"weight": _some(random, FLOATS), "note": _some(random, TEXTS)}


def _within(low: int, high: int) -> list[int]:
    return [value for value in INTEGERS if low <= value <= high]


def _some(random: Random, values: list[Any]) -> Any:
    return None if random.random() < 0.2 else random.choice(values)


def _some_list(random: Random, values: list[Any]) -> tuple[Any, ...] | None:
    if random.random() < 0.2:
        return None
    return tuple(random.choice([*values, None]) for _ in range(random.randrange(4)))


class Conditions:
    """Writes random conditions; `prefix` is what stands before a property's name."""

    NUMBERS = ("i32", "i64", "u32", "u64", "f32", "f64", "odd")
    STRINGS = ("name", "text", "kind")

    def __init__(self, random: Random, prefix: str = "$v.") -> None:
        self._random, self._prefix = random, prefix

    def params(self) -> dict[str, Any]:
        """Values of the parameters."""
        pick = self._random.choice
        floats = [x for x in FLOATS if abs(x) < 3e38]
        return {
            "i": pick(_within(-(2**63), 2**63 - 1)), "u": pick(_within(0, 2**63 - 1)),
            "f": pick(FLOATS), "g": pick(floats), "s": pick(TEXTS),
            "is": self._random.sample(_within(-(2**63), 2**63 - 1), 4),
            "fs": self._random.sample(FLOATS, 4),
            "ss": self._random.sample(TEXTS, self._random.randrange(4)),
            "t": "2020-09-13T12:26:40.123Z", "d": "2022-01-08", "b": pick([True, False]),
        }  # fmt: skip

    def condition(self, depth: int = 2) -> str:
        """A Boolean expression."""
        kind = self._random.randrange(8 if depth else 5)
        if kind == 5:
            return f"(not {self.condition(depth - 1)})"
        if kind > 5:
            word = self._random.choice(["and", "or"])
            parts = [self.condition(depth - 1) for _ in range(self._random.randrange(2, 4))]
            return f"({f' {word} '.join(parts)})"
        return f"({self._test()})"

    def _test(self) -> str:
        pick = self._random.choice
        op = pick(["=", "!=", "<", "<=", ">", ">="])
        tests: list[Callable[[], str]] = [
            lambda: f"{self._number()} {op} {self._number()}",
            lambda: f"{self._column(self.NUMBERS)} {op} {self._number()}",
            lambda: f"{self._string()} {op} {self._string()}",
            lambda: f"{self._string()} contains {self._string()}",
            lambda: f"{self._string()} starts_with {self._string()}",
            lambda: f"{self._column(['day'])} {op} {pick(['$d', EPOCH])}",
            lambda: f"{self._column(['at'])} {op} {pick(['$t', 'now()', self._column(['at'])])}",
            lambda: f"{self._column(['flag'])} {op} {pick(['$b', 'true', 'false'])}",
            lambda: pick([self._column(["flag"]), "$b", "true"]),
            lambda: f"{self._number()} in {self._number_list()}",
            lambda: f"{self._string()} in {self._string_list()}",
            lambda: f"{self._column(['words'])} contains {self._string()}",
            lambda: f"$t in {self._column(['times'])}",
            lambda: f"{self._any()} is {pick(['null', 'not null'])}",
        ]
        return pick(tests)()

    def _column(self, names: Sequence[str]) -> str:
        return self._prefix + self._random.choice(names)

    def _number(self) -> str:
        literals = [str(abs(x)) for x in INTEGERS if abs(x) < 2**63] + ["0.1", "2.5", "0.5", "7.0"]
        literal = self._random.choice(literals)
        parameters = ["$i", "$u", "$f", "$g", "$none"]
        return self._pick(self._column(self.NUMBERS), literal, literal, parameters)

    def _string(self) -> str:
        column = self._column([*self.STRINGS, "@id"])
        return self._pick(column, column, ['"ab"', '"a"', '""', '"item7"'], ["$s", "$s", "$nos"])

    def _number_list(self) -> str:
        literals = ["[1, 2.5, 7]", "[0, $i]", "[]", "[$f, 0.1]"]
        return self._pick(["$is", "$fs"], literals, self._column(["numbers", "floats"]))

    def _string_list(self) -> str:
        literals = ['["a", "ab", $s]', "[]"]
        return self._pick(["$ss", "$nolist"], literals, self._column(["words"]))

    def _pick(self, *kinds: str | list[str]) -> str:
        kind = self._random.choice(kinds)
        return kind if isinstance(kind, str) else self._random.choice(kind)

    def _any(self) -> str:
        return self._column([*self.NUMBERS, *self.STRINGS, "words", "vec", "flag", "at", "day"])
