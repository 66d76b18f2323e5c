"""Reads a stored graph without Omnigraph: with Lance, PyArrow and JSON, by its storage format.

    python read_graph.py GRAPH                      the branches and tags, and their types
    python read_graph.py GRAPH main Person          the entities of a type, as lines of JSON

A branch or a tag is resolved to a snapshot: the schema in force, and for each type a version of a
Lance table. The schema says which column holds which property. `docs/storage-format.md` describes
every object. Digests are not compared here: a program that must not trust its disk compares them.
"""

import base64
import json
import os
import sys
from datetime import date, datetime
from urllib.parse import unquote

import lance
import pyarrow as pa

KNOWN_FORMAT = 2
KNOWN_FEATURES = {"digests", "shared-names"}
KNOWN_SCHEMA = 5
KNOWN_SCHEMA_FEATURES = {
    *("system-columns", "edge-keys", "merge-rules", "converted-columns", "expression-checks"),
}


class StoredGraph:
    """A graph in a folder, read without the program that wrote it."""

    def __init__(self, folder):
        self.folder = folder
        stated = self.read("__manifest/format.json")
        unknown = set(stated.get("features", [])) - KNOWN_FEATURES
        if stated["format"] > KNOWN_FORMAT or unknown:
            raise ValueError(f"this graph needs a newer reader: {stated}")

    def read(self, path):
        """A JSON object; each has the number of the format that it was written in."""
        with open(os.path.join(self.folder, path), "rb") as file:
            found = json.load(file)
        if found["format"] > KNOWN_FORMAT:
            raise ValueError(f"{path} has format {found['format']}")
        return found

    def list(self, path):
        """The names below a folder, sorted; none if it is not there."""
        folder = os.path.join(self.folder, path)
        return sorted(os.listdir(folder)) if os.path.isdir(folder) else []

    def names(self):
        """What every live name stands for: the event that created it."""
        found = {"main": {"stream": "main.0"}}
        # Graphs of format 1 keep the events of tags in a folder of their own.
        for folder in ("branches", "tags"):
            for escaped in self.list(f"__manifest/{folder}"):
                path = f"__manifest/{folder}/{escaped}"
                events = [name for name in self.list(path) if name.endswith(".json")]
                # Odd events create a name, and even ones delete it.
                if len(events) % 2 == 0:
                    continue
                event = self.read(f"{path}/{events[-1]}")
                kind = "tag" if folder == "tags" else event.get("kind")
                if kind != "refused":
                    found[unquote(escaped)] = {**event, "kind": kind}
        return found

    def snapshot(self, name):
        """The schema and the pins that a name stands for now."""
        event = self.names()[name]
        if event.get("kind") == "tag":
            return event["schema"], event["pins"]
        return self.head(event)

    def head(self, event):
        """The newest snapshot of a branch: its records, folded from the newest one with all pins.

        A commit is a record. A branch without commits of its own is at the commit it started from.
        """
        schema, pins, newer = None, None, []
        for seq in reversed(self.list_records(event["stream"])):
            record = self.read(f"__manifest/{event['stream']}/{seq}.json")
            if record.get("close"):
                continue
            newer.append(record)
            if not record.get("partial"):
                pins = {}
                break
        if pins is None:
            schema, pins = self.base(event, newer)
        for record in reversed(newer):
            schema = record["schema"]
            gone = {*record.get("dropped", []), *record.get("renamed", {})}
            kept = {} if not record.get("partial") else pins
            pins = {key: pin for key, pin in kept.items() if key not in gone}
            pins |= record.get("pins", {})
        return schema, pins

    def base(self, event, newer):
        """The snapshot that some partial records follow: a checkpoint, or that of the origin."""
        stream = event["stream"]
        below = int(newer[-1]["seq"]) if newer else 10**20
        names = self.list(f"__manifest/{stream}/checkpoints")
        older = [name for name in names if int(name.removesuffix(".json")) <= below]
        if older:
            kept = self.read(f"__manifest/{stream}/checkpoints/{older[-1]}")
            return kept["schema"], kept["pins"]
        fork = event["fork"]
        kept = self.read(f"__manifest/{fork['stream']}/{fork['seq']:020}.json")
        return kept["schema"], kept["pins"]

    def list_records(self, stream):
        """The numbers of the records of a branch that count: those above its floor, if it has one.

        A clean-up releases what lies below a floor.
        """
        floors = self.list(f"__manifest/{stream}/floors")
        floor = floors[-1] if floors else ""
        names = (name.removesuffix(".json") for name in self.list(f"__manifest/{stream}"))
        return [name for name in names if name.isdigit() and name >= floor]

    def types(self, digest):
        """The types of a schema, as its object describes them, by their key."""
        path = f"__manifest/schemas/{digest.removeprefix('sha256:')}.json"
        accepted = self.read(path)["accepted"]
        unknown = set(accepted["features"]) - KNOWN_SCHEMA_FEATURES
        if accepted["ir_version"] != KNOWN_SCHEMA or unknown:
            raise ValueError(f"{path} needs a newer reader")
        converted = dict(accepted.get("columns", []))
        found = {}
        for kind in ("node", "edge"):
            for described in accepted[f"{kind}s"]:
                # The number of a property is its column, whatever its name has become.
                columns = {
                    each["name"]: converted.get(each["id"]) or f"c{each['id']}"
                    for each in described["properties"]
                }
                found[f"{kind}:{described['name']}"] = columns
        return found

    def entities(self, name, type_name):
        """The entities of a type at the head of a branch or at a tag, as an Arrow table."""
        digest, pins = self.snapshot(name)
        types = self.types(digest)
        keys = [key for key in types if key.partition(":")[2] == type_name]
        if not keys:
            raise ValueError(f"{name} has no type '{type_name}'")
        pin, columns = pins[keys[0]], types[keys[0]]
        # Bit 63 of the number is set: it is a detached version, which only its pin leads to.
        table = lance.dataset(
            os.path.join(self.folder, pin["uri"]), version=int(pin["v"], 16)
        ).to_table(blob_handling="all_binary")
        ends = {"source": "__src", "target": "__dst"} if keys[0].startswith("edge:") else {}
        # Columns of dropped properties stay in the table, and are not asked for.
        shown = {"id": "__id"} | ends | columns
        return pa.table({name: show(table[column]) for name, column in shown.items()})


def show(values):
    """The values of a column; moments are stored as milliseconds since 1970, in UTC."""
    if values.type == pa.date64():
        return values.cast(pa.timestamp("ms", "UTC"))
    if values.type == pa.list_(pa.field("item", pa.date64())):
        return values.cast(pa.list_(pa.field("item", pa.timestamp("ms", "UTC"))))
    return values


def to_line(row):
    """A row as a line of JSON; blobs in base64, dates and times in ISO 8601."""

    def encode(value):
        if isinstance(value, bytes):
            return "base64:" + base64.b64encode(value).decode()
        if isinstance(value, (date, datetime)):
            return value.isoformat()
        raise TypeError(f"no JSON for {type(value)}")

    return json.dumps(row, default=encode, ensure_ascii=False)


def main(folder, name=None, type_name=None):
    """Print names and types, or the entities of a type."""
    graph = StoredGraph(folder)
    if name is None:
        for each, event in graph.names().items():
            digest, _ = graph.snapshot(each)
            kind = event.get("kind") or "branch"
            print(f"{kind} {each}: {', '.join(sorted(graph.types(digest)))}")
        return
    for row in graph.entities(name, type_name).sort_by("id").to_pylist():
        print(to_line(row))


if __name__ == "__main__":
    main(*sys.argv[1:4])
