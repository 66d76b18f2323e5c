"""A small model of schemas and their merge: elements are sets of births, and nothing is clever.

Whatever is born gets a number of its own. A merge that takes two elements for one gives it the
births of both; two elements are the same if they share one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

Births = frozenset[int]


@dataclass(frozen=True)
class Prop:
    """A property; an enum has values, anything else is an I32, and `k` is the key."""

    births: Births
    name: str
    values: frozenset[str] | None = None
    is_indexed: bool = False
    doc: str | None = None


@dataclass(frozen=True)
class Kind:
    """A node type, or an edge type with the births of its ends."""

    births: Births
    name: str
    props: tuple[Prop, ...] = ()
    ends: tuple[Births, Births] | None = None
    doc: str | None = None


@dataclass(frozen=True)
class Model:
    """A schema."""

    kinds: tuple[Kind, ...]


class Disagreement(Exception):
    """Two schemas that cannot be merged."""


_Element = TypeVar("_Element", Prop, Kind)


def written(model: Model, old: Model | None = None) -> str:
    """The text of a schema, with hints for what an older one calls otherwise."""
    lines: list[str] = []
    for kind in sorted(model.kinds, key=lambda each: (each.ends is not None, each.name)):
        before = None if old is None else find(old.kinds, kind.births)
        words = [f"node {kind.name}"]
        if kind.ends is not None:
            names = [_end(model, end) for end in kind.ends]
            words = [f"edge {kind.name}: {names[0]} -> {names[1]}"]
        words += _notes(kind, before)
        lines.append(" ".join(words) + " {")
        lines += [_prop_line(each, before) for each in kind.props]
        lines.append("}")
    return "\n".join(lines) + "\n"


def find(elements: Iterable[_Element], births: Births) -> _Element | None:
    """The element that shares a birth."""
    return next((each for each in elements if each.births & births), None)


def merge(base: Model, ours: Model, theirs: Model) -> Model:
    """What two schemas that come from one are together; raises `Disagreement`."""
    theirs = _joined_kinds(base, ours, theirs)
    kinds: list[Kind] = []
    for was, here, there in _slots(base.kinds, ours.kinds, theirs.kinds):
        if here is not None and there is not None:
            kinds.append(_merged_kind(was, here, there))
        elif was is None:
            kinds.append(here or there or _never())
        else:
            kept, dropper = (here, theirs) if here is not None else (there, ours)
            _require_droppable(was, kept, dropper)
    return _checked(Model(tuple(kinds)))


def _never() -> Kind:
    raise AssertionError("a slot has at least one side")


# ---- what was added under one name ----


def _joined_kinds(base: Model, ours: Model, theirs: Model) -> Model:
    """Theirs with the births of ours in what both added."""
    joined = {}
    for there in theirs.kinds:
        here = _twin(there, base.kinds, ours.kinds, theirs.kinds)
        if here is not None:
            joined[there.births] = here
    moved = {old: old | here.births for old, here in joined.items()}
    kinds = []
    for kind in theirs.kinds:
        ends = kind.ends
        if ends is not None:
            ends = _moved(ends[0], moved), _moved(ends[1], moved)
        here = joined.get(kind.births)
        births = _moved(kind.births, moved)
        if here is not None:
            _require_same_kind(here, replace(kind, ends=ends))
        was = find(base.kinds, births)
        mine = find(ours.kinds, births)
        props = kind.props
        if mine is not None:
            props = _joined_props(() if was is None else was.props, mine.props, kind.props)
        kinds.append(replace(kind, births=births, ends=ends, props=props))
    return Model(tuple(kinds))


def _moved(births: Births, moved: dict[Births, Births]) -> Births:
    return moved.get(births, births)


def _twin(
    element: _Element,
    base: Iterable[_Element],
    ours: Iterable[_Element],
    theirs: Iterable[_Element],
) -> _Element | None:
    if find(base, element.births) or find(ours, element.births):
        return None
    for here in ours:
        is_same = (here.name, _is_edge(here)) == (element.name, _is_edge(element))
        if is_same and not find(base, here.births) and not find(theirs, here.births):
            return here
    return None


def _is_edge(element: Prop | Kind) -> bool:
    return isinstance(element, Kind) and element.ends is not None


def _require_same_kind(ours: Kind, theirs: Kind) -> None:
    if (ours.ends is None) != (theirs.ends is None):
        raise Disagreement(ours.name)
    if ours.ends and theirs.ends:
        for here, there in zip(ours.ends, theirs.ends, strict=True):
            if not here & there:
                raise Disagreement(ours.name)
    if {each.name for each in ours.props} != {each.name for each in theirs.props}:
        raise Disagreement(ours.name)


def _joined_props(
    base: tuple[Prop, ...], ours: tuple[Prop, ...], theirs: tuple[Prop, ...]
) -> tuple[Prop, ...]:
    found = []
    for there in theirs:
        here = _twin(there, base, ours, theirs)
        births = there.births
        if here is not None:
            if (here.values, here.is_indexed) != (there.values, there.is_indexed):
                raise Disagreement(here.name)
            births |= here.births
        found.append(replace(there, births=births))
    return tuple(found)


# ---- three ways ----

_Slot = tuple[_Element | None, _Element | None, _Element | None]


def _slots(
    base: tuple[_Element, ...], ours: tuple[_Element, ...], theirs: tuple[_Element, ...]
) -> Iterator[_Slot[_Element]]:
    for here in ours:
        there = find(theirs, here.births)
        births = here.births | (there.births if there else frozenset())
        yield find(base, births), here, there
    for there in theirs:
        if not find(ours, there.births):
            yield find(base, there.births), None, there


def _pick(was: object, here: object, there: object) -> object:
    if here == there or there == was:
        return here
    if here == was:
        return there
    raise Disagreement(f"{here} and {there}")


def _merged_kind(was: Kind | None, here: Kind, there: Kind) -> Kind:
    props: list[Prop] = []
    for old, mine, other in _slots(was.props if was else (), here.props, there.props):
        if mine is not None and other is not None:
            props.append(_merged_prop(old, mine, other))
        elif old is None:
            props.append(mine or other or _never_prop())
        elif replace(mine or other or _never_prop(), births=old.births) != old:
            raise Disagreement(old.name)
    if here.ends and there.ends:
        for mine_end, other_end in zip(here.ends, there.ends, strict=True):
            assert mine_end & other_end, "ends do not change"
    return Kind(
        here.births | there.births,
        str(_pick(was and was.name, here.name, there.name)),
        tuple(props),
        here.ends,
        _text(_pick(was and was.doc, here.doc, there.doc)),
    )


def _never_prop() -> Prop:
    raise AssertionError("a slot has at least one side")


def _merged_prop(was: Prop | None, here: Prop, there: Prop) -> Prop:
    values = here.values
    if here.values != there.values:
        if here.values is None or there.values is None:
            raise Disagreement(here.name)
        values = here.values | there.values
    return Prop(
        here.births | there.births,
        str(_pick(was and was.name, here.name, there.name)),
        values,
        bool(_pick(bool(was and was.is_indexed), here.is_indexed, there.is_indexed)),
        _text(_pick(was and was.doc, here.doc, there.doc)),
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _require_droppable(was: Kind, kept: Kind | None, dropper: Model) -> None:
    assert kept is not None
    old = {(each.name, each.values, each.is_indexed, each.doc) for each in was.props}
    now = {(each.name, each.values, each.is_indexed, each.doc) for each in kept.props}
    if (was.name, was.doc, old) != (kept.name, kept.doc, now):
        raise Disagreement(f"{kept.name} was dropped and changed")
    if len(was.props) != len(kept.props) or any(
        not find(was.props, each.births) for each in kept.props
    ):
        raise Disagreement(f"{kept.name} was dropped and changed")
    same = [each for each in dropper.kinds if (each.ends is None) == (kept.ends is None)]
    if any(each.name == kept.name for each in same):
        raise Disagreement(f"{kept.name} was dropped and added again")


def _checked(model: Model) -> Model:
    """The model, if its names are its own and its ends are there."""
    for is_edge in (False, True):
        names = [each.name for each in model.kinds if (each.ends is not None) is is_edge]
        if len(set(names)) < len(names):
            raise Disagreement("a name is used twice")
    for kind in model.kinds:
        if len({each.name for each in kind.props}) < len(kind.props):
            raise Disagreement(f"a name in {kind.name} is used twice")
        for end in kind.ends or ():
            if find(model.kinds, end) is None:
                raise Disagreement(f"an end of {kind.name} is gone")
    return model


# ---- text ----


def _end(model: Model, births: Births) -> str:
    found = find(model.kinds, births)
    assert found is not None
    return found.name


def _notes(element: Prop | Kind, before: Prop | Kind | None) -> list[str]:
    notes = []
    if before is not None and before.name != element.name:
        notes.append(f'@rename_from("{before.name}")')
    if element.doc is not None:
        notes.append(f'@description("{element.doc}")')
    return notes


def _prop_line(prop: Prop, kind_before: Kind | None) -> str:
    before = None if kind_before is None else find(kind_before.props, prop.births)
    if prop.name == "k":
        words = ["  k: String @key"]
    elif prop.values is not None:
        words = [f"  {prop.name}: enum({', '.join(sorted(prop.values))})?"]
    else:
        words = [f"  {prop.name}: I32?"]
    words += ["@index"] if prop.is_indexed else []
    return " ".join(words + _notes(prop, before))
