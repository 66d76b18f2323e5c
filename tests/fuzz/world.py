"""The schema of all random graphs, and the values that occur in them.

There are few values, so that they meet: equal ids in several types, parallel edges and loops,
numbers of different types that are equal, words that stem alike, nulls everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from logic.generate import Json

# A property's kind: how its values are written, and what they compare with.
Kind: TypeAlias = str

SCHEMA: Final = """
node Person {
  slug: String @key
  name: String? @index
  age: I32?
  big: I64?
  huge: U64?
  score: F64?
  ratio: F32?
  born: Date?
  seen: DateTime?
  active: Bool?
  mood: enum(glad, sad, wild)?
  tags: [String]?
  nums: [I64]?
  bio: String? @index
  vec: Vector(2)? @index
}

node Place {
  code: String @key
  name: String?
  size: I64?
  height: F64?
  note: String? @index
  spot: Vector(2)?
}

node Thing {
  label: String?
  weight: U32?
  made: Date?
}

edge Knows: Person -> Person {
  since: I64?
  kind: enum(old, new)?
  note: String?
}

edge Likes: Person -> Person {
  since: I64?
  kind: enum(new, odd)?
}

edge Follows: Person -> Person {
  since: I64?
  @key(@src, @dst)
}

edge LivesIn: Person -> Place {
  since: I64?
  share: F64?
}

edge WorksIn: Person -> Place {
  since: I64?
}

edge Near: Place -> Place {
  km: F32?
}

edge Owns: Person -> Thing {
  since: Date?
}

edge PartOf: Thing -> Thing
"""

NODES: Final[Mapping[str, Mapping[str, Kind]]] = {
    "Person": {
        "slug": "String",
        "name": "String",
        "age": "I32",
        "big": "I64",
        "huge": "U64",
        "score": "F64",
        "ratio": "F32",
        "born": "Date",
        "seen": "DateTime",
        "active": "Bool",
        "mood": "enum",
        "tags": "[String]",
        "nums": "[I64]",
        "bio": "text",
        "vec": "Vector",
    },
    "Place": {
        "code": "String",
        "name": "String",
        "size": "I64",
        "height": "F64",
        "note": "text",
        "spot": "Vector",
    },
    "Thing": {"label": "String", "weight": "U32", "made": "Date"},
}
# Several types at once, and what can be said of their nodes.
TYPE_SETS: Final[Mapping[str, Mapping[str, Kind]]] = {
    "(Person | Place)": {
        "name": "String",
        "age?": "I32",
        "height?": "F64",
        "active?": "Bool",
        "tags?": "[String]",
    },
    "*": {"name?": "String", "label?": "String", "weight?": "U32", "born?": "Date"},
}
MEMBERS: Final = {"(Person | Place)": ("Person", "Place"), "*": ("Person", "Place", "Thing")}
KEYS: Final = {"Person": "slug", "Place": "code"}

# Where each edge type leads, and its properties.
EDGES: Final[Mapping[str, tuple[str, str, Mapping[str, Kind]]]] = {
    "Knows": ("Person", "Person", {"since": "I64", "kind": "enum", "note": "String"}),
    "Likes": ("Person", "Person", {"since": "I64", "kind": "enum"}),
    "Follows": ("Person", "Person", {"since": "I64"}),
    "LivesIn": ("Person", "Place", {"since": "I64", "share": "F64"}),
    "WorksIn": ("Person", "Place", {"since": "I64"}),
    "Near": ("Place", "Place", {"km": "F32"}),
    "Owns": ("Person", "Thing", {"since": "Date"}),
    "PartOf": ("Thing", "Thing", {}),
}
KEYED_EDGES: Final = frozenset({"Follows"})

IDS: Final = ("a", "b", "c", "B", "é", "a b", "zz", "𝔘", "ab", "~", "d", "e")
WORDS: Final = ("sea", "seas", "war", "wars", "Café", "the", "running", "run", "quiet")

NUMERIC: Final = ("I32", "I64", "U32", "U64", "F64", "F32")
TEXTUAL: Final = ("String", "enum", "text")
# What a property may hold; a literal or a parameter takes its value from here too.
VALUES: Final[Mapping[Kind, tuple[Json, ...]]] = {
    "String": ("a", "b", "A", "ab", "", "é", 'q"t', "a b"),
    "text": ("sea", "the sea", "war and seas", "quiet Café", "running war", "runs wars sea", ""),
    "enum": ("new", "old", "odd"),
    "I32": (0, 1, 2, 40, -1, 2**31 - 1),
    "I64": (0, 1, 2, -3, 2**53, 2**53 + 1, -(2**63)),
    "U32": (0, 1, 2, 2**32 - 1),
    "U64": (0, 1, 2, 2**53 + 1, 2**63 - 1, 2**64 - 1),
    "F64": (0.0, -0.0, 0.5, 1.0, 2.0, -1.5, 1e300, 9007199254740992.0),
    "F32": (0.0, 0.5, 1.0, 0.1, -1.5, 16777216.0),
    "Date": ("2020-01-01", "1969-12-31", "2020-01-02"),
    "DateTime": ("2020-01-01T00:00:00Z", "2020-01-01T00:00:00.001Z", "2030-01-01T00:00:00Z"),
    "Bool": (True, False),
    "[String]": ([], ["a"], ["a", "b"], ["b", "a", "a"]),
    "[I64]": ([], [1], [1, 2], [2**53 + 1]),
    "Vector": ([0, 0], [1, 0], [0, 1], [1, 1], [0.5, 2], [-1, 0]),
}
MOODS: Final = ("glad", "sad", "wild")
ENUMS: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("Person", "mood"): MOODS,
    ("Knows", "kind"): ("old", "new"),
    ("Likes", "kind"): ("new", "odd"),
}


def stored_values(owner: str, name: str, kind: Kind) -> tuple[Json, ...]:
    """What a property of a type may hold."""
    return ENUMS.get((owner, name), VALUES[kind])
