"""Random migrations of modelled schemas, of the kinds that graphs can do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hypothesis import strategies as st

from unit.schema.schema_model import Births, Kind, Model, Prop

NODE_NAMES = ("Ant", "Bee", "Cow", "Dog")
EDGE_NAMES = ("Eats", "Flees", "Grooms")
PROP_NAMES = ("p", "q", "r", "s")
VALUES = ("u", "v", "w", "x")
CHANGES = (
    *("add", "add", "add_enum", "rename", "drop", "index", "doc", "wider"),
    *("add_node", "add_edge", "rename_kind", "drop_kind", "doc_kind"),
)

Born = Callable[[], Births]


def changed(model: Model, draw: st.DataObject, born: Born) -> Model | None:
    """A schema after one random change; None if the change does not fit."""
    kind = draw.draw(st.sampled_from(model.kinds))
    what = draw.draw(st.sampled_from(CHANGES))
    if what.startswith("add_n") or what == "add_edge":
        return _with_kind(model, draw, born, is_edge=what == "add_edge")
    if what.endswith("_kind"):
        return _with_changed_kind(model, kind, what, draw)
    if what in ("add", "add_enum"):
        name = draw.draw(st.sampled_from(PROP_NAMES))
        if any(each.name == name for each in kind.props):
            return None
        values = frozenset(draw.draw(st.sampled_from(VALUES))) if what == "add_enum" else None
        added = Prop(born(), name, values)
        return _replaced(model, kind, replace(kind, props=(*kind.props, added)))
    return _with_changed_prop(model, kind, what, draw)


def _with_kind(model: Model, draw: st.DataObject, born: Born, *, is_edge: bool) -> Model | None:
    name = draw.draw(st.sampled_from(EDGE_NAMES if is_edge else NODE_NAMES))
    if any(each.name == name for each in model.kinds):
        return None
    nodes = [each for each in model.kinds if each.ends is None]
    if not is_edge:
        return Model((*model.kinds, Kind(born(), name, (Prop(born(), "k"),))))
    ends = draw.draw(st.sampled_from(nodes)).births, draw.draw(st.sampled_from(nodes)).births
    return Model((*model.kinds, Kind(born(), name, (), ends)))


def _with_changed_kind(model: Model, kind: Kind, what: str, draw: st.DataObject) -> Model | None:
    if what == "doc_kind":
        doc = draw.draw(st.sampled_from(["a", "b"]))
        return _replaced(model, kind, replace(kind, doc=doc))
    if what == "rename_kind":
        name = draw.draw(st.sampled_from(NODE_NAMES if kind.ends is None else EDGE_NAMES))
        if any(each.name == name for each in model.kinds):
            return None
        return _replaced(model, kind, replace(kind, name=name))
    nodes = [each for each in model.kinds if each.ends is None]
    is_end = any(end & kind.births for each in model.kinds for end in each.ends or ())
    if is_end or (kind.ends is None and len(nodes) == 1):
        return None
    return Model(tuple(each for each in model.kinds if each is not kind))


def _with_changed_prop(model: Model, kind: Kind, what: str, draw: st.DataObject) -> Model | None:
    props = [each for each in kind.props if each.name != "k"]
    if not props:
        return None
    prop = draw.draw(st.sampled_from(props))
    if what == "drop":
        if prop.is_indexed:
            return None
        kept = tuple(each for each in kind.props if each is not prop)
        return _replaced(model, kind, replace(kind, props=kept))
    new = prop
    if what == "rename":
        name = draw.draw(st.sampled_from(PROP_NAMES))
        if any(each.name == name for each in kind.props):
            return None
        new = replace(prop, name=name)
    elif what == "index":
        new = replace(prop, is_indexed=True)
    elif what == "doc":
        new = replace(prop, doc=draw.draw(st.sampled_from(["a", "b"])))
    elif prop.values is not None:
        new = replace(prop, values=prop.values | {draw.draw(st.sampled_from(VALUES))})
    all_props = tuple(new if each is prop else each for each in kind.props)
    return _replaced(model, kind, replace(kind, props=all_props))


def _replaced(model: Model, old: Kind, new: Kind) -> Model:
    return Model(tuple(new if each is old else each for each in model.kinds))
