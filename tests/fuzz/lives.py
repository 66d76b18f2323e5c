"""Lives of random graphs: loads and deletions, with queries in between."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeAlias, assert_never

from fuzz.pen import Pen
from fuzz.reads import Ask, write_read
from fuzz.values import literal
from fuzz.world import EDGES, IDS, KEYED_EDGES, KEYS, NODES, Kind, stored_values
from logic.generate import Json


@dataclass(frozen=True, slots=True)
class Load:
    """Records, merged into what there is."""

    lines: str


@dataclass(frozen=True, slots=True)
class Delete:
    """A mutation that deletes."""

    text: str


@dataclass(frozen=True, slots=True)
class Maintain:
    """What changes no answer: indexes, joined fragments, a restart."""

    verb: str


Step: TypeAlias = Load | Delete | Maintain | Ask


@dataclass(frozen=True, slots=True)
class Life:
    """What happens to a graph, with the usual bounds of the engine or with small ones."""

    steps: tuple[Step, ...]
    is_small: bool = False

    def __str__(self) -> str:
        bounds = "small" if self.is_small else "usual"
        return "\n".join((f"--- {bounds} bounds", *map(_shown, self.steps)))


def _shown(step: Step) -> str:
    """A step much as a logic test writes it."""
    match step:
        case Load(lines):
            return f"--- load mode=merge\n{lines}"
        case Delete(text):
            return f"--- mutate\n{text}"
        case Maintain(verb):
            return f"--- {verb}"
        case Ask(text, params):
            return f"--- query params={json.dumps(dict(params), ensure_ascii=False)}\n{text}"
        case _:
            assert_never(step)


def write_life(pen: Pen) -> Life:
    """A random life: a load, queries, and perhaps changes and queries again."""
    return Life(tuple(_steps(pen)), is_small=pen.chance(50))


def _steps(pen: Pen) -> Iterator[Step]:
    yield Load(_records(pen, is_first=True))
    yield from (write_read(pen) for _ in range(pen.number(1, 3)))
    if pen.chance(50):
        yield from _changes(pen)
        yield from (write_read(pen) for _ in range(pen.number(1, 2)))


def _changes(pen: Pen) -> Iterator[Step]:
    for _ in range(pen.number(1, 3)):
        match pen.one_of(("load", "delete", "index", "optimize", "restart")):
            case "load":
                yield Load(_records(pen, is_first=False))
            case "delete":
                yield Delete(_deletion(pen))
            case verb:
                yield Maintain(verb)


def _records(pen: Pen, *, is_first: bool) -> str:
    """Nodes with some of the ids, and edges between them."""
    most = pen.one_of((5, 3, 5, 8, len(IDS)) if is_first else (1, 2))
    ids = {name: _chosen(pen, most) for name in NODES}
    lines = [_node(pen.dice, name, id_) for name, chosen in ids.items() for id_ in chosen]
    number = 0 if is_first else 1000
    for name, (source, target, _) in EDGES.items():
        if not ids[source] or not ids[target]:
            continue
        wanted = pen.one_of((most, 0, most // 2, 2 * most, 2 * most))
        pairs = [_pair(pen.dice, ids[source], ids[target]) for _ in range(wanted)]
        if name in KEYED_EDGES:
            pairs = list(dict.fromkeys(pairs))
        for pair in pairs:
            number += 1
            lines.append(_edge(pen.dice, name, f"e{number}", pair))
    return "\n".join(lines)


def _chosen(pen: Pen, most: int) -> list[str]:
    return [id_ for id_ in IDS[:most] if pen.dice.random() < 0.9]


def _pair(dice: Random, sources: Sequence[str], targets: Sequence[str]) -> tuple[str, str]:
    return dice.choice(sources), dice.choice(targets)


def _node(dice: Random, type_name: str, id_: str) -> str:
    data = _properties(dice, type_name, NODES[type_name])
    key = KEYS.get(type_name)
    if key is None:
        return _line({"type": type_name, "id": id_, "data": data})
    return _line({"type": type_name, "data": data | {key: id_}})


def _edge(dice: Random, type_name: str, id_: str, ends: tuple[str, str]) -> str:
    data = _properties(dice, type_name, EDGES[type_name][2])
    record: dict[str, Json] = {"edge": type_name, "from": ends[0], "to": ends[1], "data": data}
    return _line(record if type_name in KEYED_EDGES else record | {"id": id_})


def _properties(dice: Random, owner: str, kinds: Mapping[str, Kind]) -> dict[str, Json]:
    """Most of the properties: the others are null. The first values are the most frequent."""
    found: dict[str, Json] = {}
    for name, kind in kinds.items():
        if name not in KEYS.values() and dice.random() < 0.75:
            values = stored_values(owner, name, kind)
            found[name] = dice.choice(values[: dice.choice((3, len(values)))])
    return found


def _deletion(pen: Pen) -> str:
    if pen.chance(60):
        type_name = pen.one_of(tuple(NODES))
        where = f"@id = {literal('String', pen.one_of(IDS[:5]))}"
    else:
        type_name = pen.one_of(tuple(EDGES))
        where = f"@src = {literal('String', pen.one_of(IDS[:5]))}"
    return f"query change() {{ delete {type_name} where {where} }}"


def _line(record: dict[str, Json]) -> str:
    return json.dumps(record, ensure_ascii=False)
