"""Export, create, load, export: the second export has the bytes of the first one."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import omnigraph
import places
from dialects.values import to_json
from model import ModelGraph
from omnigraph import Graph
from omnigraph.engine.blob_reader import RANGE_BYTES_MAX
from omnigraph.rows.view import table_types_of
from omnigraph.schema import load_catalog
from omnigraph.schema.property_types import (
    DECLARED_SCALARS,
    INTEGER_RANGES,
    EnumType,
    ListType,
    PropertyType,
    Scalar,
)
from omnigraph.schema.property_types import VectorType as Vector
from omnigraph.writers.inputs import Text
from unit.execution.stored_values import SCALAR_VALUES, TEXTS

_SCALARS = "".join(f"  a{scalar}: {scalar}?\n" for scalar in DECLARED_SCALARS)
_LISTS = "".join(
    f"  all{scalar}: [{scalar}]?\n" for scalar in DECLARED_SCALARS if scalar is not Scalar.BLOB
)
SCHEMA = f"""
interface Marked {{ mark: String? }}
node Thing implements Marked {{
{_SCALARS}{_LISTS}  mood: enum(glad, sad)?
  face: Vector(3)?
}}
node Person {{ name: String @key  photo: Blob? }}
node Shift {{
  day: Date
  desk: I64
  at: DateTime
  isNight: Bool
  room: enum(east, west)
  label: String?
  @key(day, desk, at, isNight, room)
}}
edge Saw: Person -> Thing {{ weight: F32?  proof: Blob?  words: [String]? }}
edge Works: Person -> Shift {{ @key(@src, @dst)  note: String? }}
edge Swapped: Shift -> Shift {{ round: U32  @key(@src, @dst, round) }}
"""
CATALOG = load_catalog(SCHEMA)
TYPES = {key.name: type_ for key, type_ in table_types_of(CATALOG).items()}
COMPANY = Path(__file__).parents[2] / "examples" / "company"
MEGABYTE = 2**20

Record = dict[str, Any]  # Any: JSON


# ---- generated graphs ----


def values_of(type_: PropertyType) -> st.SearchStrategy[Any]:
    match type_.value:
        case EnumType(values):
            return st.sampled_from(values)
        case Vector(dimension):
            return st.tuples(*[_finite(Scalar.F32)] * dimension)
        case ListType(element):
            return st.lists(_finite(element), max_size=3).map(tuple)
        case _:
            assert type_.scalar is not None
            return _finite(type_.scalar)


def _finite(scalar: Scalar) -> st.SearchStrategy[Any]:
    """Values of a type that a load takes: it refuses numbers that are none."""
    values = SCALAR_VALUES[scalar]
    return values.filter(math.isfinite) if scalar in (Scalar.F32, Scalar.F64) else values


def data_of(type_name: str) -> st.SearchStrategy[Record]:
    """The properties of one entity as JSON; those that may be null are sometimes left out."""
    required: dict[str, st.SearchStrategy[Any]] = {}
    optional: dict[str, st.SearchStrategy[Any]] = {}
    for name, each in TYPES[type_name].properties.items():
        (optional if each.type.is_nullable else required)[name] = json_values_of(each.type)
    return st.fixed_dictionaries(required, optional=optional)


def json_values_of(type_: PropertyType) -> st.SearchStrategy[Any]:
    return values_of(type_).map(lambda value: to_json(value, type_, CATALOG))


@st.composite
def graphs(draw: st.DrawFn) -> str:
    """Records of a graph with entities of every type, nodes first."""
    model = ModelGraph(CATALOG)
    records: list[Record] = [
        {"type": "Thing", "id": id_, "data": data}
        for id_, data in draw(st.dictionaries(TEXTS, data_of("Thing"), max_size=5)).items()
    ]
    for name in ("Person", "Shift"):
        found = draw(st.lists(data_of(name), min_size=1, max_size=4))
        records += [{"type": name, "data": data} for data in _distinct(name, found)]
    model.load(_lines(records), mode="append")
    edges: list[Record] = []
    for name, source, target in (
        ("Saw", "Person", "Thing"),
        ("Works", "Person", "Shift"),
        ("Swapped", "Shift", "Shift"),
    ):
        if not model.nodes[target]:
            continue
        ends = st.tuples(*(st.sampled_from(sorted(model.nodes[end])) for end in (source, target)))
        for number, (from_, to) in enumerate(draw(st.lists(ends, unique=True, max_size=4))):
            id_ = {"id": f"{draw(TEXTS)}{number}"} if name == "Saw" else {}
            data = draw(data_of(name))
            edges.append({"edge": name, **id_, "from": from_, "to": to, "data": data})
    return _lines([*records, *edges])


def _distinct(type_name: str, found: list[Record]) -> list[Record]:
    """One record for each key."""
    members = TYPES[type_name].key or ()
    return [*{json.dumps([data[str(name)] for name in members]): data for data in found}.values()]


def _lines(records: list[Record]) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


@pytest.mark.slow
@settings(max_examples=6 if places.is_on_s3() else 40)
@given(graphs())
def test_a_graph_is_exported_as_the_model_exports_it_and_loads_back_unchanged(text: str) -> None:
    model = ModelGraph(CATALOG)
    model.load(text, mode="append")
    with omnigraph.create(places.fresh_uri(), schema=SCHEMA) as graph:
        graph.branch().load(Text(text), mode="append")
        first = _export(graph)
        assert first.decode() == model.export()
        with omnigraph.create(places.fresh_uri(), schema=graph.branch().schema) as copy:
            copy.branch().load(Text(first), mode="overwrite")
            assert _export(copy) == first


# ---- a graph of everything at its extremes ----


BLOBS = {
    "empty": b"",
    "small": bytes(range(256)),
    "large": bytes(range(251)) * (6 * MEGABYTE // 251),
    "none": None,
}
TEXT = 'é "quoted" \\ \x00 \n \u2028 \x7f 😀 \ufb01 e\u0301 \u202e'
FLOATS = {
    Scalar.F32: (3.4028234663852886e38, -1.401298464324817e-45, -0.0, 16777217.0, 0.1),
    Scalar.F64: (1.7976931348623157e308, 5e-324, -0.0, 9007199254740993.0, 0.1),
}
EXTREMES: dict[Scalar, tuple[Any, ...]] = {
    **INTEGER_RANGES,
    **FLOATS,
    Scalar.STRING: (TEXT, ""),
    Scalar.BOOL: (True, False),
    Scalar.DATE: ("-5877641-06-23", "+5881580-07-11", "0000-01-01", "9999-12-31", "+10000-01-01"),
    Scalar.DATETIME: (
        "0001-01-01T00:00:00.000Z",
        "9999-12-31T23:59:59.999Z",
        "1969-12-31T23:59:59.999Z",
    ),
}


def everything() -> list[Record]:
    """Every type at its extremes, lists and blobs of every size, ids and keys of every kind."""
    things = [
        {"type": "Thing", "id": f"{scalar}-{number}", "data": {f"a{scalar}": value}}
        for scalar, values in EXTREMES.items()
        for number, value in enumerate(values)
    ]
    things += [
        {"type": "Thing", "id": f"all-{scalar}-{len(items)}", "data": {f"all{scalar}": items}}
        for scalar, values in EXTREMES.items()
        for items in ([], [*values])
    ]
    things.append({"type": "Thing", "id": TEXT, "data": {"mood": "sad", "face": [0.1, -0.0, 1e38]}})
    # Without ids: the graph draws them.
    things += [{"type": "Thing", "data": {"mark": "first"}}, {"type": "Thing", "data": {}}]
    people: list[Record] = [
        {"type": "Person", "data": {"name": name, "photo": _blob(content)}}
        for name, content in BLOBS.items()
    ]
    people.append({"type": "Person", "data": {"name": TEXT}})
    shift = {"day": "2024-02-29", "desk": -(2**63), "at": "2024-02-29T12:00:00.5Z"}
    shifts: list[Record] = [
        {"type": "Shift", "data": {**shift, "isNight": is_night, "room": "west", "label": TEXT}}
        for is_night in (True, False)
    ]
    ids = _ids_of(shifts)
    edges: list[Record] = [
        {"edge": "Saw", "from": TEXT, "to": TEXT, "data": {"words": [], "weight": 0.1}},
        {"edge": "Saw", "id": "s1", "from": "none", "to": TEXT, "data": {"words": [TEXT, ""]}},
        {"edge": "Saw", "id": "s2", "from": "none", "to": TEXT, "data": {"proof": _blob(b"")}},
        {"edge": "Works", "from": TEXT, "to": ids[0], "data": {"note": TEXT}},
        {"edge": "Swapped", "from": ids[0], "to": ids[1], "data": {"round": 2**32 - 1}},
        {"edge": "Swapped", "from": ids[0], "to": ids[1], "data": {"round": 0}},
    ]
    return [*things, *people, *shifts, *edges]


def _ids_of(shifts: list[Record]) -> list[str]:
    model = ModelGraph(CATALOG)
    model.load(_lines(shifts), mode="append")
    return [*model.nodes["Shift"]]


def _blob(content: bytes | None) -> str | None:
    return None if content is None else "base64:" + b64encode(content).decode()


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    """A file with the export of a graph of everything, and its bytes."""
    folder = tmp_path_factory.mktemp("everything")
    (folder / "everything.jsonl").write_text(_lines(everything()))
    with omnigraph.create(places.fresh_uri(folder / "a.omni"), schema=SCHEMA) as graph:
        graph.branch().load(folder / "everything.jsonl", mode="append")
        export = _export(graph)
    (folder / "export.jsonl").write_bytes(export)
    return folder / "export.jsonl", export


def test_every_value_is_in_the_export_as_it_was_given(exported: tuple[Path, bytes]) -> None:
    found = [json.loads(line) for line in exported[1].splitlines()]
    by_id = {entity["id"]: entity["data"] for entity in found if entity.get("type") == "Thing"}
    for scalar, values in EXTREMES.items():
        for number, value in enumerate(values):
            assert _same(by_id[f"{scalar}-{number}"], {f"a{scalar}": value})
        assert by_id[f"all-{scalar}-0"] == {f"all{scalar}": []}
        assert _same(by_id[f"all-{scalar}-{len(values)}"], {f"all{scalar}": [*values]})
    assert len(found) == len(everything())
    assert {} in by_id.values()


def _same(found: Any, given: Any) -> bool:
    """Whether two values are written alike; 32-bit floats are shown with fewer digits."""
    if isinstance(given, dict):
        return found.keys() == given.keys() and all(_same(found[key], given[key]) for key in given)
    if isinstance(given, list):
        return len(found) == len(given) and all(map(_same, found, given))
    if isinstance(given, float):
        is_close = math.isclose(found, given, rel_tol=1e-7, abs_tol=1e-45)
        return is_close and math.copysign(1, found) == math.copysign(1, given)
    return type(found) is type(given) and bool(found == given)


def test_a_graph_of_everything_loads_back_byte_for_byte(
    exported: tuple[Path, bytes], tmp_path: Path
) -> None:
    file, export = exported
    with omnigraph.create(places.fresh_uri(tmp_path / "b.omni"), schema=SCHEMA) as copy:
        copy.branch().load(file, mode="overwrite")
        assert _export(copy) == export
        _check_blobs(copy)
        # Over what is there already, it gives the same again.
        copy.branch().load(file, mode="overwrite")
        assert _export(copy) == export
        assert copy.check().problems == ()


def _check_blobs(graph: Graph) -> None:
    for name, content in BLOBS.items():
        if content is not None:
            blob = graph.branch().blob("node", "Person", name, "photo")
            starts = range(0, blob.size, RANGE_BYTES_MAX)
            parts = [blob.read(at, min(at + RANGE_BYTES_MAX, blob.size)) for at in starts]
            assert (blob.size, b"".join(parts)) == (len(content), content)
    assert graph.branch().blob("edge", "Saw", "s2", "proof").read() == b""
    for name in ("none", TEXT):
        with pytest.raises(omnigraph.errors.OmnigraphError):
            graph.branch().blob("node", "Person", name, "photo")


@pytest.mark.slow
def test_the_commands_carry_a_graph_of_everything_byte_for_byte(
    exported: tuple[Path, bytes], tmp_path: Path
) -> None:
    file, export = exported
    store = places.fresh_uri(tmp_path / "c.omni")
    (tmp_path / "schema.pg").write_text(SCHEMA)
    _run("init", store, "--schema", str(tmp_path / "schema.pg"))
    _run("load", store, "--data", str(file), "--mode", "overwrite", "--yes")
    assert _run("export", "--store", store) == export
    large = ("node", "Person", "large", "photo")
    assert _run("blob", "get", *large, "--store", store) == BLOBS["large"]


@pytest.mark.slow
def test_the_company_travels_byte_for_byte(tmp_path: Path) -> None:
    schema = (COMPANY / "company.pg").read_text()
    with omnigraph.create(places.fresh_uri(tmp_path / "a.omni"), schema=schema) as company:
        loaded = company.branch().load(COMPANY / "company.jsonl", mode="append")
        export = _export(company)
        entities = sum(loaded.nodes.values()) + sum(loaded.edges.values())
        assert len(export.splitlines()) == entities > 3_000
    (tmp_path / "export.jsonl").write_bytes(export)
    with omnigraph.create(places.fresh_uri(tmp_path / "b.omni"), schema=schema) as copy:
        copy.branch().load(tmp_path / "export.jsonl", mode="overwrite")
        assert _export(copy) == export


def _export(graph: Graph) -> bytes:
    return b"".join(graph.branch().export())


def _run(*arguments: str) -> bytes:
    program = Path(sys.executable).with_name("omnigraph")
    finished = subprocess.run([program, *arguments], capture_output=True, check=False, timeout=120)
    assert finished.returncode == 0, finished.stderr.decode()
    return finished.stdout
