"""A seeded social network: people who follow each other, live in cities and have interests."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

import omnigraph
from omnigraph import Graph

Numbers = npt.NDArray[np.int64]

SCHEMA: Final = """
node Person {
  slug: String @key
  name: String
  gender: enum(female, male)
  birthday: Date
  age: I64
  married: Bool
}
node City {
  slug: String @key
  city: String
  state: String
  country: String
  population: I64
}
node State {
  slug: String @key
  state: String
  country: String
}
node Country {
  slug: String @key
  country: String
}
node Interest {
  slug: String @key
  interest: String
}
edge Follows: Person -> Person
edge LivesIn: Person -> City
edge HasInterest: Person -> Interest
edge CityIn: City -> State
edge StateIn: State -> Country
"""
COUNTRIES: Final = ("United States", "United Kingdom", "Canada")
INTERESTS: Final = (
    *("Fine Dining", "Tennis", "Photography", "Chess", "Sailing", "Cooking", "Opera", "Hiking"),
    *(f"Interest {number}" for number in range(33)),
)
# The end types of each edge type, which are also the names of the node tables.
ENDS: Final = {
    "Follows": ("Person", "Person"),
    "LivesIn": ("Person", "City"),
    "HasInterest": ("Person", "Interest"),
    "CityIn": ("City", "State"),
    "StateIn": ("State", "Country"),
}
_FIRST: Final = ("Ada", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hal", "Ida", "Jo")
_LAST: Final = ("Archer", "Baker", "Carter", "Dyer", "Fisher", "Mason", "Potter", "Smith", "Tyler")
_STATES: Final = 273
_CITIES: Final = 7_000
_DAY_MAX: Final = 13_500
_YEAR: Final = 2023


@dataclass(frozen=True, slots=True)
class Network:
    """Tables by type; a node has the number `id`, an edge the numbers `from` and `to`."""

    nodes: dict[str, pa.Table]
    edges: dict[str, pa.Table]


def generate(*, people: int = 100_000, follows: int = 2_400_000, seed: int = 17) -> Network:
    """The network of a seed; some follows fall away, as nobody follows twice or oneself."""
    pick = np.random.default_rng(seed)
    state_country = np.sort(pick.choice(3, _STATES, p=(0.3, 0.6, 0.1)))
    city_state = pick.integers(0, _STATES, _CITIES)
    nodes = {
        "Person": _people(pick, people),
        "City": _cities(pick, city_state, state_country),
        "State": pa.table(
            {
                "id": np.arange(_STATES),
                "state": _named("State", np.arange(_STATES)),
                "country": pa.array(COUNTRIES).take(pa.array(state_country)),
            }
        ),
        "Country": pa.table({"id": np.arange(3), "country": pa.array(COUNTRIES)}),
        "Interest": pa.table({"id": np.arange(len(INTERESTS)), "interest": pa.array(INTERESTS)}),
    }
    weights = 1 / (np.arange(_CITIES) + 20)
    homes = pick.choice(_CITIES, people, p=weights / weights.sum())
    edges = {
        "Follows": _follows(pick, people, follows),
        "LivesIn": _table(np.arange(people), homes),
        "HasInterest": _interests(pick, people),
        "CityIn": _table(np.arange(_CITIES), city_state),
        "StateIn": _table(np.arange(_STATES), state_country),
    }
    return Network(nodes, edges)


def _people(pick: np.random.Generator, count: int) -> pa.Table:
    first = pa.array(_FIRST).take(pa.array(pick.integers(0, len(_FIRST), count)))
    last = pa.array(_LAST).take(pa.array(pick.integers(0, len(_LAST), count)))
    number = pc.cast(pa.array(pick.integers(0, 1_000, count)), pa.utf8())
    days = pick.integers(0, _DAY_MAX, count).astype(np.int32)
    birthdays = pa.array(days).cast(pa.date32())
    return pa.table(
        {
            "id": np.arange(count),
            "name": pc.binary_join_element_wise(first, last, number, " "),
            "gender": pa.array(("female", "male")).take(pa.array(pick.integers(0, 2, count))),
            "birthday": birthdays,
            "age": pc.subtract(_YEAR, pc.year(birthdays)),
            "married": pa.array(pick.random(count) < 0.5),
        }
    )


def _cities(pick: np.random.Generator, state: Numbers, state_country: Numbers) -> pa.Table:
    names = _named("City", np.arange(_CITIES)).to_pylist()
    # The largest city of the country that has most states is one that everybody knows.
    names[int(np.flatnonzero(state_country[state] == 1)[0])] = "London"
    return pa.table(
        {
            "id": np.arange(_CITIES),
            "city": names,
            "state": _named("State", state),
            "country": pa.array(COUNTRIES).take(pa.array(state_country[state])),
            "population": pick.integers(1_000, 9_000_000, _CITIES),
        }
    )


def _follows(pick: np.random.Generator, people: int, count: int) -> pa.Table:
    """Some are followed by many: a place in the order of fame is a power of a uniform number."""
    fame = pick.permutation(people)
    to = fame[(people * pick.random(count) ** 1.5).astype(np.int64)]
    pairs = _distinct(pick.integers(0, people, count) * people + to)
    pick.shuffle(pairs)
    sources, targets = np.divmod(pairs, people)
    return _table(*(each[sources != targets] for each in (sources, targets)))


def _interests(pick: np.random.Generator, people: int) -> pa.Table:
    width = len(INTERESTS)
    pairs = _distinct(pick.integers(0, people * width, int(people * 2.5)))
    pick.shuffle(pairs)
    return _table(*np.divmod(pairs, width))


def _distinct(numbers: Numbers) -> Numbers:
    # A sort: numpy.unique hashes, which takes ten times as long for packed pairs.
    ordered: Numbers = np.sort(numbers)
    is_first = np.append(True, ordered[1:] != ordered[:-1])
    kept: Numbers = ordered[is_first]
    return kept


def _table(sources: Numbers, targets: Numbers) -> pa.Table:
    return pa.table({"from": sources, "to": targets})


def _named(word: str, numbers: Numbers) -> pa.Array:
    return pc.binary_join_element_wise(word, pc.cast(pa.array(numbers), pa.utf8()), " ")


def slugs(type_name: str, numbers: pa.Array) -> pa.Array:
    """The ids that nodes of a type have in a graph: a letter, then the number."""
    return pc.binary_join_element_wise(type_name[0].lower(), pc.cast(numbers, pa.utf8()), "")


def load(network: Network, folder: Path) -> Graph:
    """The network as a graph."""
    graph = omnigraph.create(str(folder), schema=SCHEMA, durable=False)
    main = graph.branch()
    for name, rows in network.nodes.items():
        keyed = rows.set_column(0, "slug", slugs(name, rows["id"]))
        main.load(keyed, type=name, mode="append")
    for name, rows in network.edges.items():
        source, target = ENDS[name]
        ends = {"from": slugs(source, rows["from"]), "to": slugs(target, rows["to"])}
        main.load(pa.table(ends), type=name, mode="append")
    return graph
