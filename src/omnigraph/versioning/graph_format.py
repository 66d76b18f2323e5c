"""The format of a whole graph: a number, and the names of features that a program has to know.

The number changes when programs of the number before would misread the graph. A feature is a
statement about what is stored, which holds for some graphs of one number and not for others: a
program refuses a graph with a feature that it does not know. A graph gains them when it is created
or upgraded (`upgrade`), and never loses one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from omnigraph.errors import UnknownFeatureError
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.object_store import Objects
from omnigraph.versioning.json_fields import decode_fields, encode_fields

# Every object of the manifest folder begins with a digest; an object without one is damage.
DIGESTS: Final = "digests"
# Branches and tags share the events of names; nothing is kept in the folder of tags.
SHARED_NAMES: Final = "shared-names"

# Without features: graphs of all programs up to the first one that could upgrade.
FIRST_NUMBER: Final = 1
NUMBER: Final = 2
FEATURES: Final = frozenset({DIGESTS, SHARED_NAMES})


@dataclass(frozen=True, slots=True)
class GraphFormat:
    """The format of a graph."""

    number: int
    features: frozenset[str] = frozenset()

    @property
    def is_current(self) -> bool:
        """Whether graphs are created like this now."""
        return self == CURRENT


CURRENT: Final = GraphFormat(NUMBER, FEATURES)


def read_format(objects: Objects) -> GraphFormat | None:
    """The format of a graph; None where no graph is. What this program does not know is refused."""
    data = objects.get(layout.FORMAT)
    if data is None:
        return None
    fields = decode_fields(layout.FORMAT, data, known=NUMBER)
    found = GraphFormat(fields.get_integer("format"), frozenset(fields.get_texts("features")))
    if unknown := sorted(found.features - FEATURES):
        raise UnknownFeatureError(layout.FORMAT, features=unknown)
    return found


def encode_format(found: GraphFormat) -> bytes:
    """The object that states the format of a graph."""
    fields = {"format": found.number, "features": sorted(found.features)}
    return encode_fields(layout.FORMAT, fields)
