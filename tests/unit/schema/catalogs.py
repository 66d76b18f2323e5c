"""Random catalogs, built without the parser, for the tests of identity, shape and migration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from omnigraph.schema.catalog import (
    SOURCE,
    TARGET,
    AnnotationValue,
    Cardinality,
    Catalog,
    Check,
    ConstraintKind,
    Constraints,
    EdgeType,
    InterfaceType,
    NodeType,
    Property,
    Range,
)
from omnigraph.schema.property_types import (
    EnumType,
    ListType,
    PropertyType,
    Scalar,
    ScalarType,
    ValueType,
    VectorType,
)

# However busy the machine is.
steady = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

NAMES = ("a", "b", "c")
TYPE_NAMES = ("Ant", "Bee")

# Strategies are made once: making them inside a draw costs more than the draw.
_SCALARS = st.sampled_from((Scalar.STRING, Scalar.I32, Scalar.F64))
_ENUMS = st.sampled_from((("x",), ("x", "y"), ("x", "y", "z")))
_VALUE_TYPES: st.SearchStrategy[ValueType] = st.one_of(
    _SCALARS.map(ScalarType),
    _SCALARS.map(ListType),
    st.sampled_from((2, 3)).map(VectorType),
    _ENUMS.map(EnumType),
)
_OPTIONS = st.sampled_from(((), (("k", "1"),), (("l", "1"), ("k", "2"))))
_ANNOTATION = st.builds(
    AnnotationValue,
    st.sampled_from(("description", "pii", "unit")),
    st.none() | st.text(max_size=2),
    _OPTIONS,
)
_ANNOTATIONS = st.lists(_ANNOTATION, max_size=2).map(tuple)
_PROPERTY = st.builds(
    Property,
    st.just("a"),
    st.builds(PropertyType, _VALUE_TYPES, st.booleans()),
    _ANNOTATIONS,
    st.frozensets(st.sampled_from((ConstraintKind.UNIQUE, ConstraintKind.INDEX))),
)
_PROPERTIES = st.dictionaries(st.sampled_from(NAMES), _PROPERTY, max_size=3).map(
    lambda found: {name: replace(declared, name=name) for name, declared in found.items()}
)
_MEMBERS = st.lists(
    st.sampled_from((*NAMES, SOURCE, TARGET)), min_size=1, max_size=3, unique=True
).map(tuple)
_BODY = st.lists(
    st.tuples(st.sampled_from((ConstraintKind.UNIQUE, ConstraintKind.INDEX)), _MEMBERS), max_size=2
)
_BOUND = st.sampled_from((None, 0, 0.0, -1, 2.5, float("inf")))
_RANGES = st.lists(st.builds(Range, st.sampled_from(NAMES), _BOUND, _BOUND), max_size=2)
_CHECKS = st.lists(st.builds(Check, st.sampled_from(NAMES), st.just("^x")), max_size=2)
_CHOSEN = st.lists(st.sampled_from(TYPE_NAMES), max_size=2, unique=True)
_CARDINALITY = st.sampled_from((Cardinality(), Cardinality(1, None), Cardinality(0, 3)))


@st.composite
def catalogs(draw: st.DrawFn) -> Catalog:
    """A catalog of a few interfaces, nodes and edges, in any order."""
    # Interfaces with disjoint properties never disagree about one.
    interfaces = {name: _interface(name, draw(_PROPERTY)) for name in draw(_CHOSEN)}
    nodes = {}
    for name in draw(_CHOSEN):
        implements = tuple(found for found in draw(_CHOSEN) if found in interfaces)
        declared = dict(draw(_PROPERTIES))
        for interface in implements:
            declared |= _injected(interfaces[interface])
        nodes[name] = NodeType(
            name, declared, draw(_constraints(declared)), draw(_ANNOTATIONS), implements
        )
    edges = {}
    for name in draw(_CHOSEN) if nodes else ():
        ends = draw(st.sampled_from(sorted(nodes))), draw(st.sampled_from(sorted(nodes)))
        declared = draw(_PROPERTIES)
        rules = draw(_constraints(declared, ends=(SOURCE, TARGET)))
        edges[name] = EdgeType(name, *ends, declared, draw(_CARDINALITY), rules, draw(_ANNOTATIONS))
    return Catalog(interfaces, nodes, edges)


def _interface(name: str, declared: Property) -> InterfaceType:
    property_name = f"of_{name.lower()}"
    return InterfaceType(name, {property_name: replace(declared, name=property_name)})


def _injected(interface: InterfaceType) -> dict[str, Property]:
    return {
        name: replace(declared, interfaces=(interface.name,), is_injected=True)
        for name, declared in interface.properties.items()
    }


@st.composite
def _constraints(
    draw: st.DrawFn, declared: Mapping[str, Property], *, ends: tuple[str, ...] = ()
) -> Constraints:
    body = [(name, members) for name, members in draw(_BODY) if set(members) <= {*declared, *ends}]
    if (declared or ends) and draw(st.booleans()):
        body.append((ConstraintKind.KEY, (*ends, *sorted(declared))))
    written = body + [
        (name, (found.name,)) for found in declared.values() for name in found.property_constraints
    ]
    keys = [members for name, members in written if name is ConstraintKind.KEY]
    return Constraints(
        key=keys[0] if keys else None,
        uniques=tuple(members for name, members in written if name is ConstraintKind.UNIQUE),
        indexes=tuple(members for name, members in written if name is ConstraintKind.INDEX),
        ranges=tuple(found for found in draw(_RANGES) if found.property in declared),
        checks=tuple(found for found in draw(_CHECKS) if found.property in declared),
        body=tuple(body),
    )


def backwards(catalog: Catalog) -> Catalog:
    """The same catalog with everything that has no order turned around, and with rename hints."""
    return Catalog(
        {
            name: InterfaceType(name, _turned(found.properties))
            for name, found in reversed(list(catalog.interfaces.items()))
        },
        {
            name: replace(
                found,
                properties=_turned(found.properties),
                constraints=_turned_constraints(found.constraints),
                annotations=found.annotations[::-1],
                implements=found.implements[::-1],
                rename_from="Old",
            )
            for name, found in reversed(list(catalog.nodes.items()))
        },
        {
            name: replace(
                found,
                properties=_turned(found.properties),
                constraints=_turned_constraints(found.constraints),
                annotations=found.annotations[::-1],
                rename_from="Old",
            )
            for name, found in reversed(list(catalog.edges.items()))
        },
    )


def _turned(properties: Mapping[str, Property]) -> dict[str, Property]:
    return {
        name: replace(found, annotations=found.annotations[::-1], rename_from="old")
        for name, found in reversed(list(properties.items()))
    }


def _turned_constraints(found: Constraints) -> Constraints:
    return Constraints(
        found.key,
        tuple(members[::-1] for members in reversed(found.uniques)),
        tuple(members[::-1] for members in reversed(found.indexes)),
        found.ranges[::-1],
        found.checks[::-1],
        tuple((name, members[::-1]) for name, members in reversed(found.body)),
        tuple(members[::-1] for members in reversed(found.together)),
    )
